package model_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// encoders are the families of the zoo that see a text as a whole.
var encoders = []string{"bert", "camembert", "data2vec-text", "distilbert", "electra", "ernie", "eurobert", "gte", "megatron-bert", "modernbert",
	"nomic_bert", "rembert", "roberta", "roformer", "xlm-roberta"}

// packed is a batch of whole sequences, all rows wanted.
func packed(seqs ...[]int32) *batch.Batch {
	b := &batch.Batch{}
	block := int32(0)
	for i, ids := range seqs {
		q := batch.Seq{ID: int32(i), Row: int32(b.Rows()), N: int32(len(ids)), Length: int32(len(ids)), State: -1}
		for p, id := range ids {
			b.Out = append(b.Out, int32(b.Rows()))
			b.Tokens, b.Pos = append(b.Tokens, id), append(b.Pos, int32(p))
			if p%batch.BlockTokens == 0 {
				q.Spans = append(q.Spans, batch.Span{Block: block, Pos: int32(p), N: int32(min(batch.BlockTokens, len(ids)-p))})
				block++
			}
		}
		b.Seqs = append(b.Seqs, q)
	}
	return b
}

// TestEncoders holds the masked-LM heads against PyTorch, exact and compiled,
// and a text's rows in bits against the same text among others.
func TestEncoders(t *testing.T) {
	dir := zoo(t)
	for _, family := range encoders {
		t.Run(family, func(t *testing.T) {
			g := readGolden(t, filepath.Join(dir, family, "golden.json"))
			m, err := model.Open(filepath.Join(dir, family), model.Options{NoTokenizer: true, Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if !m.Whole() {
				t.Error("the model is not taken for one that sees whole texts")
			}
			exact, err := m.Exact().Run(packed(g.IDs))
			if err != nil {
				t.Fatal(err)
			}
			closeTo(t, "exact", exact, g.Logits)
			if err := m.Load(); err != nil {
				t.Fatal(err)
			}
			alone := rowsOf(t, m, packed(g.IDs), 0, len(g.IDs))
			closeTo(t, "compiled", alone, g.Logits)
			other := append([]int32{}, g.IDs[:7]...)
			among := rowsOf(t, m, packed(other, g.IDs, other[:3]), len(other), len(g.IDs))
			for i, row := range alone {
				for k, v := range row {
					if math.Float32bits(v) != math.Float32bits(among[i][k]) {
						t.Fatalf("row %d, value %d is %g alone and %g among others", i, k, v, among[i][k])
					}
				}
			}
		})
	}
}

// rowsOf runs a batch and copies n of its rows from the given one on.
func rowsOf(t *testing.T, m *model.Model, b *batch.Batch, from, n int) (out [][]float32) {
	t.Helper()
	if err := m.Forward(b); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		out = append(out, append([]float32{}, m.Logits(from+i)...))
	}
	return out
}

func closeTo(t *testing.T, what string, got, want [][]float32) {
	t.Helper()
	top, worst := 0.0, 0.0
	for i, row := range want {
		for k, v := range row {
			top, worst = max(top, math.Abs(float64(v))), max(worst, math.Abs(float64(v)-float64(got[i][k])))
		}
	}
	if !(worst <= 1e-5*top) {
		t.Errorf("%s: off by %.1e of the largest value", what, worst/top)
	}
}

// TestSentenceFolder reads pooling, normalisation, a dense module, lengths and
// prompts from a folder of sentence-transformers.
func TestSentenceFolder(t *testing.T) {
	dir := filepath.Join(zoo(t), "bert")
	folder := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, name, string(raw))
	}
	write(t, folder, "modules.json", `[{"idx":0,"path":"","type":"sentence_transformers.models.Transformer"},
		{"idx":1,"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},{"idx":2,"path":"2_Normalize","type":"x.y.Normalize"}]`)
	write(t, folder, "1_Pooling/config.json", `{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true, "include_prompt": false}`)
	write(t, folder, "sentence_bert_config.json", `{"max_seq_length": 32}`)
	write(t, folder, "config_sentence_transformers.json", `{"prompts": {"query": "q: "}, "default_prompt_name": "query", "truncate_dim": 16}`)
	m, err := model.Open(folder, model.Options{NoTokenizer: true, Threads: 1, Output: spec.OutputEmbedding})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := m.Sentence
	if !s.Modules || s.MaxTokens != 32 || s.Prompts["query"] != "q: " || s.DefaultPrompt != "query" || s.IncludePrompt || s.Dimensions != 16 {
		t.Errorf("%+v", s)
	}
	if m.Vocab() != 96 {
		t.Errorf("%d dimensions, want cls and mean of 48 each", m.Vocab())
	}
	b := packed([]int32{5, 6, 7, 8})
	b.Out = b.Out[3:]
	out, err := m.Exact().Run(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	closeTo(t, "compiled", rowsOf(t, m, b, 0, 1), out)
	sum := 0.0
	for _, v := range out[0] {
		sum += float64(v) * float64(v)
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("the vector has length √%g", sum)
	}
	for name, bad := range map[string]string{"modules.json": `[{"path":"../../etc","type":"a.Pooling"}]`, "1_Pooling/config.json": `{"pooling_mode": "median"}`} {
		good, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, name, bad)
		if m, err := model.Open(folder, model.Options{NoTokenizer: true, Output: spec.OutputEmbedding}); err == nil {
			m.Close()
			t.Errorf("%s with %s was accepted", name, bad)
		}
		write(t, folder, name, string(good))
	}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
