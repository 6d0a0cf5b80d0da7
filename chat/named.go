package chat

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// DefaultName is the name of a model's only or usual template.
const DefaultName = "default"

// toolsName is the name of the template for requests with tools.
const toolsName = "tool_use"

// Named reads the field chat_template of a tokenizer_config.json: one template
// as a string, or a list of {"name", "template"}. A missing field gives none.
func Named(raw json.RawMessage) (map[string]string, error) {
	if isNull(raw) {
		return nil, nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return map[string]string{DefaultName: one}, nil
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("chat: chat_template is neither a string nor a list of names and templates: %w", err)
	}
	out := make(map[string]string, len(list))
	for i, t := range list {
		if t.Name == "" || out[t.Name] != "" {
			return nil, fmt.Errorf("chat: chat_template: entry %d has no name of its own", i)
		}
		out[t.Name] = t.Template
	}
	return out, nil
}

// Choose gives the source of the template for a request, as transformers does:
// the one for tools if there are tools and such a template, else the default,
// else the only one. No templates at all give "", which ParseAny takes.
func Choose(named map[string]string, tools bool) (string, error) {
	if t, ok := named[toolsName]; ok && tools {
		return t, nil
	}
	if t, ok := named[DefaultName]; ok || len(named) == 0 {
		return t, nil
	}
	names := make([]string, 0, len(named))
	for name := range named {
		names = append(names, name)
	}
	if len(names) == 1 {
		return named[names[0]], nil
	}
	sort.Strings(names)
	return "", fmt.Errorf("chat: the model has no default template: choose one of %.400s", strings.Join(names, ", "))
}
