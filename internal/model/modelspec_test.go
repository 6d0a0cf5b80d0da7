package model_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// TestMain lets the test binary trace strangers' specifications, as the program does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.ChildCommand {
		os.Exit(spec.ChildMain(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// TestModelSpec runs families by a model_spec.json of the C++ Inferflow in place
// of their specification and holds them against PyTorch.
func TestModelSpec(t *testing.T) {
	dir := zoo(t)
	paths, err := filepath.Glob(filepath.Join("testdata", "modelspec", "*.json"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d files: %v", len(paths), err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		family := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(family, func(t *testing.T) {
			g := readGolden(t, filepath.Join(dir, family, "golden.json"))
			o := model.Options{Threads: 2, Keys: "f32", Values: "f32", Context: 128, NoTokenizer: true, KVMemory: 64 << 20}
			o.Spec = spec.Options{SpecFile: path, Executable: exe}
			m, err := model.Open(filepath.Join(dir, family), o)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			within(t, "exact", exactRows(t, m, g), g.Logits, 1e-4)
			if err := m.Load(); err != nil {
				t.Fatal(err)
			}
			within(t, "compiled", newPlayer(t, m).alone(g, len(g.sequence(m))), g.Logits, 1e-4)
		})
	}
}
