package jinja

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestCharges gives templates whose few nodes do much work each: all pay for
// the bytes that they read, so none turns as often as its loop says.
func TestCharges(t *testing.T) {
	const big = "{% set a = 'a' * 1000000 %}{% set b = 'a' * 1000000 %}{% set e = 'é' * 500000 %}{% set n = 2 ** 16000 - 1 %}" +
		"{% set u = (messages[0].content ~ 'x') * 300000 %}{% set t = (a,) %}{% for i in range(20000) %}"
	for _, x := range []string{
		"a.find('b')", "a.rfind('b')", "a.count('ab')", "a.index('a', 999999)", "'b' in a", "a|length", "e|length", "a == b", "a != b", "a < b", "a is eq b", "a is sameas b",
		"e[499999]", "e[-500000]", "e[499998:499999]", "e[::-1]", "a.isdigit()", "a.isalpha()", "a.isascii()", "a.islower()", "a.isupper()", "a is lower", "a.isspace()",
		"{a: 1}", "{}[a]", "{'x': 1}.get(a)", "dict([(a, 1)])", "{}.setdefault(a, 1)", "{'x': 1}.pop(a, 0)", "a in {'x': 1}", "{t: 1}", "[a]|unique|list", "t|unique|list",
		"a|wordcount", "a.strip('b')", "'x'.strip(e)", "a.startswith(b)", "a.endswith(b)", "a.removeprefix(b)", "a.partition('b')", "a.split('b')", "a.split()", "a.rsplit(none, 1)",
		"a.splitlines()", "a.replace('b', 'c')", "a|striptags", "a|truncate(10)", "a.center(3)", "a.zfill(3)", "'x'.center(5, a)", "a|default('x')", "a|first", "a|last", "a|int", "a|float",
		"[a, b]|sort", "[a, b]|max", "[a, b]|unique|list", "{a: 1}|dictsort", "[{'k': a}]|groupby('k')", "[1]|map(attribute=a)|list", "[1]|map(a)|list", "x[a]", "[1][a]", "a[b]", "x|attr(a)",
		"'%.1s' % a", "'%c' % a", "'{:.1}'.format(a)", "'{}'.format(1, a)", "'%s' % n", "n * 3", "n // 3", "n / 3", "n % 7", "n|string", "3 ** 9000", "{n: 1}", "n|int",
		"u.split('x')", "u[100:]", "u|length", "u|list|length", "u|replace('', 'y')", "u.rsplit()", "u|striptags", "'x' * 1000000", "'<'|escape + a", "m(**{a: 1})",
		"'x' is in a", "a.format()", "a % ()", "a|e", "a|indent(1)", "a|tojson", "{a: 1}|tojson", "a|string|length", "namespace(**{a: 1})", "[a].index(b)", "[a].count(b)",
	} {
		source := "{% macro m() %}{{ kwargs }}{% endmacro %}" + big + "{% set x = " + x + " %}{% endfor %}"
		if _, err := renderSource(source, json.RawMessage(`{"messages": [{"content": "é"}]}`), Limits{Steps: 3_000_000, Memory: 1 << 40, Output: 8 << 20}); !errors.Is(err, ErrLimit) {
			if err == nil || !strings.Contains(err.Error(), "no filter named") {
				t.Errorf("%s: %v", x, err)
			}
		}
	}
}

// TestDeepKeys: keys that are deep or wide tuples end with a limit.
func TestDeepKeys(t *testing.T) {
	for name, source := range map[string]string{
		"deep": "{% set ns = namespace(x=(1,)) %}{% for i in range(50000) %}{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}",
		"wide": "{% set ns = namespace(x=(1,)) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
	} {
		if _, err := renderSource(source, json.RawMessage("{}"), Limits{}); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOrdinary: what templates do with a long text costs little of the limits.
func TestOrdinary(t *testing.T) {
	raw, err := json.Marshal(map[string]any{"text": strings.Repeat("wörd ", 200_000)})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []string{"text|trim", "text[0]", "text[-1]", "text[:10]", "text == 'x'", "'</think>' in text", "text.split('</think>')[-1]", "text.startswith('x')", "text|length", "text|tojson", "text.strip('\\n')"} {
		if _, err := renderSource("{{ "+x+" }}", raw, Limits{Steps: 400_000}); err != nil {
			t.Errorf("%s: %v", x, err)
		}
	}
}

// TestTime: what steps do not bound, time does.
func TestTime(t *testing.T) {
	tpl, err := Parse("{% for a in range(100000) %}{% endfor %}", Limits{Time: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tpl.Render(NewDict(), now); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "time") {
		t.Error(err)
	}
}
