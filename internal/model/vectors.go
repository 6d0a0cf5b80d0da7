package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/spec"
)

// Vectors says how texts become vectors, and where each value came from; nil
// where the model was not opened for spec.OutputEmbedding.
func (m *Model) Vectors() []spec.ConfigValue {
	if m.o.Output != spec.OutputEmbedding {
		return nil
	}
	var out []spec.ConfigValue
	say := func(key string, v any, source string) {
		out = append(out, spec.ConfigValue{Key: key, Value: v, Source: source})
	}
	source := "modules.json"
	if m.files.meta != nil {
		source = "gguf"
	}
	steps, _ := m.files.folderConfig()[SentenceKey].([]any)
	for _, s := range steps {
		step, _ := s.(map[string]any)
		kind, _ := step["kind"].(string)
		switch kind {
		case "pooling":
			say("pooling", step["how"], source)
		case "normalize":
			say("length", 1, source)
		default:
			say(kind, step["name"], source)
		}
	}
	switch {
	case len(steps) > 0:
	case m.meanByDefault():
		say("pooling", "mean", "default, for the files say nothing")
	default:
		say("pooling", "as the specification says", m.Traced.SpecName)
	}
	s := &m.Sentence
	if s.MaxTokens > 0 {
		say("longest text", fmt.Sprintf("%d tokens", s.MaxTokens), "sentence-transformers or tokenizer_config.json")
	}
	if s.Dimensions > 0 {
		say("dimensions", s.Dimensions, "config_sentence_transformers.json")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Prompts)) {
		key := "prompt " + name
		if name == s.DefaultPrompt {
			key += " (default)"
		}
		say(key, strings.ToValidUTF8(s.Prompts[name], "\uFFFD"), "config_sentence_transformers.json")
	}
	return out
}
