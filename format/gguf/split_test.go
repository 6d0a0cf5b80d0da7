package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// writeSplit writes count files; change may alter what file i is to say.
func writeSplit(t *testing.T, count int, change func(i int, keys map[string]any, tensors *[]string)) (prefix string) {
	t.Helper()
	prefix = filepath.Join(t.TempDir(), "model")
	for i := range count {
		keys := map[string]any{"split.no": uint16(i), "split.count": uint16(count)}
		if i == 0 {
			keys["split.tensors.count"] = int32(count)
			keys["general.architecture"] = "tiny"
		}
		tensors := []string{fmt.Sprintf("t%d", i)}
		if change != nil {
			change(i, keys, &tensors)
		}
		w := &Writer{}
		for k, v := range keys {
			if err := w.Set(k, v); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range tensors {
			data := bytes.Repeat([]byte{byte(i)}, 64)
			if err := w.AddView(tensor.View{Name: name, Type: quant.F32, Shape: tensor.Shape{16}, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.WriteFile(SplitName(prefix, i+1, count)); err != nil {
			t.Fatal(err)
		}
	}
	return prefix
}

func TestSplit(t *testing.T) {
	prefix := writeSplit(t, 3, nil)
	for i := 1; i <= 3; i++ {
		f, err := Open(SplitName(prefix, i, 3))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := f.Meta.String("general.architecture"); s != "tiny" {
			t.Errorf("opened by file %d: architecture %q, %v", i, s, err)
		}
		if len(f.Tensors()) != 3 || len(f.Files()) != 3 {
			t.Errorf("opened by file %d: %d tensors in %d files", i, len(f.Tensors()), len(f.Files()))
		}
		for k := range 3 {
			v, ok := f.Tensor(fmt.Sprintf("t%d", k))
			if !ok || v.Data[0] != byte(k) {
				t.Errorf("opened by file %d: tensor t%d: %v", i, k, ok)
			}
			if err := f.Release(v.Name); err != nil {
				t.Error(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSplitErrors(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(i int, keys map[string]any, tensors *[]string)
		after  func(prefix string) string // returns the path to open
		is     error
		say    []string
	}{
		{"a file is missing", nil, func(p string) string {
			os.Remove(SplitName(p, 2, 3))
			return SplitName(p, 1, 3)
		}, ErrMissing, []string{"model-00002-of-00003.gguf"}},
		{"renamed", nil, func(p string) string {
			os.Rename(SplitName(p, 1, 3), p+".gguf")
			return p + ".gguf"
		}, ErrMissing, []string{"NAME-00001-of-00003.gguf"}},
		{"named as more than they are", nil, func(p string) string {
			os.Rename(SplitName(p, 1, 3), SplitName(p, 1, 4))
			return SplitName(p, 1, 4)
		}, ErrCorrupt, []string{"one of 4 files", "is 3"}},
		{"two exchanged", nil, func(p string) string {
			os.Rename(SplitName(p, 2, 3), p)
			os.Rename(SplitName(p, 3, 3), SplitName(p, 2, 3))
			os.Rename(p, SplitName(p, 3, 3))
			return SplitName(p, 1, 3)
		}, ErrCorrupt, []string{"00002-of-00003", "file 3 of 3"}},
		{"number 0", nil, func(p string) string {
			os.Rename(SplitName(p, 1, 3), SplitName(p, 0, 3))
			return SplitName(p, 0, 3)
		}, ErrCorrupt, []string{"number 0"}},
		{"counts differ", func(i int, keys map[string]any, _ *[]string) {
			if i == 2 {
				keys["split.count"] = uint16(5)
			}
		}, nil, ErrCorrupt, []string{"00003-of-00003", "of 5"}},
		{"a tensor is missing", func(i int, _ map[string]any, tensors *[]string) {
			if i == 1 {
				*tensors = nil
			}
		}, nil, ErrCorrupt, []string{"split.tensors.count", "3", "hold 2"}},
		{"a tensor twice", func(i int, _ map[string]any, tensors *[]string) { *tensors = []string{"same"} }, nil,
			ErrCorrupt, []string{`"same"`, "00002-of-00003"}},
		{"a file without a number", func(i int, keys map[string]any, _ *[]string) {
			if i == 1 {
				delete(keys, "split.no")
			}
		}, nil, ErrCorrupt, []string{"split.no", "00002-of-00003"}},
		{"a neighbour is corrupt", nil, func(p string) string {
			os.Truncate(SplitName(p, 2, 3), 40)
			return SplitName(p, 1, 3)
		}, ErrCorrupt, []string{"00002-of-00003"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			prefix := writeSplit(t, 3, c.change)
			path := SplitName(prefix, 1, 3)
			if c.after != nil {
				path = c.after(prefix)
			}
			f, err := Open(path)
			if f != nil || !errors.Is(err, c.is) {
				t.Fatalf("got %v, want an error that wraps %q", err, c.is)
			}
			for _, s := range c.say {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
}
