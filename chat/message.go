package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Message is one turn of a conversation, in the shape of OpenAI's chat API.
type Message struct {
	Role    string
	Content string
	// Parts, if not nil, stands in for Content: templates see a list.
	Parts []Part
	// NoContent leaves the content key out, as for null in a request: templates
	// print None for a null, which no model was trained on.
	NoContent  bool
	Name       string
	Reasoning  string // what the model thought before it answered
	ToolCalls  []ToolCall
	ToolCallID string
	// Extra holds further fields by name, in no particular order.
	Extra map[string]json.RawMessage
}

// Part is one part of a message's content. Templates see what raw JSON says of
// other parts than text (images, say); only text can be rendered.
type Part struct {
	Type string // "text" and others
	Text string
	Raw  json.RawMessage // for other types: the whole part
}

// ToolCall is a function that the model asked to call.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is JSON: an object, or a string that holds one, as the API has it.
	Arguments json.RawMessage
}

// Tool is the JSON description of a function that the model may call, kept as
// it came: {"type": "function", "function": {"name", "description", "parameters"}}.
type Tool struct{ Schema json.RawMessage }

// UnmarshalJSON keeps the description as it is.
func (t *Tool) UnmarshalJSON(raw []byte) error {
	t.Schema = append(t.Schema[:0], raw...)
	return nil
}

// MarshalJSON gives the description back.
func (t Tool) MarshalJSON() ([]byte, error) { return t.Schema, nil }

// knownFields are those that Message has names for.
var knownFields = map[string]bool{"role": true, "content": true, "name": true, "reasoning_content": true,
	"reasoning": true, "thinking": true, "tool_calls": true, "tool_call_id": true}

// UnmarshalJSON reads a message of the chat API: content is a string, null or a
// list of parts; reasoning goes by any of its three names. Null fields count as
// missing.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var w struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		Name       string          `json:"name"`
		Reasoning1 *string         `json:"reasoning_content"`
		Reasoning2 *string         `json:"thinking"`
		Reasoning3 *string         `json:"reasoning"`
		ToolCalls  []ToolCall      `json:"tool_calls"`
		ToolCallID string          `json:"tool_call_id"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return fieldError("", "tool_calls", err)
	}
	*m = Message{Role: w.Role, Name: w.Name, ToolCalls: w.ToolCalls, ToolCallID: w.ToolCallID}
	for _, r := range []*string{w.Reasoning1, w.Reasoning2, w.Reasoning3} {
		if r != nil {
			m.Reasoning = *r
			break
		}
	}
	if err := m.setContent(w.Content); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("chat: message: %w", err)
	}
	for name, v := range all {
		if knownFields[name] || isNull(v) {
			continue
		}
		if m.Extra == nil {
			m.Extra = map[string]json.RawMessage{}
		}
		m.Extra[name] = v
	}
	return nil
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

func (m *Message) setContent(raw json.RawMessage) error {
	switch {
	case isNull(raw):
		m.NoContent = true
		return nil
	case bytes.TrimSpace(raw)[0] == '[':
		return m.setParts(raw)
	}
	err := json.Unmarshal(raw, &m.Content)
	if f := FieldErrorOf("content", err); f != nil {
		f.Want = "a string or a list of parts"
		return f
	}
	return err
}

func (m *Message) setParts(raw json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return fieldError("content", "", err)
	}
	m.Parts = make([]Part, len(list))
	for i, part := range list {
		if err := m.Parts[i].UnmarshalJSON(part); err != nil {
			return fieldError(fmt.Sprintf("content[%d]", i), "", err)
		}
	}
	return nil
}

// UnmarshalJSON reads a part of the chat API.
func (p *Part) UnmarshalJSON(raw []byte) error {
	var w struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*p = Part{Type: w.Type}
	if w.Type == "text" && w.Text != nil {
		p.Text = *w.Text
		return nil
	}
	p.Raw = append(p.Raw, raw...)
	return nil
}

// UnmarshalJSON reads a tool call of the chat API, or one without the wrapper
// "function".
func (c *ToolCall) UnmarshalJSON(raw []byte) error {
	type function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	var w struct {
		ID       string    `json:"id"`
		Function *function `json:"function"`
		function
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return fieldError("", "", err)
	}
	f := w.function
	if w.Function != nil {
		f = *w.Function
	}
	*c = ToolCall{ID: w.ID, Name: f.Name, Arguments: f.Arguments}
	return nil
}
