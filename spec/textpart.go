package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// textFiles are the files of a model of text, images and sound as its text
// model sees them: the configuration stands under a key of config.json, the
// tensors under a prefix, and those of the other parts are not there.
type textFiles struct {
	Files
	key    string
	config map[string]any
}

func (f *textFiles) Config() map[string]any { return f.config }

// textKeys are the keys under which config.json holds the text model's part.
var textKeys = []string{"text_config", "llm_config", "language_config", "thinker_config"}

// textPrefixes are beginnings of tensor names: the text model's own on the
// left, that of files which hold other parts too on the right.
var textPrefixes = [][2]string{
	{"model.", "model.language_model."}, {"", "language_model."}, {"model.", "language_model."},
	{"model.", "model.text_model."}, {"model.", "text_model."}, {"", "text_model."}, {"", "llm."}, {"", "thinker."},
	{"model.layers.", "language_model.model.blocks."}, {"model.layers.", "language_model.model.encoder.layers."}, // as the reference writes some
}

// ownKeys are about the part that they stand in: what the whole model says under
// them is about another part, and where the text model is silent its class decides.
var ownKeys = []string{
	"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_act",
	"max_position_embeddings", "rope_theta", "rope_parameters", "rope_scaling", "partial_rotary_factor", "layer_types", "sliding_window", "attention_bias", "mlp_bias", "is_causal",
}

// innerText finds the text model in the files of a larger one; nil where there
// is none. Keys that the part lacks are the whole model's, but for ownKeys.
func innerText(files Files) *textFiles {
	if files.Binding() != HF {
		return nil
	}
	outer := files.Config()
	for _, key := range textKeys {
		inner, ok := outer[key].(map[string]any)
		if !ok {
			continue
		}
		if deeper, ok := inner["text_config"].(map[string]any); ok {
			inner = deeper
		}
		if _, named := inner["model_type"].(string); !named {
			continue
		}
		config := maps.Clone(outer)
		delete(config, "architectures")
		for _, k := range slices.Concat(textKeys, ownKeys) {
			delete(config, k)
		}
		maps.Copy(config, inner)
		return &textFiles{Files: files, key: key, config: config}
	}
	return nil
}

// otherParts lists the stored tensors that are not the text model's. Files
// without any of the prefixes name it as if it stood alone.
func otherParts(stored []string) []string {
	standing := []string{"lm_head."}
	for _, p := range textPrefixes {
		standing = append(standing, p[1])
	}
	last := "\x00" // of the list, what the name before began with: thousands follow each other
	begins := func(name string, list []string) bool {
		if strings.HasPrefix(name, last) {
			return true
		}
		i := slices.IndexFunc(list, func(p string) bool { return strings.HasPrefix(name, p) })
		if i >= 0 {
			last = list[i]
		}
		return i >= 0
	}
	if !slices.ContainsFunc(stored, func(n string) bool { return begins(n, standing[1:]) }) {
		standing = append(standing, "model.layers.", "model.embed_tokens.", "model.norm.", "transformer.")
	}
	var others []string
	for _, n := range stored {
		if !begins(n, standing) {
			others = append(others, n)
		}
	}
	return others
}

// takeText prepares a trace of the text part: its names, and a note of what
// is left out.
func (t *tracer) takeText(f *textFiles) {
	t.names.prefixes = append(t.names.prefixes, textPrefixes...)
	others := otherParts(t.stored)
	for _, n := range others {
		t.others[n] = true
	}
	if len(others) > 0 {
		t.partNote = fmt.Sprintf("only the text model is served, the one of %s; %d tensors of other parts are left out (such as %s)", f.key, len(others), others[0])
	}
}
