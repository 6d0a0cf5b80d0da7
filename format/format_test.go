package format

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

func fill(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpen(t *testing.T) {
	g := read(t, "gguf/testdata/sample.gguf")
	s := read(t, "safetensors/testdata/sample.safetensors")
	p := read(t, "pickle/testdata/zip.bin")
	for _, c := range []struct {
		what  string
		files map[string][]byte
		open  string // below the folder
		kind  string
		say   string
	}{
		{"gguf", map[string][]byte{"m.gguf": g}, "m.gguf", "gguf", ""},
		{"gguf by another name", map[string][]byte{"blob": g}, "blob", "gguf", ""},
		{"safetensors", map[string][]byte{"m.safetensors": s}, "m.safetensors", "safetensors", ""},
		{"folder", map[string][]byte{"config.json": []byte("{}"), "model.safetensors": s}, "", "safetensors", ""},
		{"folder with a copy", map[string][]byte{"m.gguf": g, "model.safetensors": s}, "", "safetensors", ""},
		{"folder of one gguf", map[string][]byte{"README.md": nil, "m.gguf": g}, "", "gguf", ""},
		{"folder of two", map[string][]byte{"a.gguf": g, "b.gguf": g}, "", "", "a.gguf, b.gguf"},
		{"empty folder", nil, "", "", "neither"},
		{"folder of pickles", map[string][]byte{"pytorch_model.bin": p, "training_args.bin": p}, "", "pickle", ""},
		{"folder of two pickles", map[string][]byte{"a.bin": p, "b.bin": p}, "", "", "2 checkpoints"},
		{"folder with pickles and safetensors", map[string][]byte{"pytorch_model.bin": p, "model.safetensors": s}, "", "safetensors", ""},
		{"empty pickle", map[string][]byte{"pytorch_model.bin": nil}, "", "", "pytorch_model.bin"},
		{"pickle", map[string][]byte{"m.pt": p}, "m.pt", "pickle", ""},
		{"legacy pickle", map[string][]byte{"m.pt": read(t, "pickle/testdata/legacy.bin")}, "m.pt", "pickle", ""},
		{"broken pickle", map[string][]byte{"m.bin": []byte("PK\x03\x04 archive")}, "m.bin", "", "zip"},
		{"llama2.c", map[string][]byte{"stories.bin": read(t, "llama2c/testdata/legacy.bin")}, "", "llama2c", ""},
		{"llama2.c, version 2", map[string][]byte{"m.bin": read(t, "llama2c/testdata/v2.bin"), "tokenizer.bin": read(t, "llama2c/testdata/tokenizer.bin")}, "", "llama2c", ""},
		{"pointer", map[string][]byte{"m.gguf": []byte("version https://git-lfs.github.com/spec/v1\n")}, "m.gguf", "", "git lfs pull"},
		{"web page", map[string][]byte{"m.gguf": []byte("<!DOCTYPE html><html>")}, "m.gguf", "", "web page"},
		{"configuration", map[string][]byte{"config.json": []byte("{\"model_type\":\"x\"}")}, "config.json", "", "folder"},
		{"old", map[string][]byte{"m.bin": []byte("tjgg and more of it")}, "m.bin", "", "before GGUF"},
		{"noise", map[string][]byte{"m.gguf": []byte("noise noise")}, "m.gguf", "", "neither"},
		{"empty", map[string][]byte{"m.gguf": nil}, "m.gguf", "", "neither"},
		{"nothing there", nil, "m.gguf", "", "m.gguf"},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := filepath.Join(fill(t, c.files), c.open)
			f, err := Open(path)
			if c.kind == "" {
				if f != nil || err == nil || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), filepath.Dir(path)) {
					t.Fatalf("got %v, want an error that names the path and says %q", err, c.say)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Kind() != c.kind || len(f.Tensors()) == 0 || len(f.Files()) != 1 {
				t.Errorf("%s with %d tensors in %v", f.Kind(), len(f.Tensors()), f.Files())
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenSplitFolder(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		w := &gguf.Writer{}
		err := errors.Join(w.Set("split.no", uint16(i)), w.Set("split.count", uint16(2)),
			w.AddView(tensor.View{Name: string(rune('a' + i)), Type: quant.I8, Shape: tensor.Shape{2}, Data: []byte{1, 2}}),
			w.WriteFile(gguf.SplitName(filepath.Join(dir, "m"), i+1, 2)))
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Tensors()) != 2 || len(f.Files()) != 2 {
		t.Errorf("%d tensors in %v", len(f.Tensors()), f.Files())
	}
}

// zoo is the folder of tiny models, named by INFERFLOW_ZOO or beside the repository.
func zoo(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("INFERFLOW_ZOO")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "zoo")
	}
	if _, err := os.Stat(filepath.Join(dir, "INDEX.tsv")); err != nil {
		t.Skipf("the zoo of tiny models is not at %s; set INFERFLOW_ZOO to its folder", dir)
	}
	return dir
}

// Every file of the zoo opens, and every value of its tensors is finite.
func TestZoo(t *testing.T) {
	dir := zoo(t)
	paths, _ := filepath.Glob(filepath.Join(dir, "*", "model.safetensors"))
	more, _ := filepath.Glob(filepath.Join(dir, "gguf", "*.gguf"))
	opened := 0
	for _, path := range append(paths, more...) {
		if strings.HasSuffix(path, ".safetensors") {
			path = filepath.Dir(path)
		}
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, v := range f.Tensors() {
			if err := finite(v); err != nil {
				t.Errorf("%s: %s: %v", path, v.Name, err)
			}
		}
		if len(f.Tensors()) < 4 {
			t.Errorf("%s: %d tensors", path, len(f.Tensors()))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		opened++
	}
	if opened < 100 {
		t.Errorf("the zoo has %d models, want over a hundred", opened)
	}
}

func finite(v tensor.View) error {
	row := make([]float32, v.Shape.Cols())
	for i := range v.Shape.Rows() {
		if err := v.Type.Decode(row, v.Row(i)); err != nil {
			return err
		}
		for _, x := range row {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return errors.New("a value is not finite")
			}
		}
	}
	return nil
}
