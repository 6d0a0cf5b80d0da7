package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestReadBack refuses specifications that read the file to be made otherwise
// than the folder, though they say the same while it is being made.
func TestReadBack(t *testing.T) {
	folder := &mirror{binding: HF, config: map[string]any{"model_type": "m", "eps": 1e-5}, views: map[string]tensor.View{}}
	for name, shape := range map[string][]int{"e.weight": {9, 4}, "n.weight": {4}, "h.weight": {9, 4}} {
		folder.views[name], folder.order = tensor.View{Name: name, Type: quant.F32, Shape: shape}, append(folder.order, name)
	}
	for _, c := range []struct{ norm, say string }{
		{`rms_norm(x, "n", c.eps)`, ""},
		{`rms_norm(x, "n", c.eps if c.binding == "hf" or c.raw("converting", False) else 0.5)`, "read back, these are others: the epsilon of norms"},
		{`rms_norm(x * 2 if c.binding == "hf" or c.raw("converting", False) else x, "n", c.eps)`, "other.star:4 computes by different steps"},
		{`rms_norm(x, tensor("n") if c.binding == "hf" or c.raw("converting", False) else tensor("n") + 1, c.eps)`, "read back, output_norm.weight is"},
	} {
		s := &Spec{Name: "other", Source: fmt.Sprintf(`serves(model_type = "m", gguf = "m")
def model(c):
    x = embed("e")
    return linear(%s, "h", bias = False)
names(gguf = {"e": "token_embd", "n": "output_norm", "h": "output"})
`, c.norm)}
		_, err := s.Rebind(folder)
		if c.say == "" && err != nil || c.say != "" && (!errors.Is(err, ErrRebind) || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v, want %q", c.norm, err, c.say)
		}
	}
}

// TestFilledNumbers writes for other readers a tensor that the folder has as a
// number of its configuration.
func TestFilledNumbers(t *testing.T) {
	folder := &mirror{binding: HF, config: map[string]any{"model_type": "m", "scale": 1.5}, views: map[string]tensor.View{}}
	folder.add("model.embed_tokens.weight", []int{9, 4})
	folder.add("model.layers.0.self_attn.q_proj.weight", []int{4, 4})
	s := &Spec{Name: "other", Source: `serves(model_type = "m", gguf = "m")
def model(c):
    x = embed("model.embed_tokens")
    for i in layers(1):
        x = linear(x, "model.layers.0.self_attn.q_proj", bias = False) * c.scale
    return linear(x, "lm_head", bias = False, tied = "model.embed_tokens")
gguf(
    override = {"scale": (lambda c: stored_numbers("model.layers.0.self_attn.q_norm")[0], "the format has it as a tensor")},
    fill = {"model.layers.{i}.self_attn.q_norm": ("model.layers.{i}.self_attn.q_proj", lambda c: [c.scale] * 4)},
)
ignore("*.attn_q_norm")
`}
	r, err := s.Rebind(folder)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Tensors, func(x ReboundTensor) bool { return x.Name == "blk.0.attn_q_norm.weight" })
	if i < 0 || !slices.Equal(r.Tensors[i].Value.Data, []float64{1.5, 1.5, 1.5, 1.5}) || len(r.Notes) > 0 {
		t.Errorf("%v, told %q", r.Tensors, r.Notes)
	}
}

// TestArchitectures writes folders under llama.cpp's names for their families.
func TestArchitectures(t *testing.T) {
	for name, want := range map[string]string{"chameleon.hf": "chameleon", "minimax.hf": "minimax-01", "jina_embeddings_v3.hf": "jina-bert-v3", "muse_glimmer.hf": "muse-glimmer"} {
		f := loadShapes(t, name)
		s, err := Resolve(f, Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		if r, err := s.Rebind(f); err != nil || r.Architecture != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
