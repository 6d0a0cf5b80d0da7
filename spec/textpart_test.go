package spec

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/tensor"
)

// within returns the files of a larger model that holds f's text model: its
// configuration under key, its tensors renamed.
func within(f *shapeFiles, key string, rename func(string) string) *shapeFiles {
	inner := maps.Clone(f.config)
	delete(inner, "architectures")
	g := &shapeFiles{binding: HF, tensors: map[string]tensor.View{}, config: map[string]any{
		"model_type": "sight_and_text", "architectures": []any{"SightForConditionalGeneration"}, key: inner, "vision_config": map[string]any{"hidden_size": json.Number("5")},
	}}
	for n, v := range f.tensors {
		v.Name = rename(n)
		g.tensors[v.Name] = v
	}
	v := f.tensors["model.norm.weight"]
	v.Name = "vision_tower.layers.0.norm.weight"
	g.tensors[v.Name] = v
	return g
}

// TestTextPart serves the text model of files that hold other parts too, under
// the names and keys that such folders have.
func TestTextPart(t *testing.T) {
	alone, err := resolveAndTrace(loadShapes(t, "llama.hf"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	inner := func(model, rest string) func(string) string {
		return func(n string) string {
			if tail, ok := strings.CutPrefix(n, "model."); ok {
				return model + tail
			}
			return rest + n
		}
	}
	for name, f := range map[string]*shapeFiles{
		"model.language_model": within(loadShapes(t, "llama.hf"), "text_config", inner("model.language_model.", "")),
		"language_model.model": within(loadShapes(t, "llama.hf"), "text_config", inner("language_model.model.", "language_model.")),
		"text_model":           within(loadShapes(t, "llama.hf"), "text_config", inner("model.text_model.", "")),
		"llm":                  within(loadShapes(t, "llama.hf"), "llm_config", inner("llm.model.", "llm.")),
		"none":                 within(loadShapes(t, "llama.hf"), "text_config", inner("model.", "")),
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := resolveAndTrace(f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if tr.SpecName != alone.SpecName || len(tr.Graph.Nodes) != len(alone.Graph.Nodes) {
				t.Errorf("specification %s with %d operations, expected %s with %d", tr.SpecName, len(tr.Graph.Nodes), alone.SpecName, len(alone.Graph.Nodes))
			}
			if len(tr.Notes) != 1 || !strings.Contains(tr.Notes[0], "vision_tower") || len(tr.Ignored) != 1 {
				t.Errorf("notes %q and ignored tensors %q do not tell what is left out", tr.Notes, tr.Ignored)
			}
			for _, n := range tr.Graph.Nodes {
				a, ok := n.Attr.(*graph.LinearAttr)
				if !ok {
					continue
				}
				for _, w := range a.W.Tensors(nil) {
					if _, ok := f.tensors[w]; !ok {
						t.Errorf("the graph reads %s, which is not stored", w)
					}
				}
			}
		})
	}
}

// TestTextPartKeys leaves to the text model's class what its part of the
// configuration is silent on: the same key of the whole model is another part's.
func TestTextPartKeys(t *testing.T) {
	f := within(loadShapes(t, "llama.hf"), "text_config", func(n string) string { return n })
	f.config["head_dim"], f.config["rope_theta"] = json.Number("1280"), json.Number("5")
	delete(f.config["text_config"].(map[string]any), "head_dim")
	if _, err := resolveAndTrace(f, Options{}); err != nil {
		t.Error(err)
	}
}

// TestTextPartUnknown names the whole model where neither it nor its text part is known.
func TestTextPartUnknown(t *testing.T) {
	f := within(loadShapes(t, "llama.hf"), "text_config", func(n string) string { return n })
	f.config["text_config"].(map[string]any)["model_type"] = "unheard_of"
	if _, err := resolveAndTrace(f, Options{}); err == nil || !strings.Contains(err.Error(), "sight_and_text") {
		t.Errorf("got %v", err)
	}
}
