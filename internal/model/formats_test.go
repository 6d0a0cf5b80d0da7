package model_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/internal/weight"
	"github.com/inferflow/inferflow/tokenizer"
)

// TestExports holds exports of llama2.c in their three layouts against
// PyTorch's logits of the last position (format/llama2c/testdata/golden.py).
func TestExports(t *testing.T) {
	dir := filepath.Join("..", "..", "format", "llama2c", "testdata")
	raw, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		IDs    []int32                `json:"input_ids"`
		Logits map[string][][]float32 `json:"logits"`
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	for name, want := range g.Logits {
		t.Run(name, func(t *testing.T) {
			m, err := model.Open(filepath.Join(dir, name), model.Options{Threads: 2, Keys: "f32", Values: "f32"})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			exact, err := m.Exact().Run(sequence(g.IDs, 0, len(g.IDs)))
			if err != nil {
				t.Fatal(err)
			}
			within(t, "exact", exact[len(exact)-1:], want, 1e-5)
			ids := m.Tokenizer.Encode("and the inn", tokenizer.Options{AddSpecial: true})
			if text := m.Tokenizer.Decode(ids, true); len(ids) != 6 || text != "and the inn" {
				t.Errorf("ids %v, back %q", ids, text)
			}
		})
	}
}

// TestNaN: a weight that is no number ends the loading, and the exact way, by name.
func TestNaN(t *testing.T) {
	for _, name := range []string{"blk.1.ffn_up.weight", "blk.0.attn_norm.weight"} {
		path := modeltest.Write(t, t.TempDir(), modeltest.Options{Edit: func(n string, v []float32) {
			if n == name {
				v[3] = float32(math.NaN())
			}
		}})
		m, err := model.Open(path, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Load(); !errors.Is(err, weight.ErrNaN) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error that names %s", err, name)
		}
		if _, err := m.Exact().Run(sequence([]int32{1, 2}, 0, 2)); !errors.Is(err, weight.ErrNaN) || !strings.Contains(err.Error(), name) {
			t.Errorf("exact: got %v, want an error that names %s", err, name)
		}
		m.Close()
	}
}
