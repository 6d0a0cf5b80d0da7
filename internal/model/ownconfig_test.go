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
	return carryingAll(t, map[string]any{"general.architecture": "x", spec.OwnConfigKey: config})
}

// carryingAll is one with given metadata.
func carryingAll(t *testing.T, meta map[string]any) (*files, error) {
	t.Helper()
	w := &gguf.Writer{}
	for k, v := range meta {
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

// TestUnreadableOwn refuses what a file carries and cannot be read, by key.
func TestUnreadableOwn(t *testing.T) {
	for key, bad := range map[string][]any{
		spec.OwnConfigKey: {`{"a":`, `[]`, `null`, ``, `{"a": Nan}`, `{"a": 1Infinity}`, `{NaN: 1}`, `{} x`, uint32(7), []string{"{}"}},
		spec.OwnFilledKey: {`["a"`, `{}`, `null`, `[1]`, uint32(7)},
		spec.OwnFolderKey: {`{"a":`, `[]`, `null`, `{"a":[0]}`, `{"a":[-1]}`, `{"a":[1.5]}`, `{"a":[1099511627776,2]}`, `{"a":[1,1,1,1,1,1,1,1,1]}`, uint32(7)},
	} {
		for _, v := range bad {
			_, err := carryingAll(t, map[string]any{"general.architecture": "x", key: v})
			if err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "model: m: ") || len(err.Error()) > 400 {
				t.Errorf("%s %v: got %.500v", key, v, err)
			}
		}
	}
	good := map[string]any{"general.architecture": "x", spec.OwnConfigKey: `{} `, spec.OwnFilledKey: `[]`, spec.OwnFolderKey: `{"a":[],"b":[2,3]}`}
	if _, err := carryingAll(t, good); err != nil {
		t.Error(err)
	}
}

// TestManyOwnTensors refuses more tensors among the metadata than a model has.
func TestManyOwnTensors(t *testing.T) {
	entry := `{"name":"e","type":"F32","shape":[0]},`
	for _, n := range []int{maxOwnTensors, spec.MaxConfig / len(entry)} {
		text := "[" + strings.Repeat(entry, n) + strings.TrimSuffix(entry, ",") + "]"
		_, err := carryingAll(t, map[string]any{"general.architecture": "x", OwnTensorsKey: text})
		if err == nil || !strings.Contains(err.Error(), OwnTensorsKey) || !strings.Contains(err.Error(), "at most") {
			t.Errorf("%d: %.300v", n, err)
		}
	}
}

// TestPythonFloats reads what Python's json writes, as transformers now writes it.
func TestPythonFloats(t *testing.T) {
	f, err := carrying(t, `{"a": [0.0, Infinity], "b":-Infinity,"c":NaN, "d": "NaN \"Infinity\\", "e": -1}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(f.OwnConfig()), `map[a:[0.0 map[__float__:Infinity]] b:map[__float__:-Infinity] c:map[__float__:NaN] d:NaN "Infinity\ e:-1]`; got != want {
		t.Errorf("got %s, want %s", got, want)
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
