package model

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/spec"
)

// carrying is a GGUF file in memory with a config.json of our own.
func carrying(t *testing.T, config string) (*files, error) {
	t.Helper()
	w := &gguf.Writer{}
	for k, v := range map[string]string{"general.architecture": "x", spec.OwnConfigKey: config} {
		if err := w.Set(k, v); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse("m", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	f := &files{File: g, meta: &g.Meta, config: configOf(&g.Meta)}
	return f, f.own()
}

// TestOwnConfigOnce decodes the config.json that a file carries once, however
// often specifications and their rules ask for it.
func TestOwnConfigOnce(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, `,"k%d":{}`, i)
	}
	f, err := carrying(t, `{"model_type":"x"`+text.String()+`}`)
	if err != nil {
		t.Fatal(err)
	}
	first := reflect.ValueOf(spec.OwnConfig(f)).Pointer()
	for _, x := range []spec.Files{f, &Stored{f}, &Sketch{Files: f}} {
		if m := spec.OwnConfig(x); len(m) != 1001 || reflect.ValueOf(m).Pointer() != first {
			t.Errorf("%T decodes anew: %d keys", x, len(m))
		}
	}
	if n := testing.AllocsPerRun(3, func() { spec.OwnConfig(f) }); n > 1 {
		t.Errorf("asking takes %v allocations", n)
	}
	if _, err := spec.Resolve(f, spec.Options{}); err == nil {
		t.Error("a specification serves it")
	}
	if m := spec.OwnConfig(f); len(m) != 1001 {
		t.Errorf("it was changed: %d keys", len(m))
	}
}

// TestLargeConfig refuses a config.json that no model has.
func TestLargeConfig(t *testing.T) {
	large := `{"a":"` + strings.Repeat("x", spec.MaxConfig) + `"}`
	if _, err := carrying(t, large); err == nil || !strings.Contains(err.Error(), "at most") || len(err.Error()) > 300 {
		t.Errorf("got %.300v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(large), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSketch(dir); err == nil {
		t.Error("the folder opens")
	}
}

// TestOwnTensorDimensions keeps shapes, and messages about them, short.
func TestOwnTensorDimensions(t *testing.T) {
	f, err := carrying(t, "{}")
	if err != nil {
		t.Fatal(err)
	}
	shape := make([]int, 200000)
	for i := range shape {
		shape[i] = 1
	}
	if _, err := f.ownTensor(OwnTensor{Name: strings.Repeat("z", 1<<20), Type: "F32", Shape: shape}); err == nil || len(err.Error()) > 400 {
		t.Errorf("got %.400v", err)
	}
}
