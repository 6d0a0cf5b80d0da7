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

// shipped are the families of the zoo whose specification is in the binary.
var shipped = []string{"llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "phi3", "gpt2", "mixtral", "olmo2", "starcoder2", "gpt_oss"}

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

// TestZoo holds every shipped family, as a folder and as a GGUF file where the
// zoo has one, against PyTorch's logits: exact, compiled, and node by node.
func TestZoo(t *testing.T) {
	dir := zoo(t)
	for _, family := range shipped {
		g := readGolden(t, filepath.Join(dir, family, "golden.json"))
		t.Run(family, func(t *testing.T) { testReference(t, filepath.Join(dir, family), g, 1e-4) })
		if file := filepath.Join(dir, "gguf", family+".gguf"); exists(file) {
			t.Run(family+".gguf", func(t *testing.T) { testReference(t, file, g, 1e-4) })
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func testReference(t *testing.T, path string, g golden, tol float64) {
	t.Helper()
	testReferenceWithin(t, path, g, tol, 1e-5)
}

// testReferenceWithin allows own between the compiled program and the exact graph.
func testReferenceWithin(t *testing.T, path string, g golden, tol, own float64) {
	o := model.Options{Threads: 2, Keys: "f32", Values: "f32", Context: 128, NoTokenizer: true}
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	exact, err := m.Exact().Run(sequence(g.IDs, 0, len(g.IDs)))
	if err != nil {
		t.Fatal(err)
	}
	within(t, "exact", exact, g.Logits, tol)
	testDecode(t, m, g, exact, tol, own)
	o.Unfused = true
	plain, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if err := plain.Load(); err != nil {
		t.Fatal(err)
	}
	within(t, "node by node", forward(t, plain, g.IDs, len(g.IDs)), exact, own)
}

// testDecode holds the compiled program against both, in one chunk, in chunks
// of 5 and token by token, and its greedy continuation against PyTorch's.
func testDecode(t *testing.T, m *model.Model, g golden, exact [][]float32, tol, own float64) {
	t.Helper()
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []int{len(g.IDs), 5, 1} {
		got := forward(t, m, g.IDs, chunk)
		within(t, fmt.Sprintf("compiled, chunks of %d", chunk), got, g.Logits, tol)
		within(t, fmt.Sprintf("compiled against exact, chunks of %d", chunk), got, exact, own)
	}
	ids := append([]int32{}, g.IDs...)
	last := g.Logits[len(g.IDs)-1]
	for i, want := range g.Greedy {
		best := 0
		for k, v := range last {
			if v > last[best] {
				best = k
			}
		}
		if int32(best) != want {
			t.Fatalf("greedy token %d is %d, the reference says %d", i, best, want)
		}
		ids = append(ids, want)
		b := sequence(ids, len(ids)-1, 1)
		b.Seqs[0].Length = int32(len(g.IDs))
		if err := m.Forward(b); err != nil {
			t.Fatal(err)
		}
		last = append([]float32{}, m.Logits(0)...)
	}
}

func forward(t *testing.T, m *model.Model, ids []int32, chunk int) (out [][]float32) {
	t.Helper()
	for at := 0; at < len(ids); at += chunk {
		n := min(chunk, len(ids)-at)
		if err := m.Forward(sequence(ids, at, n)); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			out = append(out, append([]float32{}, m.Logits(i)...))
		}
	}
	return out
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
				testReferenceWithin(t, file, g, 1e-4, 6e-5) // the delta rule amplifies rounding, see TestZooRecurrent
			})
		}
	}
}
