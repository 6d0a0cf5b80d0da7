package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/inferflow/inferflow/chat/jinja"
)

// plainRoles are names of roles that may be part of a special token, as in
// "<|" + role + "|>". Any other role is text of the conversation.
var plainRoles = map[string]bool{"system": true, "user": true, "assistant": true, "tool": true,
	"developer": true, "function": true, "ipython": true, "model": true, "environment": true,
	"observation": true, "context": true, "document": true, "documents": true, "query": true}

// fixedVariables are those that a request's own variables may not replace.
var fixedVariables = map[string]bool{"messages": true, "tools": true, "add_generation_prompt": true,
	"bos_token": true, "eos_token": true}

// variables makes what the template sees. The mark is what stands behind the
// last message if that is to be continued.
func (t *Template) variables(in Input) (*jinja.Dict, string, error) {
	msgs := t.arrange(in.Messages)
	if in.ContinueFinal {
		var err error
		if msgs, err = marked(msgs); err != nil {
			return nil, "", err
		}
	}
	vars := jinja.NewDict()
	list := make([]jinja.Value, len(msgs))
	for i, m := range msgs {
		v, err := t.message(m)
		if err != nil {
			return nil, "", fmt.Errorf("message %d: %w", i, err)
		}
		list[i] = v
	}
	vars.Set("messages", jinja.ListOf(list...))
	vars.Set("tools", jinja.None{})
	if len(in.Tools) > 0 {
		tools := make([]jinja.Value, len(in.Tools))
		for i, tool := range in.Tools {
			v, err := jinja.FromJSON(tool.Schema, true)
			if err != nil {
				return nil, "", fmt.Errorf("tool %d: %w", i, err)
			}
			tools[i] = v
		}
		vars.Set("tools", jinja.ListOf(tools...))
	}
	vars.Set("documents", jinja.None{})
	vars.Set("add_generation_prompt", in.AddGenerationPrompt)
	if in.BOS != "" {
		vars.Set("bos_token", jinja.Text(in.BOS, false))
	}
	if in.EOS != "" {
		vars.Set("eos_token", jinja.Text(in.EOS, false))
	}
	for name, text := range in.Tokens {
		vars.Set(name, jinja.Text(text, false))
	}
	for name, x := range in.Extra {
		if fixedVariables[name] || in.Tokens[name] != "" {
			return nil, "", fmt.Errorf("%w %.60q: it cannot be set by a request", ErrVariable, name)
		}
		v, err := jinja.FromGo(x, true)
		if err != nil {
			return nil, "", fmt.Errorf("%w %.60q: %w", ErrVariable, name, err)
		}
		vars.Set(name, v)
	}
	return vars, continueMark, nil
}

// arrange applies the options on roles.
func (t *Template) arrange(msgs []Message) []Message {
	out := make([]Message, 0, len(msgs))
	for _, m := range msgs {
		if m.Role == "developer" && t.opts.DeveloperRole != "" {
			m.Role = t.opts.DeveloperRole
		}
		if m.Role == "developer" && t.lateDeveloper && len(out) > 0 {
			m.Role = "system"
		}
		if m.Role == "system" && len(out) > 0 {
			switch t.opts.LateSystem {
			case LateSystemUser:
				m.Role = "user"
			case LateSystemMerge:
				out = mergeSystem(out, m)
				continue
			}
		}
		out = append(out, m)
	}
	if t.opts.SystemInUser {
		return systemInUser(out)
	}
	return out
}

// systemInUser turns system messages into the beginning of the next message of
// the user, or into one of its own where none follows.
func systemInUser(msgs []Message) []Message {
	out := msgs[:0]
	var waiting *Message
	for _, m := range msgs {
		if m.Role == "system" {
			m.Role = "user"
			if waiting == nil {
				waiting = &m
			} else {
				join(waiting, m)
			}
			continue
		}
		if waiting != nil && m.Role == "user" {
			join(waiting, m)
			m.Content, m.Parts, m.NoContent = waiting.Content, waiting.Parts, false
			waiting = nil
		}
		out = append(out, m)
	}
	if waiting != nil {
		out = append(out, *waiting)
	}
	return out
}

// mergeSystem adds a system message to the first one, or to the developer's in
// its place, making it if need be.
func mergeSystem(msgs []Message, m Message) []Message {
	if r := msgs[0].Role; r != "system" && r != "developer" {
		return append([]Message{m}, msgs...)
	}
	join(&msgs[0], m)
	return msgs
}

