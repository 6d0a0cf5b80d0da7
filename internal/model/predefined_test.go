package model_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPredefined holds the families whose code came with their weights against
// models of the same mathematics in PyTorch (scripts/reference/predefined.py).
func TestPredefined(t *testing.T) {
	dir := filepath.Join("testdata", "predefined")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 10 {
		t.Fatalf("%d models: %v", len(entries), err)
	}
	for _, e := range entries {
		g := readGolden(t, filepath.Join(dir, strings.TrimSuffix(e.Name(), ".gguf"), "golden.json"))
		t.Run(e.Name(), func(t *testing.T) { testFamily(t, filepath.Join(dir, e.Name()), g) })
	}
}
