package chat

import (
	"strings"
	"testing"
)

// TestNoContent: a message without content has no such key for templates that
// look for it, and an empty one for those that join it to text.
func TestNoContent(t *testing.T) {
	in := Input{Messages: []Message{
		{Role: "user", Content: "u"},
		{Role: "assistant", NoContent: true, ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: []byte(`{}`)}}},
		{Role: "tool", Content: "r", Name: "f", ToolCallID: "1"},
	}}
	for source, want := range map[string]string{
		`{% for m in messages %}<{{ m['role'] + ':' + m['content'] }}>{% endfor %}`:                "<user:u><assistant:><tool:r>",
		`{% for m in messages %}<{{ m.content | trim + '.' }}>{% endfor %}`:                        "<u.><.><r.>",
		`{% for m in messages %}<{{ m.content if m.content is defined else 'none' }}>{% endfor %}`: "<u><none><r>",
		`{% for m in messages %}{% if m['content'] %}<{{ m['content'] }}>{% endif %}{% endfor %}`:  "<u><r>",
		`{% for m in messages %}{{ m['content'].split('x')[0] if m.role != 'user' }};{% endfor %}`: ";;r;",
	} {
		p, err := Parse(source, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.RenderString(in); err != nil || got != want {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
	p, err := Parse(`{{ raise_exception('never') }}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.RenderString(in); err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("a refusal: %v", err)
	}
}
