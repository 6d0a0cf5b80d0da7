package chat

import (
	"strings"
	"testing"
)

// TestBuiltin holds the built-in templates against the engine whose names they
// go by (testdata/make_builtin_goldens.py).
func TestBuiltin(t *testing.T) {
	var cases []conversation
	readJSONFile(t, "testdata/conversations.json", &cases)
	var want map[string]map[string]string
	readJSONFile(t, "testdata/builtin_goldens.json", &want)
	for _, name := range BuiltinNames() {
		tpl, err := ParseAny(name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want[name] == nil && name != PlainName {
			t.Errorf("%s: no golden", name)
		}
		for _, c := range cases {
			text, ok := want[name][c.Name]
			if !ok {
				continue
			}
			got, err := tpl.RenderString(Input{Messages: c.Messages, AddGenerationPrompt: true})
			if err != nil || got != text {
				t.Errorf("%s: %s: %v\n got %q\nwant %q", name, c.Name, err, got, text)
			}
		}
	}
}

func TestPlain(t *testing.T) {
	tpl, err := ParseAny("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tpl.RenderString(Input{AddGenerationPrompt: true, Messages: []Message{
		{Role: "system", Content: "Be brief."},
		{Role: "user", Parts: []Part{{Type: "text", Text: "Hi "}, {Type: "text", Text: "there"}}},
		{Role: "assistant", NoContent: true},
	}})
	if want := "system: Be brief.\nuser: Hi there\nassistant:"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestBuiltinUnknown(t *testing.T) {
	for _, name := range []string{"nosuch", "../doc", "a/b"} {
		if _, err := ParseAny(name, Options{}); err == nil || strings.Contains(err.Error(), "open ") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
