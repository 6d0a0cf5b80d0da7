package model_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/pull"
)

// answers of PyTorch in float32 on the dequantised file, made by
// scripts/reference/golden.py.
type released struct {
	Name, SHA256 string
	Rows         struct {
		IDs       []int32
		Sample    []int
		Logits    [][]float32
		Top       [][]int
		TopLogits [][]float32
		LogSum    []float64
		Largest   float64
	}
	Continued []struct {
		Kind   string
		Prompt []int32
		Greedy []int32
		Gaps   []float64
	}
}

// full asks for all positions and prompts; otherwise a few, for a quick run.
func full() bool { return os.Getenv("INFERFLOW_FULL") != "" }

// cached finds a released model's file in the cache, which any command with its name
// fills, and makes sure that it is the one that the answers were made for.
func cached(t *testing.T, r released) string {
	t.Helper()
	dir := os.Getenv("INFERFLOW_CACHE")
	if dir == "" {
		var err error
		if dir, err = pull.CacheDir(); err != nil {
			t.Skip(err)
		}
	}
	found, _ := filepath.Glob(filepath.Join(dir, "models", "names", r.Name, "*.gguf"))
	for _, path := range found {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		f.Close()
		if err == nil && hex.EncodeToString(sum.Sum(nil)) == r.SHA256 {
			return path
		}
	}
	t.Skipf("%s is not in the cache %s; `inferflow explain %s` fetches it", r.Name, dir, r.Name)
	return ""
}

func TestReleased(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds a model")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "released", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no answers of a reference: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			var r released
			if err == nil {
				err = json.Unmarshal(raw, &r)
			}
			if err != nil {
				t.Fatal(err)
			}
			m, err := model.Open(cached(t, r), model.Options{Context: 512, NoTokenizer: true})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			t.Run("exact", func(t *testing.T) { r.exact(t, m) })
			if err := m.Load(); err != nil {
				t.Fatal(err)
			}
			t.Run("greedy", func(t *testing.T) { r.greedy(t, m) })
		})
	}
}

// exact compares a sample of each row's logits, and the logarithm of the sum
// of exponentials of all, within 1e-3 of the largest logit.
func (r *released) exact(t *testing.T, m *model.Model) {
	n := 12
	if full() {
		n = len(r.Rows.IDs)
	}
	rows, err := m.Exact().Run(sequence(r.Rows.IDs[:n], 0, n))
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, row := range rows {
		for k, id := range r.Rows.Sample {
			worst = math.Max(worst, math.Abs(float64(row[id]-r.Rows.Logits[i][k])))
		}
		for k, id := range r.Rows.Top[i] {
			worst = math.Max(worst, math.Abs(float64(row[id]-r.Rows.TopLogits[i][k])))
		}
		worst = math.Max(worst, math.Abs(logSum(row)-r.Rows.LogSum[i]))
	}
	t.Logf("%d positions, largest error %.1e of the largest logit", n, worst/r.Rows.Largest)
	if !(worst <= 1e-3*r.Rows.Largest) {
		t.Errorf("%.1e of the largest logit apart; 1e-3 is allowed", worst/r.Rows.Largest)
	}
}

func logSum(row []float32) float64 {
	top, sum := math.Inf(-1), 0.0
	for _, v := range row {
		top = math.Max(top, float64(v))
	}
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

// greedy compares the likeliest token after each prefix of the reference's own
// continuation. Up to the first difference of a prompt that is what a free run
// says, since a row does not depend on how its prefix was computed: there the
// reference's second logit must lie within 0.5 of its first. Later differences
// are counted: the noise of rounded activations is allowed one in a thousand
// tokens beyond 0.5.
func (r *released) greedy(t *testing.T, m *model.Model) {
	asks := r.Continued
	if !full() {
		asks = append(asks[:3:3], asks[len(asks)-3:]...)
	}
	compared, near, far, same := 0, 0, 0, 0
	for i, c := range asks {
		ids := append(append([]int32{}, c.Prompt...), c.Greedy[:len(c.Greedy)-1]...)
		b := sequence(ids, 0, len(ids))
		b.Out = b.Out[len(c.Prompt)-1:]
		b.Seqs[0].Length = int32(len(c.Prompt))
		if err := m.Forward(b); err != nil {
			t.Fatal(err)
		}
		free := true // as a run of our own would say
		for k, want := range c.Greedy {
			row, best := m.Logits(k), 0
			for id, v := range row {
				if v > row[best] {
					best = id
				}
			}
			switch {
			case int32(best) == want:
				same++
			case c.Gaps[k] <= 0.5:
				near++
				free = false
			default:
				far++
				if t.Logf("prompt %d (%s), token %d is %d, the reference says %d, %.2f above its second", i, c.Kind, k, best, want, c.Gaps[k]); free {
					t.Errorf("prompt %d: a free run differs there first", i)
				}
				free = false
			}
			compared++
		}
	}
	t.Logf("%d prompts, %d tokens: %d as the reference, %d others where its first two logits lie within 0.5, %d where not", len(asks), compared, same, near, far)
	if far*1000 > compared {
		t.Errorf("%d of %d tokens differ where the reference's first two logits do by more than 0.5", far, compared)
	}
}