// join adds the content of m to first, with a blank line between.
func join(first *Message, m Message) {
	if first.Parts == nil && m.Parts == nil {
		first.Content += "\n\n" + m.Content
		return
	}
	parts := func(m Message) []Part {
		if m.Parts != nil {
			return m.Parts
		}
		return []Part{{Type: "text", Text: m.Content}}
	}
	joined := append(append([]Part(nil), parts(*first)...), Part{Type: "text", Text: "\n\n"})
	first.Parts = append(joined, parts(m)...)
}

// marked puts the mark behind the text of the last message.
func marked(msgs []Message) ([]Message, error) {
	if len(msgs) == 0 {
		return nil, fmt.Errorf("continue the last message: there is none")
	}
	out := append([]Message(nil), msgs...)
	last := &out[len(out)-1]
	if last.Parts == nil {
		last.Content += continueMark
		last.NoContent = false
		return out, nil
	}
	last.Parts = append([]Part(nil), last.Parts...)
	for i := len(last.Parts) - 1; i >= 0; i-- {
		if last.Parts[i].Type == "text" {
			last.Parts[i].Text += continueMark
			return out, nil
		}
	}
	return nil, fmt.Errorf("continue the last message: it has no text")
}

// message makes the dict that templates expect. Reasoning goes by the two names
// that templates read, as in transformers.
func (t *Template) message(m Message) (jinja.Value, error) {
	d := jinja.NewDict()
	if m.Reasoning != "" {
		d.Set("thinking", jinja.Text(m.Reasoning, true))
	}
	d.Set("role", jinja.Text(m.Role, !plainRoles[m.Role]))
	switch {
	case m.Parts != nil:
		parts, err := partList(m.Parts)
		if err != nil {
			return nil, err
		}
		d.Set("content", parts)
	case !m.NoContent:
		d.Set("content", jinja.Text(m.Content, true))
	}
	if m.Name != "" {
		d.Set("name", jinja.Text(m.Name, true))
	}
	if len(m.ToolCalls) > 0 {
		calls, err := t.toolCalls(m.ToolCalls)
		if err != nil {
			return nil, err
		}
		d.Set("tool_calls", calls)
	}
	if m.ToolCallID != "" {
		d.Set("tool_call_id", jinja.Text(m.ToolCallID, true))
	}
	names := make([]string, 0, len(m.Extra))
	for name := range m.Extra {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		v, err := jinja.FromJSON(m.Extra[name], true)
		if err != nil {
			return nil, fmt.Errorf("field %.60q: %w", name, err)
		}
		d.Set(name, v)
	}
	if m.Reasoning != "" {
		d.Set("reasoning_content", jinja.Text(m.Reasoning, true))
	}
	return d, nil
}

func partList(parts []Part) (jinja.Value, error) {
	out := make([]jinja.Value, len(parts))
	for i, p := range parts {
		if p.Raw != nil {
			v, err := jinja.FromJSON(p.Raw, true)
			if err != nil {
				return nil, fmt.Errorf("part %d: %w", i, err)
			}
			out[i] = v
			continue
		}
		d := jinja.NewDict()
		d.Set("type", jinja.Text(p.Type, p.Type != "text"))
		d.Set("text", jinja.Text(p.Text, true))
		out[i] = d
	}
	return jinja.ListOf(out...), nil
}

func (t *Template) toolCalls(calls []ToolCall) (jinja.Value, error) {
	out := make([]jinja.Value, len(calls))
	for i, c := range calls {
		args, err := t.arguments(c.Arguments)
		if err != nil {
			return nil, fmt.Errorf("tool call %d: arguments: %w", i, err)
		}
		f := jinja.NewDict()
		f.Set("name", jinja.Text(c.Name, true))
		f.Set("arguments", args)
		d := jinja.NewDict()
		if c.ID != "" {
			d.Set("id", jinja.Text(c.ID, true))
		}
		d.Set("type", jinja.Text("function", false))
		d.Set("function", f)
		out[i] = d
	}
	return jinja.ListOf(out...), nil
}

// arguments gives a call's arguments in the form that the template can print.
func (t *Template) arguments(raw json.RawMessage) (jinja.Value, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	var text string
	isText := raw[0] == '"'
	if isText {
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
	}
	if t.opts.Arguments == ArgumentsText {
		if !isText {
			text = string(raw)
		}
		return jinja.Text(text, true), nil
	}
	if inner := strings.TrimSpace(text); isText && strings.HasPrefix(inner, "{") {
		if v, err := jinja.FromJSON([]byte(inner), true); err == nil {
			return v, nil
		}
	}
	return jinja.FromJSON(raw, true)
}
