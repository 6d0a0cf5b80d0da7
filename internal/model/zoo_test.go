package model_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/model"
)

// zoo is the folder of tiny models with reference outputs, named by
// INFERFLOW_ZOO or beside the repository.
func zoo(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("INFERFLOW_ZOO")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "zoo")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the zoo of tiny models is not at %s; set INFERFLOW_ZOO to its folder", dir)
	}
	return dir
}

// golden is a reference output: a row of logits for each position.
type golden struct {
	IDs     []int32     `json:"input_ids"`
	Decoder []int32     `json:"decoder_input_ids"`
	Logits  [][]float32 `json:"logits"`
	Greedy  []int32     `json:"greedy"`
}

func readGolden(t *testing.T, path string) (g golden) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sequence is a batch of n tokens from position at on, all rows wanted, in
// blocks from 0 on.
func sequence(ids []int32, at, n int) *batch.Batch {
	b := &batch.Batch{}
	for i := at; i < at+n; i++ {
		b.Tokens, b.Pos, b.Out = append(b.Tokens, ids[i]), append(b.Pos, int32(i)), append(b.Out, int32(i-at))
	}
	q := batch.Seq{N: int32(n), Start: int32(at), Length: int32(len(ids))}
	for p := 0; p < at+n; p += batch.BlockTokens {
		q.Spans = append(q.Spans, batch.Span{Block: int32(p / batch.BlockTokens), Pos: int32(p), N: int32(min(batch.BlockTokens, at+n-p))})
	}
	b.Seqs = []batch.Seq{q}
	return b
}

// within fails unless every value is within tol of the largest of want.
func within(t *testing.T, what string, got, want [][]float32, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, the reference has %d", what, len(got), len(want))
	}
	top, worst := 0.0, 0.0
	for i := range want {
		if len(got[i]) != len(want[i]) {
			t.Fatalf("%s: row %d has %d values, the reference %d", what, i, len(got[i]), len(want[i]))
		}
		for k, v := range want[i] {
			top = math.Max(top, math.Abs(float64(v)))
			if e := math.Abs(float64(got[i][k]) - float64(v)); !(e <= worst) {
				worst = e
			}
		}
	}
	if !(worst <= tol*top) {
		t.Errorf("%s: %.1e of the largest value apart; %.0e is allowed", what, worst/top, tol)
	}
}

// TestGGUF holds the GGUF binding of families that the zoo has only as
// folders: files by llama.cpp's converter with PyTorch's logits for them, made
// by scripts/reference/zoo_gguf.py. What the format does not keep, the
// specification's override supplies.
func TestGGUF(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "gguf", "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(strings.TrimSuffix(file, ".gguf") + ".json")
		var cases []golden
		if err == nil {
			err = json.Unmarshal(raw, &cases)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range cases {
			t.Run(fmt.Sprintf("%s/%d tokens", strings.TrimSuffix(filepath.Base(file), ".gguf"), len(g.IDs)), func(t *testing.T) {
				testFamily(t, file, g)
			})
		}
	}
}

// TestEncoderGGUF holds encoders of GGUF files by llama.cpp's converter (one
// architecture for BERT and its kin, positions counted from the first token)
// against PyTorch: the rows, or the scores of the classes.
func TestEncoderGGUF(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "gguf-encoder", "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".gguf")
		t.Run(filepath.Base(name), func(t *testing.T) {
			g := readGolden(t, name+".json")
			o := model.Options{NoTokenizer: true, Threads: 2, Output: "hidden"}
			if strings.HasSuffix(name, "-scores") {
				o.Output = "scores"
			}
			m, err := model.Open(file, o)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			b := packed(g.IDs)
			if len(g.Logits) == 1 {
				b.Out = b.Out[len(b.Out)-1:]
			}
			exact, err := m.Exact().Run(b)
			if err != nil {
				t.Fatal(err)
			}
			closeTo(t, "exact", exact, g.Logits)
			if err := m.Load(); err != nil {
				t.Fatal(err)
			}
			closeTo(t, "compiled", rowsOf(t, m, b, 0, len(g.Logits)), g.Logits)
		})
	}
}
