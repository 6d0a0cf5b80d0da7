package pickle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

// The checkpoints are written by PyTorch (testdata/golden.py), as are the
// shapes and values that they hold.
func TestGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/values.json")
	if err != nil {
		t.Fatal(err)
	}
	var files map[string]map[string][2]json.RawMessage
	if err := json.Unmarshal(raw, &files); err != nil {
		t.Fatal(err)
	}
	for name, tensors := range files {
		f, err := Open(filepath.Join("testdata", name))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if len(f.Tensors()) != len(tensors) {
			t.Errorf("%s: %d tensors, want %d", name, len(f.Tensors()), len(tensors))
		}
		for key, want := range tensors {
			v, ok := f.Tensor(key)
			if !ok {
				t.Errorf("%s: no tensor %s", name, key)
				continue
			}
			var shape string
			var values []float32
			if err := errors.Join(json.Unmarshal(want[0], &shape), json.Unmarshal(want[1], &values)); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, v.Shape.Elements())
			if err := v.Type.Decode(got, v.Data); err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
			}
			if v.Shape.String() != shape || fmt.Sprint(got) != fmt.Sprint(values) {
				t.Errorf("%s: %s: got %s %v, want %s %v", name, key, v.Shape, got, shape, values)
			}
			if err := f.Release(key); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestSharedStorage(t *testing.T) {
	for _, name := range []string{"zip.bin", "legacy.bin"} {
		f, err := Open(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		a, _ := f.Tensor("bf16")
		b, _ := f.Tensor("again")
		part, _ := f.Tensor("part")
		if a.Type != quant.BF16 || &a.Data[0] != &b.Data[0] || &part.Data[0] != &a.Data[4] {
			t.Errorf("%s: tensors of one storage do not share their bytes", name)
		}
		f.Close()
	}
}

// A module that was saved as a whole names its own class.
func TestModule(t *testing.T) {
	_, err := Open("testdata/module.bin")
	if !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "__main__.Net") || !strings.Contains(err.Error(), "state_dict") {
		t.Errorf("got %v", err)
	}
}

func TestFolder(t *testing.T) {
	whole, err := os.ReadFile("testdata/state.pth")
	if err != nil {
		t.Fatal(err)
	}
	const a, b = "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"
	index := func(m string) []byte { return []byte(`{"metadata":{},"weight_map":{` + m + `}}`) }
	all := `"a.weight":"` + a + `","a.bias":"` + a + `","b.weight":"` + b + `","b.bias":"` + b + `"`
	for _, c := range []struct {
		what  string
		files map[string][]byte
		is    error
		say   string
	}{
		{"single", map[string][]byte{singleName: whole, "training_args.bin": whole}, nil, ""},
		{"another name", map[string][]byte{"model.pt": whole, "optimizer.pt": whole}, nil, ""},
		{"two without index", map[string][]byte{"x.pt": whole, "y.pt": whole}, ErrMissing, "2 checkpoints"},
		{"nothing", map[string][]byte{"training_args.bin": whole}, ErrMissing, singleName},
		{"sharded", map[string][]byte{indexName: index(all), a: whole, b: whole}, nil, ""},
		{"a shard is missing", map[string][]byte{indexName: index(all), a: whole}, ErrMissing, b},
		{"a tensor is missing", map[string][]byte{indexName: index(all + `,"x":"` + a + `"`), a: whole, b: whole}, ErrCorrupt, `"x"`},
		{"path upwards", map[string][]byte{indexName: index(`"x":"../` + a + `"`)}, nil, "../"},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := Open(dir)
			if c.say != "" {
				if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.say) {
					t.Errorf("got %v, want an error that says %q", err, c.say)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if len(f.Tensors()) != 4 {
				t.Errorf("%d tensors", len(f.Tensors()))
			}
		})
	}
}
