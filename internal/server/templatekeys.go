package server

import (
	"maps"
	"slices"
)

// usualKeys are variables that clients give to any model's template.
var usualKeys = map[string]bool{"enable_thinking": true, "thinking": true, "reasoning_effort": true}

// templateKeys looks at the variables that a request gives to the chat template: one
// that the template does not name changes nothing, and is refused where it is
// probably a misspelling of one that it or many a template names, else logged.
func (v *Server) templateKeys(given map[string]any) error {
	t := v.s.Template
	if t == nil || len(given) == 0 {
		return nil
	}
	reads := map[string]bool{}
	for _, name := range t.Names() {
		reads[name] = true
	}
	known := maps.Clone(reads)
	maps.Copy(known, usualKeys)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if reads[name] || len(name) > 64 {
			continue
		}
		if usualKeys[name] {
			v.passOver("chat_template_kwargs." + name)
			continue
		}
		if meant := misspelt(name, known); meant != "" {
			return badRequest("chat_template_kwargs", "chat_template_kwargs.%s is nothing that a template reads; did you mean %s?", name, meant)
		}
		v.passOver("chat_template_kwargs." + name)
	}
	return nil
}
