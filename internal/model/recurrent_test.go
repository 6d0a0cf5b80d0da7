package model_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRecurrent holds tiny models of recurrent families that the zoo has not,
// made by scripts/reference/variants.py and small.py, as TestFamilies does.
func TestRecurrent(t *testing.T) {
	dir := filepath.Join("testdata", "recurrent")
	if d := os.Getenv("INFERFLOW_VARIANTS"); d != "" {
		dir = d
	}
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
