package convert

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// rowsOf are the values of an output for a few tokens, computed exactly.
func rowsOf(t *testing.T, path, output string) [][]float32 {
	t.Helper()
	m, err := model.Open(path, model.Options{Threads: 2, NoTokenizer: true, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b := &batch.Batch{Tokens: []int32{5, 17, 80, 3}, Pos: []int32{0, 1, 2, 3}, Out: []int32{0, 1, 2, 3}}
	b.Seqs = []batch.Seq{{N: 4, Length: 4, Spans: []batch.Span{{N: 4}}}}
	if output == spec.OutputEmbedding {
		b.Out = b.Out[3:]
	}
	rows, err := m.Exact().Run(b)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func near(t *testing.T, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i, row := range want {
		for k, v := range row {
			if !(math.Abs(float64(v-got[i][k])) <= 1e-5) {
				t.Fatalf("row %d, column %d is %g, want %g", i, k, got[i][k], v)
			}
		}
	}
}

// TestEncoders holds encoders without their heads for a masked word, which
// GGUF has no tensors for, against the folders: the same rows, and a notice.
func TestEncoders(t *testing.T) {
	dir, out := zoo(t), t.TempDir()
	for _, name := range []string{"bert", "modernbert", "nomic_bert", "eurobert"} {
		told := ""
		file := filepath.Join(out, name+".gguf")
		if err := Run(filepath.Join(dir, name), file, Options{Notice: func(s string) { told += s + "\n" }}); err != nil {
			t.Fatal(name, err)
		}
		if strings.Count(told, "\n") != 1 || !strings.Contains(told, "layers: those for words (logits)") {
			t.Errorf("%s: told %q", name, told)
		}
		near(t, rowsOf(t, file, "hidden"), rowsOf(t, filepath.Join(dir, name), "hidden"))
	}
}

// TestModules converts a folder of sentence-transformers there and back: the
// ways of pooling and normalisation stay.
func TestModules(t *testing.T) {
	dir, in, out := filepath.Join(zoo(t), "bert"), t.TempDir(), t.TempDir()
	files := map[string]string{
		"modules.json": `[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
			{"path":"2_Normalize","type":"sentence_transformers.models.Normalize"}]`,
		"1_Pooling/config.json": `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`,
	}
	for _, name := range []string{"config.json", "model.safetensors"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(raw)
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(in, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(in, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, back := filepath.Join(out, "m.gguf"), filepath.Join(out, "back")
	if err := Run(in, file, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Run(file, back, Options{}); err != nil {
		t.Fatal(err)
	}
	want := rowsOf(t, in, spec.OutputEmbedding)
	near(t, rowsOf(t, file, spec.OutputEmbedding), want)
	near(t, rowsOf(t, back, spec.OutputEmbedding), want)
	raw, err := os.ReadFile(filepath.Join(back, "config.json"))
	var c map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil || c[model.SentenceKey] != nil {
		t.Errorf("config.json: %v, %v", err, c[model.SentenceKey])
	}
}

// TestOrders holds models whose value heads, latents and per-layer settings
// llama.cpp's converter writes otherwise than the folder, against PyTorch.
func TestOrders(t *testing.T) {
	dir := zoo(t)
	for _, family := range []string{"qwen3_next", "qwen3_5_moe_text", "deepseek_v3", "kimi_linear", "gemma4_text", "granitemoehybrid"} {
		file := filepath.Join(t.TempDir(), "m.gguf")
		if err := Run(filepath.Join(dir, family), file, Options{Notice: func(s string) { t.Error(family, s) }}); err != nil {
			t.Fatal(family, err)
		}
		answers(t, file, readGolden(t, filepath.Join(dir, family, "golden.json")))
	}
}
