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
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
)

// golden is the reference's answer for a tiny model.
type golden struct {
	IDs     []int32     `json:"input_ids"`
	Decoder []int32     `json:"decoder_input_ids"`
	Logits  [][]float32 `json:"logits"`
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

// sequence is one sequence from its beginning.
func sequence(ids []int32) *batch.Batch {
	n := len(ids)
	b := &batch.Batch{Tokens: ids}
	q := batch.Seq{N: int32(n), Length: int32(n)}
	for i := range n {
		b.Pos, b.Out = append(b.Pos, int32(i)), append(b.Out, int32(i))
		if i%batch.BlockTokens == 0 {
			q.Spans = append(q.Spans, batch.Span{Block: int32(i / batch.BlockTokens), Pos: int32(i), N: int32(min(batch.BlockTokens, n-i))})
		}
	}
	b.Seqs = []batch.Seq{q}
	return b
}

// exactLogits are a model's for what a golden asks.
func exactLogits(t *testing.T, path string, g golden) [][]float32 {
	t.Helper()
	m, err := model.Open(path, model.Options{Threads: 2, NoTokenizer: true, Spec: spec.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ids, x := g.IDs, m.Exact()
	if m.Encodes() {
		source := sequence(g.IDs)
		source.Encode, source.Out = true, nil
		if _, err := x.Run(source); err != nil {
			t.Fatal(err)
		}
		ids = g.Decoder
	}
	got, err := x.Run(sequence(ids))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// holds wants logits that differ by at most a part of the largest.
func holds(t *testing.T, path string, got, want [][]float32, part float64) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 || len(got[0]) != len(want[0]) {
		t.Fatalf("%s: %d rows, want %d", path, len(got), len(want))
	}
	top, worst := 0.0, 0.0
	for i, row := range want {
		for k, want := range row {
			top = math.Max(top, math.Abs(float64(want)))
			worst = math.Max(worst, math.Abs(float64(want-got[i][k])))
		}
	}
	if !(worst <= part*top) {
		t.Errorf("%s: the logits differ by %g of %g", path, worst, top)
	}
}

// answers holds the exact logits of a converted model against PyTorch's.
func answers(t *testing.T, path string, g golden) {
	t.Helper()
	holds(t, path, exactLogits(t, path, g), g.Logits, 1e-4)
}

// TestFamilies converts every model of the zoo to GGUF, that back to a folder,
// and the folder to a folder of other numbers: the folders give the reference's
// logits, and the GGUF file those of the folder.
func TestFamilies(t *testing.T) {
	dir := zoo(t)
	goldens, err := filepath.Glob(filepath.Join(dir, "*", "golden.json"))
	if err != nil || len(goldens) < 100 {
		t.Fatalf("%d models: %v", len(goldens), err)
	}
	f32 := quant.F32
	for i, path := range goldens {
		in := filepath.Dir(path)
		t.Run(filepath.Base(in), func(t *testing.T) {
			g := readGolden(t, path)
			o := Options{Type: &f32, Notice: func(s string) {
				if strings.TrimSpace(s) == "" {
					t.Error("an empty notice")
				}
			}}
			file := sameAnswer(t, in, g, o)
			if testing.Short() && i%3 != 0 {
				return
			}
			out := t.TempDir()
			back, folder := filepath.Join(out, "back"), filepath.Join(out, "folder", "weights.safetensors")
			if err := Run(file, back, o); err != nil {
				t.Fatal(err)
			}
			answers(t, back, g)
			if err := Run(in, folder, o); err != nil {
				t.Fatal(err)
			}
			answers(t, filepath.Dir(folder), g)
		})
	}
}
