package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

// file joins a header and n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range n {
		b = append(b, byte(i))
	}
	return b
}

func floats(t *testing.T, f *File, name string) []float32 {
	t.Helper()
	v, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %q", name)
	}
	out := make([]float32, v.Shape.Elements())
	if err := v.Type.Decode(out, v.Data); err != nil {
		t.Fatal(err)
	}
	return out
}

// The sample is written by the reference implementation (testdata/golden.py).
func TestGolden(t *testing.T) {
	f, err := Open("testdata/sample.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct{ name, typ, shape, values string }{
		{"model.norm.weight", "F32", "[3]", "[1 -2.5 0.25]"},
		{"wide", "F64", "[2, 3]", "[0 1 2 3 4 5]"},
		{"half", "F16", "[2, 2]", "[1 -2 0.5 65504]"},
		{"bytes", "I8", "[3]", "[0 127 -128]"},
		{"unsigned", "U8", "[2]", "[0 255]"},
		{"ids", "I64", "[2, 1]", "[1.048576e+06 -3]"},
		{"ints", "I32", "[2]", "[7 -7]"},
		{"mask", "BOOL", "[2]", "[1 0]"},
		{"scalar", "F32", "[]", "[3.5]"},
		{"empty", "F32", "[0, 4]", "[]"},
	} {
		v, ok := f.Tensor(c.name)
		if got := fmt.Sprint(floats(t, f, c.name)); !ok || v.Type.String() != c.typ || v.Shape.String() != c.shape || got != c.values {
			t.Errorf("%s: got %s %s %s, want %s %s %s", c.name, v.Type, v.Shape, got, c.typ, c.shape, c.values)
		}
		if err := f.Release(c.name); err != nil {
			t.Error(err)
		}
	}
	if f.Metadata["format"] != "pt" || f.Metadata["é"] != "ü\n" || len(f.Tensors()) != 10 || f.Kind() != "safetensors" {
		t.Errorf("metadata %q, %d tensors, kind %s", f.Metadata, len(f.Tensors()), f.Kind())
	}
}

const oneF32 = `{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`

