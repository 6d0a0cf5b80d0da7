package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func render(t *testing.T, source string, o Options, in Input) string {
	t.Helper()
	tpl, err := Parse(source, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tpl.RenderString(in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestMessageJSON(t *testing.T) {
	const raw = `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}]},
		{"role":"assistant","content":null,"reasoning":"r","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"z\":1,\"a\":[2.0]}"}}]},
		{"role":"tool","content":"x","tool_call_id":"1","name":null,"weight":0.5}]`
	var msgs []Message
	if err := json.Unmarshal([]byte(raw), &msgs); err != nil {
		t.Fatal(err)
	}
	got := render(t, "{% for m in messages %}{{ m }}\n{% endfor %}", Options{}, Input{Messages: msgs})
	want := `{'role': 'user', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'image_url', 'image_url': {'url': 'u'}}]}
{'thinking': 'r', 'role': 'assistant', 'tool_calls': [{'id': '1', 'type': 'function', 'function': {'name': 'f', 'arguments': {'z': 1, 'a': [2.0]}}}], 'reasoning_content': 'r'}
{'role': 'tool', 'content': 'x', 'tool_call_id': '1', 'weight': 0.5}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, bad := range []string{`{"role":1}`, `{"role":"user","content":{"a":1}}`, `{"tool_calls":[{"function":1}]}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), new(Message)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestArgumentsForm(t *testing.T) {
	call := Input{Messages: []Message{
		{Role: "user", Content: "u"},
		{Role: "assistant", ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: json.RawMessage(`{"a": 1}`)}}},
	}}
	text := call
	text.Messages = append([]Message(nil), call.Messages...)
	text.Messages[1].ToolCalls = []ToolCall{{ID: "1", Name: "f", Arguments: json.RawMessage(`"{\"a\": 1}"`)}}
	const loop = "{% for m in messages %}{% for c in m.tool_calls %}"
	const end = "{% endfor %}{% endfor %}"
	for _, c := range []struct{ source, want string }{
		{loop + "{{ c.function.arguments | tojson }}" + end, `{"a": 1}`},
		{loop + "{{ 'x' + c.function.arguments }}" + end, `x{"a": 1}`},
		{loop + "{{ c.function.arguments }}" + end, `{"a": 1}`},
		{loop + "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}" + end, `a=1`},
		{loop + "{{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}" + end, `{"a": 1}`},
	} {
		for _, in := range []Input{call, text} {
			if got := render(t, c.source, Options{}, in); got != c.want {
				t.Errorf("%s: got %q, want %q", c.source, got, c.want)
			}
		}
	}
}

func TestRoles(t *testing.T) {
	msgs := []Message{{Role: "developer", Content: "d"}, {Role: "user", Content: "u"}, {Role: "system", Content: "s"}, {Role: "user", Content: "v"}}
	const source = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "[developer:d][user:u][system:s][user:v]"},
		{Options{DeveloperRole: "system"}, "[system:d][user:u][system:s][user:v]"},
		{Options{DeveloperRole: "system", LateSystem: LateSystemMerge}, "[system:d\n\ns][user:u][user:v]"},
		{Options{LateSystem: LateSystemUser}, "[developer:d][user:u][user:s][user:v]"},
		{Options{SystemInUser: true}, "[developer:d][user:u][user:s\n\nv]"},
		{Options{SystemInUser: true, DeveloperRole: "system"}, "[user:d\n\nu][user:s\n\nv]"},
		{Options{LateSystem: LateSystemMerge}, "[developer:d\n\ns][user:u][user:v]"},
	} {
		if got := render(t, source, c.o, Input{Messages: msgs}); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.o, got, c.want)
		}
	}
	if msgs[0].Content != "d" {
		t.Error("the caller's messages changed")
	}
}

func TestContinueFinal(t *testing.T) {
	const source = "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</{{ m.role }}>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
	in := Input{ContinueFinal: true, Messages: []Message{{Role: "user", Content: "q"}, {Role: "assistant", Content: " The answer "}}}
	if got, want := render(t, source, Options{}, in), "<user>q</user><assistant>The answer "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	in.Messages[1].Content = ""
	if got, want := render(t, source, Options{}, in), "<user>q</user><assistant>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tpl, err := Parse("{{ messages[0].content }}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tpl.RenderString(in); err == nil {
		t.Errorf("a template that drops the message gives %q", got)
	}
	if _, err := tpl.RenderString(Input{ContinueFinal: true}); err == nil {
		t.Error("no messages to continue, but no error")
	}
}

