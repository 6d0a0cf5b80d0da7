package model_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPaper holds tiny models of published families that neither transformers
// nor the library has, each with a specification of its own, against what
// scripts/reference/paper.py computes from the formulas of their papers.
func TestPaper(t *testing.T) {
	dir := filepath.Join("testdata", "paper")
	folders, err := os.ReadDir(dir)
	if err != nil || len(folders) == 0 {
		t.Fatalf("%d folders: %v", len(folders), err)
	}
	for _, f := range folders {
		path := filepath.Join(dir, f.Name())
		g := readGolden(t, filepath.Join(path, "golden.json"))
		t.Run(f.Name(), func(t *testing.T) { testFamily(t, path, g) })
	}
}
