package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// headerOnly writes a folder of two layers with the header of its tensors and
// none of their bytes; edit changes shapes before.
func headerOnly(t *testing.T, edit func(shapes map[string][]int)) string {
	t.Helper()
	dir := t.TempDir()
	config := `{"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12, "vocab_size": 16, "mystery": 3}`
	shapes := map[string][]int{"model.embed_tokens.weight": {16, 8}, "model.norm.weight": {8}}
	for i := range 2 {
		l := fmt.Sprintf("model.layers.%d.", i)
		shapes[l+"input_layernorm.weight"], shapes[l+"post_attention_layernorm.weight"] = []int{8}, []int{8}
		for _, p := range []string{"q", "k", "v", "o"} {
			shapes[l+"self_attn."+p+"_proj.weight"] = []int{8, 8}
		}
		shapes[l+"mlp.gate_proj.weight"], shapes[l+"mlp.up_proj.weight"], shapes[l+"mlp.down_proj.weight"] = []int{12, 8}, []int{12, 8}, []int{8, 12}
	}
	if edit != nil {
		edit(shapes)
	}
	entries := map[string]any{}
	for name, s := range shapes {
		entries[name] = map[string]any{"dtype": "F32", "shape": s, "data_offsets": []int{0, 0}}
	}
	header, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for name, b := range map[string][]byte{"config.json": []byte(config), "model.safetensors": data} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func checked(t *testing.T, dir string) checkResult {
	t.Helper()
	s, err := model.OpenSketch(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	chosen, err := spec.Resolve(s, spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := chosen.Trace(s)
	return newCheckResult(chosen.Name, s, tr, err)
}

func TestCheckHeaders(t *testing.T) {
	r := checked(t, headerOnly(t, nil))
	if text := r.text(false); !r.Fits || !strings.Contains(text, "llama fits: ") || !strings.Contains(text, "nothing asked for: mystery\n") {
		t.Errorf("got %s", text)
	}
	r = checked(t, headerOnly(t, func(s map[string][]int) {
		for i := range 2 {
			delete(s, fmt.Sprintf("model.layers.%d.self_attn.v_proj.weight", i))
			s[fmt.Sprintf("model.layers.%d.self_attn.value.weight", i)] = []int{8, 8}
		}
		s["model.layers.1.mlp.down_proj.weight"] = []int{8, 13}
	}))
	text := r.text(false)
	for _, want := range []string{
		"files lack (2)\n  llama.star:", ": missing tensor model.layers.0.self_attn.v_proj.weight (in @std/blocks.star:", "(and 1 more of the kind)\n",
		"does not read (2)\n  unused tensor model.layers.0.self_attn.value.weight F32 [8, 8] (and 1 more of the kind)\n",
		": linear: the input [12] needs a weight [out, 12], got [8 13] of model.layers.1.mlp.down_proj.weight",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if r.Fits || len(r.Problems) != 5 || r.Problems[0].Kind != spec.ProblemMissing || r.Problems[0].Line == 0 {
		t.Errorf("got %+v", r.Problems)
	}
}

func TestCheckNamesAlone(t *testing.T) {
	dir := headerOnly(t, nil)
	s, err := model.OpenSketch(dir)
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]string{"stray.weight": "a.safetensors"}
	for _, n := range s.TensorNames() {
		where[n] = "a.safetensors"
	}
	delete(where, "model.norm.weight")
	index, _ := json.Marshal(map[string]any{"weight_map": where})
	if err := os.Remove(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if r := checked(t, dir); !r.Fits || !strings.Contains(r.Partly, "config.json alone") {
		t.Errorf("config.json alone: %s", r.text(false))
	}
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), index, 0o644); err != nil {
		t.Fatal(err)
	}
	r := checked(t, dir)
	text := r.text(false)
	if r.Fits || !strings.Contains(text, "missing tensor model.norm.weight") || !strings.Contains(text, "unused tensor stray.weight\n") || !strings.Contains(text, "names of the tensors alone") {
		t.Errorf("got %s", text)
	}
}
