package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// alike is how near a conversion's exact logits are to those of its source, as a
// part of the largest: numbers that GGUF holds otherwise are rounded to float32
// there and back.
const alike = 1e-5

// sameAnswer converts a folder to GGUF, and that to another GGUF file, and holds
// the exact logits of both against the folder's.
func sameAnswer(t *testing.T, in string, g golden, o Options) (file string) {
	t.Helper()
	dir := t.TempDir()
	file, again := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "again.gguf")
	if err := errors.Join(Run(in, file, o), Run(file, again, o)); err != nil {
		t.Fatal(err)
	}
	want := exactLogits(t, in, g)
	holds(t, file, exactLogits(t, file, g), want, alike)
	holds(t, again, exactLogits(t, again, g), want, alike)
	return file
}

// TestReadBack converts models whose settings GGUF says otherwise, or has no
// room for: what is written is read as what it was made of.
func TestReadBack(t *testing.T) {
	dir := zoo(t)
	for what, c := range map[string]struct {
		family string
		config map[string]any
		ids    []int32
	}{
		"factors of a long and a short text": {"minicpm3", map[string]any{"rope_parameters": nil, "rope_theta": 10000.0, "rope_scaling": map[string]any{
			"type": "longrope", "short_factor": []float64{1, 1.1, 1.2, 1.3}, "long_factor": []float64{2, 3, 4, 5}, "original_max_position_embeddings": 16}}, nil},
		"turning pairs that are scaled": {"gemma4_text", map[string]any{"rope_parameters": map[string]any{
			"full_attention":    map[string]any{"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1000.0, "factor": 2.0},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 10000.0}}}, nil},
		"padding inside a text": {"roberta", map[string]any{"pad_token_id": 7}, []int32{5, 7, 9, 7, 7, 11, 3, 12}},
	} {
		t.Run(what, func(t *testing.T) {
			from := filepath.Join(dir, c.family)
			raw, err := os.ReadFile(filepath.Join(from, "config.json"))
			var config map[string]any
			if err == nil {
				err = json.Unmarshal(raw, &config)
			}
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(config, c.config)
			if raw, err = json.Marshal(config); err != nil {
				t.Fatal(err)
			}
			g := readGolden(t, filepath.Join(from, "golden.json"))
			if c.ids != nil {
				g.IDs = c.ids
			}
			sameAnswer(t, copyFolder(t, from, map[string]string{"config.json": string(raw)}), g, Options{})
		})
	}
}

// TestCommitted converts the tiny models that lie in the repository.
func TestCommitted(t *testing.T) {
	count := 0
	err := filepath.WalkDir(filepath.Join("..", "model", "testdata"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "golden.json" {
			return err
		}
		in := filepath.Dir(path)
		count++
		t.Run(filepath.Base(in), func(t *testing.T) { sameAnswer(t, in, readGolden(t, path), Options{}) })
		return nil
	})
	if err != nil || count < 20 {
		t.Errorf("%d models: %v", count, err)
	}
}

// TestEmpty takes a tensor without values, of a layer that has no width, to
// GGUF, which has no room for it, and back.
func TestEmpty(t *testing.T) {
	from, in, name := filepath.Join(zoo(t), "gptj"), t.TempDir(), "transformer.h.0.attn.bias"
	g := readGolden(t, filepath.Join(from, "golden.json"))
	f, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &safetensors.Writer{}
	for _, v := range append(slices.Clone(f.Tensors()), tensor.View{Name: name, Type: quant.F32, Shape: tensor.Shape{0, 3}}) {
		if err := w.Add(v.Name, v.Type, v.Shape, func(out io.Writer) error { _, err := out.Write(v.Data); return err }); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(in, "config.json"), config, 0o666), w.WriteFile(filepath.Join(in, weightsFile)))
	}
	if err != nil {
		t.Fatal(err)
	}
	sameAnswer(t, in, g, Options{})
	file, back := filepath.Join(in, "m.gguf"), t.TempDir()
	if err := errors.Join(Run(in, file, Options{}), Run(file, back, Options{})); err != nil {
		t.Fatal(err)
	}
	b, err := safetensors.Open(back)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if v, ok := b.Tensor(name); !ok || !v.Shape.Equal(tensor.Shape{0, 3}) {
		t.Errorf("%v of %s came back", v.Shape, name)
	}
}

// TestOthersForm writes models under architectures of llama.cpp whose files say
// otherwise what the folder holds as tensors, or lack a part of it.
func TestOthersForm(t *testing.T) {
	in := filepath.Join(zoo(t), "apertus1p5_text")
	var told []string
	file := sameAnswer(t, in, readGolden(t, filepath.Join(in, "golden.json")), Options{Notice: func(s string) { told = append(told, s) }})
	f, err := gguf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := safetensors.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := f.Meta.Floats("xielu.alpha_n")
	if err != nil || len(told) > 0 {
		t.Fatalf("%v, told %q", err, told)
	}
	for i, got := range list {
		v, _ := s.Tensor(fmt.Sprintf("model.layers.%d.mlp.act_fn.alpha_n", i))
		want := make([]float32, 1)
		if err := v.Type.Decode(want, v.Data); err != nil || float64(got) != float64(want[0]) {
			t.Errorf("layer %d: %v, want %v: %v", i, got, want, err)
		}
	}
}