// corrupt are hand-made bad files: what they are, bytes, the sentinel and words
// that the error must say.
var corrupt = []struct {
	what string
	data []byte
	is   error
	say  []string
}{
	{"empty", nil, ErrFormat, []string{"0 bytes"}},
	{"seven bytes", []byte("1234567"), ErrFormat, nil},
	{"header of 2^60 bytes", append(binary.LittleEndian.AppendUint64(nil, 1<<60), "{}"...), ErrFormat, []string{"1152921504606846976"}},
	{"header longer than the file", append(binary.LittleEndian.AppendUint64(nil, 50), "{}"...), ErrCorrupt, []string{"50 bytes", "2 more"}},
	{"header of nothing", file("", 8), ErrFormat, nil},
	{"gguf", []byte("GGUF\x03\x00\x00\x00\x00\x00\x00\x00"), ErrFormat, nil},
	{"no brace", file(" {}", 0), ErrFormat, []string{`"{"`}},
	{"broken JSON", file(`{"w":{"dtype":"F32",}}`, 0), ErrCorrupt, []string{"offset"}},
	{"JSON cut short", file(`{"w":{"dtype":"F32"`, 0), ErrCorrupt, []string{"too early"}},
	{"two values", file(oneF32+`{}`, 8), ErrCorrupt, []string{"follows"}},
	{"not UTF-8", file("{\"\xff\":{}}", 0), ErrCorrupt, []string{"UTF-8"}},
	{"tensor is a list", file(`{"w":[]}`, 0), ErrCorrupt, []string{`"w"`, "no object"}},
	{"deep nesting", file(`{"w":`+strings.Repeat("[", 100000), 0), ErrCorrupt, []string{`"w"`}},
	{"duplicate tensor", file(strings.TrimSuffix(oneF32, "}")+`,"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w" twice`}},
	{"duplicate field", file(`{"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`, `"dtype" twice`}},
	{"unknown field", file(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}`, 8), ErrCorrupt, []string{`"w"`, `"x"`}},
	{"field is missing", file(`{"w":{"dtype":"F32","data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`, "lacks"}},
	{"unknown dtype", file(`{"w":{"dtype":"F2","shape":[2],"data_offsets":[0,1]}}`, 1), ErrUnsupported, []string{`"w"`, `"F2"`}},
	{"half a byte left over", file(`{"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 2), ErrCorrupt, []string{`"w"`, "F4 [3]"}},
	{"dtype is a number", file(`{"w":{"dtype":3,"shape":[2],"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`, "dtype"}},
	{"negative dimension", file(`{"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`, "-2"}},
	{"fractional dimension", file(`{"w":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`, "2.0"}},
	{"dimension of 2^64", file(`{"w":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`}},
	{"null shape", file(`{"w":{"dtype":"F32","shape":null,"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`, "shape"}},
	{"null in a shape", file(`{"w":{"dtype":"F32","shape":[null],"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`, "shape"}},
	{"17 dimensions", file(`{"w":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`, 4), ErrCorrupt, []string{`"w"`, "16"}},
	{"shape that wraps", file(`{"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), ErrCorrupt, []string{`"w"`, "4294967296"}},
	{"shape larger than its data", file(`{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), ErrCorrupt, []string{`"w"`, "takes 12 bytes"}},
	{"one offset", file(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0]}}`, 8), ErrCorrupt, []string{`"w"`, "want 2"}},
	{"three offsets", file(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, 8), ErrCorrupt, []string{`"w"`, "more than 2"}},
	{"offsets reversed", file(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), ErrCorrupt, []string{`"w"`, "[8, 0]"}},
	{"past the end", file(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 7), ErrCorrupt, []string{`"w"`, "cut short"}},
	{"bytes left over", file(oneF32, 9), ErrCorrupt, []string{"1 bytes follow"}},
	{"gap", file(`{"v":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`, 5), ErrCorrupt, []string{`"w"`, "gap"}},
	{"overlap", file(`{"v":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}`, 7), ErrCorrupt, []string{`"w"`, "inside"}},
	{"metadata is no text", file(`{"__metadata__":{"n":1}}`, 0), ErrCorrupt, []string{"__metadata__", `"n"`}},
}

func TestCorrupt(t *testing.T) {
	for _, c := range corrupt {
		t.Run(c.what, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := Parse("bad.safetensors", c.data)
			runtime.ReadMemStats(&after)
			if f != nil || !errors.Is(err, c.is) {
				t.Fatalf("got %v, want an error that wraps %q", err, c.is)
			}
			for _, s := range append(c.say, "bad.safetensors") {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("%d bytes were allocated for a file of %d", n, len(c.data))
			}
		})
	}
}

func TestOddButGood(t *testing.T) {
	for what, data := range map[string][]byte{
		"no tensors":             file(`{}`, 0),
		"padded header":          file(oneF32+"    ", 8),
		"out of order":           file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"I16","shape":[1],"data_offsets":[0,2]}}`, 3),
		"empty ones in between":  file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F32","shape":[0],"data_offsets":[2,2]},"c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 3),
		"types without decoders": file(`{"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}`, 8),
		"less than a byte":       file(`{"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]},"b":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[3,6]}}`, 6),
	} {
		if _, err := Parse(what, data); err != nil {
			t.Error(err)
		}
	}
	f, _ := Parse("c64", file(`{"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}`, 8))
	v, _ := f.Tensor("a")
	if err := v.Type.Decode(make([]float32, 1), v.Data); !errors.Is(err, quant.ErrNoDecoder) || !strings.Contains(err.Error(), "C64") {
		t.Errorf("reading C64: %v", err)
	}
}

// write puts files into a new folder.
func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func shard(names ...string) []byte {
	var parts []string
	for i, n := range names {
		parts = append(parts, fmt.Sprintf(`%q:{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}`, n, i, i+1))
	}
	return file("{"+strings.Join(parts, ",")+"}", len(names))
}

func TestFolder(t *testing.T) {
	const a, b = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	index := func(m string) []byte {
		return []byte(`{"metadata":{"total_size":3,"x":[{}]},"weight_map":{` + m + `}}`)
	}
	good := index(`"p":"` + a + `","q":"` + b + `","r":"` + b + `"`)
	for _, c := range []struct {
		what  string
		files map[string][]byte
		want  string // names of the tensors
		is    error
		say   []string
	}{
		{"single", map[string][]byte{singleName: shard("p")}, "p", nil, nil},
		{"single before the index", map[string][]byte{singleName: shard("s"), indexName: good}, "s", nil, nil},
		{"sharded", map[string][]byte{indexName: good, a: shard("p"), b: shard("q", "r")}, "p q r", nil, nil},
		{"a tensor in two shards", map[string][]byte{indexName: good, a: shard("p", "q"), b: shard("q", "r")}, "p q r", nil, nil},
		{"a tensor that is not listed", map[string][]byte{indexName: good, a: shard("p", "x"), b: shard("q", "r")}, "p x q r", nil, nil},
		{"one not listed in two shards", map[string][]byte{indexName: good, a: shard("p", "x"), b: shard("q", "r", "x")}, "", ErrCorrupt, []string{`"x"`, b}},
		{"another name", map[string][]byte{"weights.safetensors": shard("p")}, "p", nil, nil},
		{"two without index", map[string][]byte{a: shard("p"), b: shard("q")}, "", ErrMissing, []string{indexName, a}},
		{"nothing", map[string][]byte{"config.json": []byte("{}")}, "", ErrMissing, []string{singleName}},
		{"shards are missing", map[string][]byte{indexName: good}, "", ErrMissing, []string{a, b}},
		{"a tensor is missing", map[string][]byte{indexName: good, a: shard("p"), b: shard("q")}, "", ErrCorrupt, []string{`"r"`, b}},
		{"a shard is corrupt", map[string][]byte{indexName: good, a: shard("p"), b: shard("q", "r")[:20]}, "", ErrCorrupt, []string{b}},
		{"path upwards", map[string][]byte{indexName: index(`"p":"../x.safetensors"`)}, "", ErrCorrupt, []string{`"p"`, "../x"}},
		{"absolute path", map[string][]byte{indexName: index(`"p":"/etc/x.safetensors"`)}, "", ErrCorrupt, []string{`"p"`, "/etc"}},
		{"path of another system", map[string][]byte{indexName: index(`"p":"c:\\x.safetensors"`)}, "", ErrCorrupt, []string{`"p"`}},
		{"a device", map[string][]byte{indexName: index(`"p":"/dev/zero"`)}, "", ErrCorrupt, []string{`"p"`, "/dev/zero"}},
		{"file is a number", map[string][]byte{indexName: index(`"p":1`)}, "", ErrCorrupt, []string{`"p"`}},
		{"tensor listed twice", map[string][]byte{indexName: index(`"p":"` + a + `","p":"` + b + `"`)}, "", ErrCorrupt, []string{`"p" twice`}},
		{"no map", map[string][]byte{indexName: []byte(`{"metadata":{}}`)}, "", ErrCorrupt, []string{"weight_map"}},
		{"broken index", map[string][]byte{indexName: []byte(`{"weight_map":`)}, "", ErrCorrupt, []string{indexName}},
		{"empty index", map[string][]byte{indexName: nil}, "", ErrCorrupt, []string{indexName}},
	} {
		t.Run(c.what, func(t *testing.T) {
			f, err := Open(write(t, c.files))
			if c.is == nil {
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, v := range f.Tensors() {
					got = append(got, v.Name)
				}
				if strings.Join(got, " ") != c.want {
					t.Errorf("got %v, want %s", got, c.want)
				}
				if err := errors.Join(f.Close(), f.Close()); err != nil {
					t.Error(err)
				}
				return
			}
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

func FuzzParse(f *testing.F) {
	for _, c := range corrupt {
		if len(c.data) < 1<<12 {
			f.Add(c.data)
		}
	}
	f.Add(file(oneF32, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Parse("fuzz.safetensors", data)
		if err != nil {
			return
		}
		for _, v := range g.Tensors() {
			if n, ok := v.Type.RowBytes(v.Shape.Elements()); !ok || len(v.Data) != n {
				t.Fatalf("tensor %q: %d bytes for shape %s of %s", v.Name, len(v.Data), v.Shape, v.Type)
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":3},"weight_map":{"p":"a.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"p":"../a.safetensors"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		where, err := parseIndex(data, suffix)
		for name, file := range where {
			if err == nil && filepath.Base(file) != file {
				t.Fatalf("tensor %q is to be read from %q", name, file)
			}
		}
	})
}
