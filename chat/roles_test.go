package chat

import (
	"strings"
	"testing"
)

func say(role, text string) Message { return Message{Role: role, Content: text} }

// TestProbedRoles: what a template refuses or drops is joined to what it takes.
func TestProbedRoles(t *testing.T) {
	const plain = `{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}`
	const noSystem = `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ m.role }}:{{ m.content }};{% endfor %}`
	const firstOnly = `{% if messages[0].role == 'system' %}system:{{ messages[0].content }};{% endif %}` +
		`{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}{% endif %}` +
		`{% if m.role != 'system' %}{{ m.role }}:{{ m.content }};{% endif %}{% endfor %}`
	const drops = `{% if messages[0].role == 'system' %}system:{{ messages[0].content }};{% endif %}` +
		`{% for m in messages if m.role != 'system' %}{{ m.role }}:{{ m.content }};{% endfor %}`
	auto := Options{LateSystem: LateSystemAuto, SystemAuto: true}
	talk := []Message{say("system", "S"), say("user", "u"), say("assistant", "a"), say("system", "L"), say("user", "v")}
	for _, c := range []struct {
		what, source string
		o            Options
		msgs         []Message
		want         string
	}{
		{"takes all", plain, auto, talk, "system:S;user:u;assistant:a;system:L;user:v;"},
		{"refuses the role", noSystem, auto, talk, "user:S\n\nu;assistant:a;user:L\n\nv;"},
		{"refuses late ones", firstOnly, auto, talk, "system:S\n\nL;user:u;assistant:a;user:v;"},
		{"drops late ones", drops, auto, talk, "system:S\n\nL;user:u;assistant:a;user:v;"},
		{"only a late one", firstOnly, auto, talk[1:], "system:L;user:u;assistant:a;user:v;"},
		{"merged by the specification", plain, Options{LateSystem: LateSystemMerge}, talk, "system:S\n\nL;user:u;assistant:a;user:v;"},
		{"the user's", plain, Options{LateSystem: LateSystemUser}, talk, "system:S;user:u;assistant:a;user:L;user:v;"},
		{"developer", plain, Options{DeveloperRole: "system", LateSystem: LateSystemMerge}, []Message{say("developer", "D"), say("system", "S"), say("user", "u")},
			"system:D\n\nS;user:u;"},
		{"a late developer", firstOnly, Options{DeveloperRole: "system", LateSystem: LateSystemAuto}, []Message{say("system", "S"), say("user", "u"), say("developer", "D")},
			"system:S\n\nD;user:u;"},
		{"a developer that is dropped", drops, Options{DeveloperAuto: true, LateSystem: LateSystemAuto, SystemAuto: true},
			[]Message{say("developer", "D"), say("user", "u"), say("assistant", "a"), say("developer", "E"), say("user", "v")}, "developer:D;user:u;assistant:a;developer:E;user:v;"},
		{"a developer that is refused", "{% for m in messages if m.role == 'developer' %}{{ raise_exception('x') }}{% endfor %}" + plain, Options{DeveloperAuto: true},
			[]Message{say("developer", "D"), say("user", "u")}, "system:D;user:u;"},
		{"a developer only in front", "{% for m in messages %}{% if loop.first or m.role != 'developer' %}{{ m.role }}:{{ m.content }};{% endif %}{% endfor %}",
			Options{DeveloperAuto: true, LateSystem: LateSystemMerge}, []Message{say("developer", "D"), say("user", "u"), say("developer", "E"), say("user", "v")}, "developer:D\n\nE;user:u;user:v;"},
		{"developer as user", plain, Options{DeveloperRole: "user"}, []Message{say("developer", "D"), say("user", "u")}, "user:D;user:u;"},
		{"system last", noSystem, auto, []Message{say("user", "u"), say("system", "S")}, "user:u;user:S;"},
	} {
		t.Run(c.what, func(t *testing.T) {
			tpl, err := Parse(c.source, c.o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tpl.RenderString(Input{Messages: c.msgs})
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
			if strings.Contains(got, "probe") {
				t.Errorf("a probe stands in %q", got)
			}
		})
	}
}
