package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// rename gives every tensor another name; "" drops it.
func (f *shapeFiles) rename(change func(string) string) {
	out := map[string]tensor.View{}
	for n, v := range f.tensors {
		if m := change(n); m != "" {
			v.Name = m
			out[m] = v
		}
	}
	f.tensors = out
}

// sameGraph holds two traces against each other, names of tensors apart.
func sameGraph(t *testing.T, a, b *graph.Graph) {
	t.Helper()
	if len(a.Nodes) != len(b.Nodes) {
		t.Fatalf("%d operations, expected %d", len(b.Nodes), len(a.Nodes))
	}
	for i, n := range a.Nodes {
		if m := b.Nodes[i]; n.Op != m.Op || fmt.Sprint(n.Shape, n.In) != fmt.Sprint(m.Shape, m.In) {
			t.Fatalf("node %d: %s %v, expected %s %v", i, m.Op, m.Shape, n.Op, n.Shape)
		}
	}
}

// TestPublishedForms traces the same model as different publishers store it.
func TestPublishedForms(t *testing.T) {
	for name, c := range map[string]struct {
		shapes string
		change func(f *shapeFiles)
	}{
		"no prefix, mask buffers": {"gpt2.hf", func(f *shapeFiles) {
			f.rename(func(n string) string { return strings.TrimPrefix(n, "transformer.") })
			f.tensors["h.0.attn.bias"] = tensor.View{Type: quant.F32, Shape: tensor.Shape{1, 1, 128, 128}}
			f.tensors["h.0.attn.masked_bias"] = tensor.View{Type: quant.F32, Shape: tensor.Shape{}}
		}},
		"inside a multimodal model": {"gemma3_text.hf", func(f *shapeFiles) {
			f.config = map[string]any{"model_type": "gemma3", "text_config": f.config}
			f.rename(func(n string) string { return "language_model." + n })
			f.tensors["vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight"] = tensor.View{Type: quant.F32, Shape: tensor.Shape{4, 4}}
			f.tensors["multi_modal_projector.mm_soft_emb_norm.weight"] = tensor.View{Type: quant.F32, Shape: tensor.Shape{4}}
		}},
		"old rope keys": {"gemma3_text.hf", func(f *shapeFiles) {
			delete(f.config, "rope_parameters")
			f.config["rope_theta"], f.config["rope_local_base_freq"] = 1e6, 1e4
		}},
		"experts one by one in GGUF": {"mixtral.gguf", func(f *shapeFiles) {
			for n, v := range f.tensors {
				base, ok := strings.CutSuffix(n, "_exps.weight")
				if !ok {
					continue
				}
				delete(f.tensors, n)
				for e := range 4 {
					f.tensors[fmt.Sprintf("%s.%d.weight", base, e)] = tensor.View{Type: v.Type, Shape: v.Shape[1:]}
				}
			}
		}},
		"only the head is stored": {"qwen2.hf", func(f *shapeFiles) {
			f.rename(func(n string) string { return strings.Replace(n, "model.embed_tokens", "lm_head", 1) })
		}},
		"biases in GGUF": {"llama.gguf", func(f *shapeFiles) {
			for i := range 3 {
				for name, n := range map[string]int{"q": 48, "k": 16, "v": 16, "output": 48} {
					f.tensors[fmt.Sprintf("blk.%d.attn_%s.bias", i, name)] = tensor.View{Type: quant.F32, Shape: tensor.Shape{n}}
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := resolveAndTrace(loadShapes(t, c.shapes), Options{})
			if err != nil {
				t.Fatal(err)
			}
			f := loadShapes(t, c.shapes)
			c.change(f)
			got, err := resolveAndTrace(f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			sameGraph(t, want.Graph, got.Graph)
			if name == "old rope keys" && graph.Text(got.Graph, graph.PrintOptions{}) != graph.Text(want.Graph, graph.PrintOptions{}) {
				t.Error("the tables differ")
			}
		})
	}
}

// TestUnread names configuration that the specification forgot.
func TestUnread(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	f.config["residual_multiplier"] = 0.5
	tr, err := resolveAndTrace(f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(tr.Unread, " "), "residual_multiplier") || strings.Contains(strings.Join(tr.Unread, " "), "rope_parameters") {
		t.Errorf("got %q", tr.Unread)
	}
}
