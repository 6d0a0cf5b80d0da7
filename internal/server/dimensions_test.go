package server

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/spec"
)

// writeUnit writes an encoder whose modules scale vectors to length 1.
func writeUnit(t *testing.T) string {
	dir := writeEncoder(t)
	if err := os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeJSONFile(t, dir, "1_Pooling/config.json", map[string]any{"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true})
	var modules []any
	for i, m := range [][2]string{{"", "Transformer"}, {"1_Pooling", "Pooling"}, {"2_Normalize", "Normalize"}} {
		modules = append(modules, map[string]any{"idx": i, "name": fmt.Sprint(i), "path": m[0], "type": "sentence_transformers.models." + m[1]})
	}
	writeJSONFile(t, dir, "modules.json", modules)
	return dir
}

func length(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// TestDimensions: a vector of length 1 that is cut has length 1 again unless
// the request says not, or the model's files cut it; another keeps its numbers.
func TestDimensions(t *testing.T) {
	vector := func(dir, more string) []float32 {
		t.Helper()
		var a embeddingsAnswer
		if code, why := answer(t, serveTexts(t, dir, spec.OutputEmbedding), "/v1/embeddings", `{"model": "tiny", "input": "a cat"`+more+`}`, &a); code != 200 {
			t.Fatalf("%s: %d %s", more, code, why)
		}
		return a.vector(t, 0)
	}
	unit, plain := writeUnit(t), writeEncoder(t)
	whole := vector(unit, "")
	if len(whole) != 8 || math.Abs(length(whole)-1) > 1e-5 || length(whole[:3]) > 0.99 {
		t.Fatalf("the model's own vector is %v", whole)
	}
	for _, x := range []struct {
		dir, more string
		unit      bool
	}{
		{unit, `, "dimensions": 3`, true}, {unit, `, "dimensions": 3, "normalize": true`, true}, {unit, `, "dimensions": 3, "normalize": false`, false},
		{plain, `, "dimensions": 3`, false}, {plain, `, "dimensions": 3, "normalize": true`, true}, {plain, `, "dimensions": 3, "normalize": false`, false},
	} {
		want, got := vector(x.dir, "")[:3], vector(x.dir, x.more)
		if x.unit != (math.Abs(length(got)-1) < 1e-5) || !x.unit && !slices.Equal(got, want) {
			t.Errorf("%s: %v of length %g, want unit %v, of %v", x.more, got, length(got), x.unit, want)
		}
	}
	writeJSONFile(t, unit, "config_sentence_transformers.json", map[string]any{"truncate_dim": 3})
	if got := vector(unit, ""); !slices.Equal(got, whole[:3]) {
		t.Errorf("cut by the model's files: %v, want %v", got, whole[:3])
	}
}