// TestProvenance demands that what a user types keeps its mark on the way
// through a template's string operations.
func TestProvenance(t *testing.T) {
	const c = "messages[0].content"
	for source, want := range map[string]string{
		"{{ '<' + " + c + " + '>' }}":                                    "<(a b,c)>",
		"{{ ('  ' + " + c + ")|trim|upper }}":                            "(A B,C)",
		"{{ " + c + ".split(',')|join('-') }}":                           "(a b)-(c)",
		"{{ " + c + "[1:3] ~ " + c + "[0] }}":                            "( ba)",
		"{{ ('x' ~ " + c + "~ 'x').replace(' ', '_').replace('x','y')}}": "y(a)_(b,c)y",
		"{{ '%s|%5s' % (" + c + "[0], 1) }}":                             "(a)|    1",
		"{{ '{}-{:>3}'.format(" + c + "[0], " + c + "[2]) }}":            "(a)-  (b)",
		"{{ " + c + "|tojson }}":                                         `"(a b,c)"`,
		"{{ [" + c + ", 'k'] }}":                                         "['(a b,c)', 'k']",
		"{{ (" + c + "|list)[0] ~ " + c + "|reverse }}":                  "(ac,b a)",
		"{{ {'k': " + c + "}.k ~ ({" + c + ": 1}|list)[0] }}":            "(a b,ca b,c)",
		"{% set x %}[{{ " + c + " }}]{% endset %}{{ x|title }}":          "[(A B,c)]",
		"{% macro m(t) %}<{{ t }}>{% endmacro %}{{ m(" + c + ")|e }}":    "&lt;(a b,c)&gt;",
		"{{ ('[' ~ " + c + "~ ']')|indent(1, true) }}":                   " [(a b,c)]",
		"{{ ('1,' ~ " + c + ").partition(',')[2]|capitalize }}":          "(A b,c)",
		"{{ ('[\"' ~ " + c + " ~ '\"]')|from_json|first }}":              "(a b,c)",
		"{{ name ~ messages[0].role ~ messages[1].role ~ bos_token }}":   "(N)user(</s>)<s>",
	} {
		tpl, err := Parse(source, Options{})
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := tpl.Render(Input{BOS: "<s>", Extra: map[string]any{"name": "N"},
			Messages: []Message{{Role: "user", Content: "a b,c"}, {Role: "</s>"}}})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		var b strings.Builder
		for _, p := range pieces {
			if p.User {
				b.WriteString("(" + p.Text + ")")
			} else {
				b.WriteString(p.Text)
			}
		}
		if b.String() != want {
			t.Errorf("%s: got %s, want %s", source, b.String(), want)
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := Parse("a\n{{ x }", Options{}); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), "line 2, column 6") {
		t.Errorf("got %v", err)
	}
	tpl, err := Parse("\n\n{% if true %}{{ raise_exception('no ' ~ messages[0].role) }}{% endif %}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = tpl.Render(Input{Messages: []Message{{Role: "user"}}})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), "no user") {
		t.Errorf("got %v", err)
	}
	for _, in := range []Input{
		{Tools: []Tool{{Schema: json.RawMessage("{")}}},
		{Extra: map[string]any{"x": struct{}{}}},
		{Extra: map[string]any{"messages": nil}},
		{Tokens: map[string]string{"pad_token": "<pad>"}, Extra: map[string]any{"pad_token": "x"}},
		{Messages: []Message{{ToolCalls: []ToolCall{{Arguments: json.RawMessage("{")}}}}},
		{Messages: []Message{{Parts: []Part{{Type: "x", Raw: json.RawMessage("[")}}}}},
	} {
		if _, err := tpl.Render(in); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("%+v: got %v", in, err)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, c := range []struct{ raw, plain, tools string }{
		{`null`, "", ""},
		{`"t"`, "t", "t"},
		{`[{"name":"default","template":"a"},{"name":"tool_use","template":"b"}]`, "a", "b"},
		{`[{"name":"rag","template":"c"}]`, "c", "c"},
		{`[{"name":"rag","template":"c"},{"name":"x","template":"d"}]`, "error", "error"},
		{`[{"template":"c"}]`, "error", "error"},
		{`7`, "error", "error"},
	} {
		for i, want := range []string{c.plain, c.tools} {
			named, err := Named(json.RawMessage(c.raw))
			got := ""
			if err == nil {
				got, err = Choose(named, i == 1)
			}
			if err != nil {
				got = "error"
			}
			if got != want {
				t.Errorf("%s: got %q, want %q (%v)", c.raw, got, want, err)
			}
		}
	}
}

func TestNow(t *testing.T) {
	at := time.Date(2024, 7, 26, 0, 0, 0, 0, time.UTC)
	if got := render(t, "{{ strftime_now('%d %b %Y') }}", Options{}, Input{Now: at}); got != "26 Jul 2024" {
		t.Errorf("got %q", got)
	}
}
