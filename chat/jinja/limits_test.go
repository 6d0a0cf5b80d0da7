package jinja

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// TestLimits gives templates that would use endless time, memory or stack.
func TestLimits(t *testing.T) {
	nested := func(open, mid, end string, n int) string {
		return strings.Repeat(open, n) + mid + strings.Repeat(end, n)
	}
	const loop = "{% for a in range(100000) %}{% for b in range(100000) %}"
	const endLoop = "{% endfor %}{% endfor %}"
	for name, source := range map[string]string{
		"loops":            loop + "x" + endLoop,
		"empty loops":      loop + endLoop,
		"doubling":         "{% set ns = namespace(x='ab') %}" + loop + "{% set ns.x = ns.x + ns.x %}" + endLoop,
		"doubling by ~":    "{% set ns = namespace(x='ab') %}" + loop + "{% set ns.x = ns.x ~ ns.x %}" + endLoop,
		"doubling lists":   "{% set ns = namespace(x=[1]) %}" + loop + "{% set ns.x = ns.x + ns.x %}" + endLoop,
		"doubling by hand": "{% set ns = namespace(x=[1]) %}" + loop + "{% set _ = ns.x.extend(ns.x) %}" + endLoop,
		"many strings":     "{% set ns = namespace(x=[]) %}" + loop + "{% set _ = ns.x.append('a' * 1000000 ~ b) %}" + endLoop,
		"repeat":           "{{ 'abc' * 1000000000 }}",
		"repeat huge":      "{{ 'abc' * 9223372036854775807 }}",
		"repeat list":      "{{ [1] * 1000000000 }}",
		"range":            "{{ range(1000000000) }}",
		"power":            "{{ 10 ** (10 ** 10) }}",
		"squares":          "{% set ns = namespace(x=3) %}" + loop + "{% set ns.x = ns.x * ns.x %}" + endLoop,
		"recursion":        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"two macros":       "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{{ a() }}{% endmacro %}{{ a() }}",
		"recursive loop":   "{% set x = [] %}{% set _ = x.append(x) %}{% for y in x recursive %}{{ loop(y) }}{% endfor %}",
		"cycle printed":    "{% set x = [] %}{% set _ = x.append(x) %}{{ x }}",
		"cycle as JSON":    "{% set x = {} %}{% set _ = x.update(x=x) %}{{ x|tojson }}",
		"cycles compared":  "{% set x = [] %}{% set _ = x.append(x) %}{% set y = [] %}{% set _ = y.append(y) %}{{ x == y }}",
		"tree printed":     "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
		"trees compared":   "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
		"growing loop":     "{% set x = [1] %}{% for y in x %}{% set _ = x.append(y) %}{% endfor %}",
		"lazy chain":       "{% set ns = namespace(x=[1,2]) %}{% for i in range(100000) %}{% set ns.x = ns.x|map('string') %}{% endfor %}{{ ns.x|list }}",
		"replace":          "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}",
		"join":             "{{ ('b' * 1000000).join('a' * 1000000) }}",
		"width":            "{{ '%999999999d' % 1 }}",
		"width by fields":  "{{ '{:999999999}'.format(1) }}",
		"center":           "{{ 'x'.center(999999999999) }}",
		"indent":           "{{ 'x'|indent(999999999) }}",
		"escapes":          "{% set ns = namespace(x='&' * 10000) %}" + loop + "{% set ns.x = ns.x|forceescape %}" + endLoop,
		"quotes":           "{% set ns = namespace(x='\\\\') %}" + loop + "{% set ns.x = [ns.x]|string %}" + endLoop,
		"output":           "{% set x = 'a' * 1000000 %}" + loop + "{{ x }}" + endLoop,
		"deep call":        "{{ " + nested("dict(x=", "1", ")", 150) + " }}" + loop + endLoop,
		"long chain":       "{{ 1" + strings.Repeat(" + 1", 5000) + " }}",
	} {
		_, err := renderSource(source, json.RawMessage("{}"), Limits{Steps: 300_000, Memory: 64 << 20})
		if !errors.Is(err, ErrLimit) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestWithin: a rendering ends with its context, and with fewer steps where the
// caller allows fewer.
func TestWithin(t *testing.T) {
	tpl, err := Parse("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", Limits{Steps: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := tpl.RenderWithin(ctx, 0, NewDict(), now); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := tpl.RenderWithin(context.Background(), 1000, NewDict(), now); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "1000 steps") {
		t.Errorf("few steps: %v", err)
	}
}

func TestNesting(t *testing.T) {
	for name, open := range map[string]string{
		"parentheses": "{{ " + strings.Repeat("(", 100000),
		"lists":       "{{ " + strings.Repeat("[", 100000),
		"not":         "{{ " + strings.Repeat("not ", 100000),
		"minus":       "{{ " + strings.Repeat("-", 100000),
		"calls":       "{{ " + strings.Repeat("a(", 100000),
		"indices":     "{{ " + strings.Repeat("a[", 100000),
		"if":          strings.Repeat("{% if a %}", 100000),
		"targets":     "{% set " + strings.Repeat("(", 100000),
		"tests":       "{{ a is b " + strings.Repeat("(", 100000),
	} {
		if _, err := Parse(open, Limits{}); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Parse(strings.Repeat("x", 100), Limits{Source: 99}); !errors.Is(err, ErrLimit) {
		t.Errorf("long source: got %v", err)
	}
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	if _, err := FromJSON([]byte(deep), true); err == nil {
		t.Error("deep JSON: no error")
	}
}

// TestUse gives what a long but ordinary conversation costs: it must stay far
// from the limits.
func TestUse(t *testing.T) {
	const source = "{% set ns = namespace(out='') %}{% for m in messages %}{% set ns.out = ns.out ~ '<' ~ m.role ~ '>' ~ m.content|trim %}{% endfor %}{{ ns.out }}"
	msgs := make([]map[string]string, 400)
	for i := range msgs {
		msgs[i] = map[string]string{"role": "user", "content": strings.Repeat("word ", 500)}
	}
	raw, err := json.Marshal(map[string]any{"messages": msgs})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := renderSource(source, raw, Limits{}); err != nil {
		t.Error(err)
	}
}

// TestRangeLen counts as Python does, at the ends of what a number holds too.
func TestRangeLen(t *testing.T) {
	const least, most = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		lo, hi, step int64
		want         uint64
	}{
		{0, 0, 1, 0}, {0, 5, 1, 5}, {0, 5, 2, 3}, {5, 0, -2, 3}, {5, 0, 1, 0}, {0, 5, -1, 0}, {-3, 4, 7, 1}, {-3, 4, 6, 2},
		{least, most, 1, math.MaxUint64}, {most, least, least, 2}, {most, least, -1, math.MaxUint64}, {most - 1, most, most, 1}, {least, most, most, 3},
	} {
		if got := rangeLen(c.lo, c.hi, c.step); got != c.want {
			t.Errorf("range(%d, %d, %d): %d items, want %d", c.lo, c.hi, c.step, got, c.want)
		}
	}
	for source, want := range map[string]string{
		"{{ range(9223372036854775800, 9223372036854775807, 5)|list }}": "[9223372036854775800, 9223372036854775805]",
		"{{ range(5, -5, -4)|list }}":                                   "[5, 1, -3]",
	} {
		if got, err := renderSource(source, json.RawMessage("{}"), Limits{}); err != nil || got.String() != want {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
}
