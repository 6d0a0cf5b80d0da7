package llama2c

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLayouts(t *testing.T) {
	for name, tied := range map[string]bool{"legacy.bin": true, "untied.bin": false, "v1.bin": false, "v2.bin": true} {
		data := read(t, name)
		if !Sniff(data[:64], int64(len(data))) {
			t.Errorf("%s is not recognised", name)
		}
		f, err := Open(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		_, head := f.Tensor("output.weight")
		v, ok := f.Tensor("blk.1.ffn_down.weight")
		if head == tied || !ok || v.Type != quant.F32 || v.Shape.String() != "[16, 32]" || f.Kind() != "llama2c" {
			t.Errorf("%s: head %v, %s %s %s", name, head, f.Kind(), v.Type, v.Shape)
		}
		want := 2 + 9*2
		if !tied {
			want++
		}
		if len(f.Tensors()) != want || len(f.Files()) != 1 {
			t.Errorf("%s: %d tensors, want %d", name, len(f.Tensors()), want)
		}
		words, err := f.Metadata().Strings("tokenizer.ggml.tokens")
		if err != nil || len(words) != 300 || words[1] != "<s>" || words[13] != "<0x0A>" || words[259] != "\u2581a" {
			t.Errorf("%s: %d words, %v", name, len(words), err)
		}
		for _, v := range f.Tensors() {
			if err := f.Release(v.Name); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	}
}

func edited(data []byte, at int, value int32) []byte {
	b := append([]byte{}, data...)
	binary.LittleEndian.PutUint32(b[at:], uint32(value))
	return b
}

func TestCorrupt(t *testing.T) {
	old, v2 := read(t, "legacy.bin"), read(t, "v2.bin")
	for _, c := range []struct {
		what string
		data []byte
		is   error
	}{
		{"empty", nil, ErrFormat},
		{"half a header", old[:20], ErrFormat},
		{"half a header of version 2", v2[:100], ErrFormat},
		{"cut short", old[:len(old)-1], ErrCorrupt},
		{"too long", append(append([]byte{}, old...), 0), ErrCorrupt},
		{"no width", edited(old, 0, 0), ErrFormat},
		{"a width of 2^31 - 1", edited(old, 0, 1<<31-1), ErrFormat},
		{"many layers", edited(old, 8, 1<<12), ErrCorrupt},
		{"no heads", edited(old, 12, 0), ErrFormat},
		{"heads that do not divide", edited(old, 12, 3), ErrFormat},
		{"key heads that do not divide", edited(old, 16, 3), ErrFormat},
		{"another vocabulary", edited(old, 20, 301), ErrCorrupt},
		{"the least vocabulary", edited(old, 20, -1<<31), ErrFormat},
		{"version 3", edited(v2, 4, 3), ErrFormat},
		{"a flag of 2", func() []byte { b := edited(v2, 4, 2); b[36] = 2; return b }(), ErrFormat},
		{"no group", edited(v2, 37, 0), ErrFormat},
		{"a group that does not divide", edited(v2, 37, 5), ErrFormat},
		{"a negative group", edited(v2, 37, -16), ErrFormat},
	} {
		if f, err := Parse("bad.bin", c.data); f != nil || !errors.Is(err, c.is) || !strings.Contains(err.Error(), "bad.bin") {
			t.Errorf("%s: got %v, want an error that wraps %q", c.what, err, c.is)
		}
		if c.is == ErrFormat && len(c.data) > 0 && binary.LittleEndian.Uint32(c.data) != magic && Sniff(c.data, int64(len(c.data))) {
			t.Errorf("%s is recognised", c.what)
		}
	}
}

func TestVocabulary(t *testing.T) {
	raw := read(t, "tokenizer.bin")
	for what, c := range map[string]struct {
		data []byte
		say  string
	}{
		"empty":        {nil, "after 0"},
		"cut short":    {raw[:len(raw)-1], "leaves the file"},
		"too long":     {append(append([]byte{}, raw...), 0), "follow the last"},
		"a long token": {edited(raw, 8, -1), "token 0"},
	} {
		if _, err := parseVocabulary(c.data, 300); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", what, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tok300.bin"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := findVocabulary(dir, 300); err != nil || v == nil || len(v.pieces) != 300 {
		t.Errorf("tok300.bin: %v", err)
	}
	if v, err := findVocabulary(dir, 299); v != nil || err != nil {
		t.Errorf("no file for 299: %v, %v", v, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"legacy.bin", "v2.bin"} {
		f.Add(read(f, name)[:256])
	}
	// An export of one layer and width 2, whole.
	tiny := make([]byte, 28)
	for i, n := range []uint32{2, 1, 1, 1, 1, 1, 1} {
		binary.LittleEndian.PutUint32(tiny[4*i:], n)
	}
	c, _ := parseHeader(tiny)
	n, _ := c.total()
	f.Add(append(tiny, make([]byte, int(n)-28)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Parse("fuzz.bin", data)
		if err != nil {
			return
		}
		for _, v := range g.Tensors() {
			if n, _ := v.Type.RowBytes(v.Shape.Elements()); len(v.Data) != n {
				t.Fatalf("tensor %q: %d bytes for shape %s", v.Name, len(v.Data), v.Shape)
			}
		}
	})
}

func FuzzVocabulary(f *testing.F) {
	f.Add(read(f, "tokenizer.bin"), 300)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if v, err := parseVocabulary(data, size%1000); err == nil && len(v.pieces) != max(size%1000, 0) {
			t.Fatalf("%d pieces for %d", len(v.pieces), size)
		}
	})
}
