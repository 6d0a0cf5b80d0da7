package spec

import (
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
)

// TestIsCausal: attention that names no mask sees both ways where the
// configuration says so, under its names in both formats; a decoder that answers does not.
func TestIsCausal(t *testing.T) {
	for _, c := range []struct {
		shapes, key string
		value       any
		want        graph.MaskKind
	}{
		{"llama.hf", "other", true, graph.MaskCausal},
		{"llama.hf", "is_causal", true, graph.MaskCausal},
		{"llama.hf", "is_causal", false, graph.MaskFull},
		{"llama.hf", "is_causal", nil, graph.MaskFull}, // as the reference reads null
		{"llama.gguf", "llama.attention.causal", false, graph.MaskFull},
		{"llama.gguf", "llama.attention.causal", true, graph.MaskCausal},
		{"bert.hf", "is_causal", true, graph.MaskFull},
		{"openai-gpt.hf", "is_causal", false, graph.MaskCausal},
	} {
		f := loadShapes(t, c.shapes)
		f.config[c.key] = c.value
		tr, err := resolveAndTrace(f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range tr.Graph.Nodes {
			if a, ok := n.Attr.(*graph.AttentionAttr); ok && a.Mask != c.want {
				t.Errorf("%s with %s = %v: the mask is %q, want %q", c.shapes, c.key, c.value, a.Mask, c.want)
				break
			}
		}
	}
}
