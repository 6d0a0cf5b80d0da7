package chat

import (
	"errors"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/chat/jinja"
)

// TestTrialBudget counts what loading a template may cost: its trial renderings share one budget, and what they leave open is answered as by a template
// that refuses.
func TestTrialBudget(t *testing.T) {
	const loops = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}{{ messages[0].arguments }}"
	const strs = "{% set ns = namespace(x='') %}{% for i in range(100000) %}{% set ns.x = 'a' * 1000000 %}{% endfor %}{{ messages[0].arguments }}"
	all := Options{Limits: jinja.Limits{Steps: trialSteps * 3 / 2, Memory: trialMemory * 3 / 2}, SystemAuto: true, DeveloperAuto: true, LateSystem: LateSystemAuto}
	for name, source := range map[string]string{"steps": loops, "memory": strs} {
		b := &jinja.Budget{Steps: trialSteps, Memory: trialMemory}
		tm, err := parse(source, all, b)
		if err != nil {
			t.Fatal(err)
		}
		if b.Steps > 0 && b.Memory > 0 || b.Steps < -10_000 || b.Memory < -2<<20 {
			t.Errorf("%s: %d steps and %d bytes are left", name, b.Steps, b.Memory)
		}
		if o := tm.opts; o.Arguments != ArgumentsObject || o.SystemInUser || o.DeveloperRole != "system" || o.LateSystem != LateSystemMerge {
			t.Errorf("%s: %+v", name, o)
		}
		if _, err := tm.RenderString(Input{}); !errors.Is(err, ErrLimit) || strings.Contains(err.Error(), "budget") {
			t.Errorf("%s: rendered in earnest: %v", name, err)
		}
	}
	b := &jinja.Budget{Steps: trialSteps, Memory: trialMemory}
	if _, err := parse("{% for m in messages %}{{ m.role }}: {{ m.content }} {{ m.arguments }}{% endfor %}", all, b); err != nil || b.Steps < trialSteps-2000 || b.Memory < trialMemory-1<<20 {
		t.Errorf("a small template leaves %d steps and %d bytes: %v", b.Steps, b.Memory, err)
	}
}

// TestBriefMessages: a template's message is told in part, if it is long.
func TestBriefMessages(t *testing.T) {
	long := strings.Repeat("é", 1<<18)
	for source, kind := range map[string]error{
		"{{ raise_exception('x' + '" + long + "') }}": ErrRefused,
		"{{ 1|" + strings.Repeat("f", 1000) + " }}":   jinja.ErrRuntime,
		"{% " + strings.Repeat("t", 1000) + " %}":     ErrSyntax,
	} {
		tm, err := Parse(source, Options{})
		if err == nil {
			_, err = tm.RenderString(Input{})
		}
		if !errors.Is(err, kind) || len(err.Error()) > 700 || !strings.Contains(err.Error(), "…") {
			t.Errorf("%.40s: %.800v", source, err)
		}
	}
	if _, err := Parse("{{ "+strings.Repeat("n", 1<<19)+" }}", Options{}); !errors.Is(err, ErrSyntax) || len(err.Error()) > 700 {
		t.Errorf("a long name: %.800v", err)
	}
	if _, err := ParseAny(strings.Repeat("x", 1<<19), Options{}); err == nil || len(err.Error()) > 700 {
		t.Errorf("a name: %.800v", err)
	}
}
