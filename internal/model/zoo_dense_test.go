package model_test

import (
	"path/filepath"
	"testing"
)

// dense are the zoo's dense decoders beside those of shipped.
var dense = []string{"apertus1p5_text", "bitnet", "bloom", "cohere", "cohere2", "doge", "ernie4_5", "exaone", "exaone4", "falcon", "gemma", "gemma3n_text",
	"gemma4_text", "glm", "glm4", "gpt-sw3", "gpt_neox", "gptj", "granite", "hunyuan_v1_dense", "iquestcoder", "ministral", "ministral3", "modernbert-decoder",
	"mpt", "olmo", "olmo3", "opt", "phi", "seed_oss", "smollm3", "stablelm"}

// TestZooDense is TestZoo for them. The streams of the two families with inputs
// for each layer amplify rounding.
func TestZooDense(t *testing.T) {
	dir := zoo(t)
	own := map[string]float64{"gemma3n_text": 3e-5, "gemma4_text": 3e-5}
	for _, family := range dense {
		g := readGolden(t, filepath.Join(dir, family, "golden.json"))
		within := max(own[family], 1e-5)
		t.Run(family, func(t *testing.T) { testReferenceWithin(t, filepath.Join(dir, family), g, 1e-4, within) })
		if file := filepath.Join(dir, "gguf", family+".gguf"); exists(file) {
			t.Run(family+".gguf", func(t *testing.T) { testReferenceWithin(t, file, g, 1e-4, within) })
		}
	}
}

// TestInvariantDense holds the promise that an answer does not depend on
// company on the dense families whose attention differs from all others'.
func TestInvariantDense(t *testing.T) {
	dir := zoo(t)
	for _, family := range []string{"bloom", "doge", "gemma3n_text", "gemma4_text", "ministral3", "opt", "exaone4"} {
		t.Run(family, func(t *testing.T) { testInvariant(t, filepath.Join(dir, family)) })
	}
}
