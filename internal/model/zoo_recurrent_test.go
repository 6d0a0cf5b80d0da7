package model_test

import (
	"path/filepath"
	"testing"
)

// recurrent are the families whose layers keep a state of the sequence.
var recurrent = []string{"mamba2", "falcon_h1", "granitemoehybrid", "nemotron_h", "zamba2", "kimi_linear", "olmo_hybrid", "lfm2", "lfm2_moe",
	"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"}

// TestZooRecurrent holds them against the reference: exact, compiled in one
// chunk, in chunks of 5 and token by token, and node by node. The tiny models of
// the delta rule amplify rounding, for their heads are normalised when they are
// nearly nothing (q·k ≈ 0): PyTorch's own two forms are 1e-5 apart there.
func TestZooRecurrent(t *testing.T) {
	dir, own := zoo(t), 6e-5
	for _, family := range recurrent {
		g := readGolden(t, filepath.Join(dir, family, "golden.json"))
		t.Run(family, func(t *testing.T) { testReferenceWithin(t, filepath.Join(dir, family), g, 1e-4, own) })
		if file := filepath.Join(dir, "gguf", family+".gguf"); exists(file) {
			t.Run(family+".gguf", func(t *testing.T) { testReferenceWithin(t, file, g, 1e-4, own) })
		}
	}
}
