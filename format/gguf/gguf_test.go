package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// pattern is n bytes that differ from their neighbours.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

var sampleMeta = []struct {
	key   string
	value any
}{
	{"general.architecture", "tiny"},
	{"general.alignment", uint32(64)},
	{"u8", uint8(200)}, {"i8", int8(-100)}, {"u16", uint16(60000)}, {"i16", int16(-30000)},
	{"u32", uint32(4e9)}, {"i32", int32(-2e9)}, {"u64", uint64(math.MaxUint64)}, {"i64", int64(math.MinInt64)},
	{"f32", float32(1.5)}, {"f64", 1e300}, {"yes", true}, {"no", false},
	{"tokens", []string{"", "a", "ĠBig", "\xff\x00"}},
	{"i32s", []int32{1, -2, 3}}, {"u64s", []uint64{1, math.MaxUint64}}, {"f32s", []float32{0.5, -1}},
	{"bools", []bool{true, false}}, {"none", []int32{}}, {"bytes", []uint8{1, 2, 3}},
}

func sampleWriter(tb testing.TB) *Writer {
	tb.Helper()
	w := &Writer{}
	for _, m := range sampleMeta {
		if err := w.Set(m.key, m.value); err != nil {
			tb.Fatal(err)
		}
	}
	for _, v := range []tensor.View{
		{Name: "a", Type: quant.F32, Shape: tensor.Shape{3, 2}, Data: pattern(24)},
		{Name: "b", Type: quant.Q4_K, Shape: tensor.Shape{2, 256}, Data: pattern(288)},
		{Name: "scalar", Type: quant.F16, Shape: tensor.Shape{}, Data: pattern(2)},
		{Name: "c", Type: quant.IQ1_S, Shape: tensor.Shape{2, 1, 3, 256}, Data: pattern(300)},
		{Name: "last", Type: quant.I8, Shape: tensor.Shape{64}, Data: pattern(64)},
	} {
		if err := w.AddView(v); err != nil {
			tb.Fatal(err)
		}
	}
	return w
}

func sample(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	n, err := sampleWriter(tb).WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		tb.Fatal(n, b.Len(), err)
	}
	return b.Bytes()
}

func checkSample(t *testing.T, f *File) {
	t.Helper()
	i := 0
	for k, v := range f.Meta.All() {
		if k != sampleMeta[i].key || !reflect.DeepEqual(v.Any(), sampleMeta[i].value) {
			t.Errorf("key %d: got %s = %v, want %s = %v", i, k, v.Any(), sampleMeta[i].key, sampleMeta[i].value)
		}
		i++
	}
	if i != len(sampleMeta) || f.Meta.Len() != i {
		t.Errorf("%d keys, want %d", i, len(sampleMeta))
	}
	want := map[string]string{"a": "F32 [3, 2]", "b": "Q4_K [2, 256]", "scalar": "F16 []", "c": "IQ1_S [2, 1, 3, 256]", "last": "I8 [64]"}
	if len(f.Tensors()) != len(want) {
		t.Errorf("%d tensors, want %d", len(f.Tensors()), len(want))
	}
	for _, v := range f.Tensors() {
		if got := fmt.Sprint(v.Type, " ", v.Shape); got != want[v.Name] {
			t.Errorf("tensor %q is %s, want %s", v.Name, got, want[v.Name])
		}
		if !bytes.Equal(v.Data, pattern(len(v.Data))) {
			t.Errorf("tensor %q has other bytes", v.Name)
		}
	}
	exercise(t, f)
}

func TestRoundTrip(t *testing.T) {
	data := sample(t)
	f, err := Parse("sample.gguf", data)
	if err != nil {
		t.Fatal(err)
	}
	checkSample(t, f)
	if f.Kind() != "gguf" || f.Version() != 3 || f.Path() != "sample.gguf" {
		t.Error(f.Kind(), f.Version(), f.Path())
	}
	// Version 2 has the same layout.
	data[4] = 2
	if f, err = Parse("sample.gguf", data); err != nil || f.Version() != 2 {
		t.Fatal(f.Version(), err)
	}
	checkSample(t, f)
	// A copy of an opened file through its Values has the same bytes.
	data[4] = 3
	w := &Writer{}
	for k, v := range f.Meta.All() {
		if k == alignmentKey {
			w.Set(k, v.Any())
		} else if err := w.Set(k, v); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range f.Tensors() {
		if err := w.AddView(v); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil || !bytes.Equal(b.Bytes(), data) {
		t.Errorf("the copy differs: %v", err)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := sampleWriter(t).WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	checkSample(t, f)
	if err := errors.Join(f.Release("b"), f.Release("nothing")); err != nil {
		t.Error(err)
	}
	if v, _ := f.Tensor("b"); !bytes.Equal(v.Data, pattern(288)) {
		t.Error("the bytes changed by Release")
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if _, ok := f.Tensor("a"); ok {
		t.Error("a tensor is found after Close")
	}
	if _, err := Open(path + "x"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path+"x") {
		t.Errorf("a file that is not there: %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}
}

func TestAccessors(t *testing.T) {
	f, err := Parse("s.gguf", sample(t))
	if err != nil {
		t.Fatal(err)
	}
	m := &f.Meta
	get := func(v any, err error) any {
		if err != nil {
			return err
		}
		return v
	}
	for _, c := range []struct {
		got  any
		want any // a value, or the sentinel of an error
	}{
		{get(m.Uint("u8")), uint64(200)}, {get(m.Uint("u64")), uint64(math.MaxUint64)},
		{get(m.Uint("i8")), ErrType}, {get(m.Uint("f32")), ErrType}, {get(m.Uint("x")), ErrNoKey}, {get(m.Uint("i32s")), ErrType},
		{get(m.Int("i64")), int64(math.MinInt64)}, {get(m.Int("u32")), int64(4e9)}, {get(m.Int("u64")), ErrType}, {get(m.Int("yes")), ErrType},
		{get(m.Float("f32")), 1.5}, {get(m.Float("i8")), -100.0}, {get(m.Float("tokens")), ErrType}, {get(m.Float("x")), ErrNoKey},
		{get(m.Bool("no")), false}, {get(m.Bool("u8")), ErrType},
		{get(m.String("general.architecture")), "tiny"}, {get(m.String("u8")), ErrType}, {get(m.String("x")), ErrNoKey},
		{get(m.Strings("tokens")), []string{"", "a", "ĠBig", "\xff\x00"}}, {get(m.Strings("i32s")), ErrType},
		{get(m.Ints("i32s")), []int64{1, -2, 3}}, {get(m.Ints("none")), []int64{}}, {get(m.Ints("u64s")), ErrType}, {get(m.Ints("f32s")), ErrType},
		{get(m.Floats("f32s")), []float64{0.5, -1}}, {get(m.Floats("i32s")), []float64{1, -2, 3}}, {get(m.Floats("u8")), ErrType},
		{get(m.Bools("bools")), []bool{true, false}}, {get(m.Bools("bytes")), ErrType},
	} {
		if e, ok := c.want.(error); ok {
			if got, ok := c.got.(error); !ok || !errors.Is(got, e) || !strings.Contains(got.Error(), "s.gguf: key \"") {
				t.Errorf("got %v, want an error that wraps %q", c.got, e)
			}
		} else if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got %v (%[1]T), want %v", c.got, c.want)
		}
	}
	v, _ := m.Value("tokens")
	if v.TypeName() != "array of 4 string" || v.String() != `["", "a", "ĠBig", "\xff\x00"]` {
		t.Errorf("%s %s", v.TypeName(), v)
	}
}

func TestWriterErrors(t *testing.T) {
	nothing := func(io.Writer) error { return nil }
	w := &Writer{}
	must := func(what string, err error, say string) {
		t.Helper()
		if !errors.Is(err, ErrWrite) || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: got %v, want ErrWrite that says %q", what, err, say)
		}
	}
	must("an int", w.Set("k", 3), "int")
	must("no key", w.Set("", uint8(3)), "key")
	must("alignment", w.Set(alignmentKey, uint32(48)), "48")
	must("zero Value", w.Set("k", Value{}), "Value")
	w.Set("k", uint8(3))
	must("key twice", w.Set("k", uint8(3)), "twice")
	must("no ggml type", w.Add("t", quant.Bool, tensor.Shape{1}, nothing), "BOOL")
	must("5 dimensions", w.Add("t", quant.F32, tensor.Shape{1, 1, 1, 1, 1}, nothing), "5 dimensions")
	must("blocks", w.Add("t", quant.Q4_0, tensor.Shape{4, 33}, nothing), "Q4_0")
	must("scalar block", w.Add("t", quant.Q4_0, nil, nothing), "Q4_0")
	must("zero", w.Add("t", quant.F32, tensor.Shape{0, 4}, nothing), "below 1")
	must("too large", w.Add("t", quant.F32, tensor.Shape{1 << 40, 1 << 40, 4}, nothing), "large")
	if err := w.Add("t", quant.F32, tensor.Shape{4}, nothing); err != nil {
		t.Fatal(err)
	}
	must("tensor twice", w.Add("t", quant.F32, tensor.Shape{4}, nothing), "twice")
	path := filepath.Join(t.TempDir(), "m.gguf")
	must("too few bytes", w.WriteFile(path), "0 bytes were written")
	if left, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
	if err := w.WriteFile(filepath.Join(path, "no", "folder.gguf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// A vocabulary of 256 thousand tokens must cost nearly nothing to open and a
// handful of allocations to read.
func TestLargeVocabulary(t *testing.T) {
	tokens := make([]string, 256<<10)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token%d", i)
	}
	w := &Writer{}
	if err := w.Set("tokenizer.ggml.tokens", tokens); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	var f *File
	var err error
	if n := testing.AllocsPerRun(1, func() { f, err = Parse("v.gguf", b.Bytes()) }); n > 40 || err != nil {
		t.Errorf("opening allocates %v times: %v", n, err)
	}
	var got []string
	if n := testing.AllocsPerRun(1, func() { got, err = f.Meta.Strings("tokenizer.ggml.tokens") }); n > 4 || err != nil {
		t.Errorf("reading allocates %v times: %v", n, err)
	}
	if !reflect.DeepEqual(got, tokens) {
		t.Error("other tokens came back")
	}
}

// The sample is written by the Python package gguf (testdata/golden.py).
func TestGolden(t *testing.T) {
	f, err := Open("testdata/sample.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		key  string
		want any
	}{
		{"general.architecture", "tiny"}, {"tiny.block_count", uint32(2)}, {"tiny.eps", float32(1e-5)}, {"tiny.big", 1e300},
		{"tiny.flag", true}, {"tiny.low", int64(-1 << 40)}, {"tiny.high", uint64(math.MaxUint64)},
		{"tiny.heads", []int32{4, 2, 4}}, {"tiny.windows", []bool{true, false}}, {"tiny.scales", []float32{0.5, 0.25}},
		{"tokenizer.ggml.tokens", []string{"<s>", "Ġhello", "", "é"}}, {"tiny.text", "two\nlines é"},
	} {
		if v, ok := f.Meta.Value(c.key); !ok || !reflect.DeepEqual(v.Any(), c.want) {
			t.Errorf("%s: got %v (%s), want %v", c.key, v, v.TypeName(), c.want)
		}
	}
	for _, c := range []struct {
		name, typ, shape string
		first, last      float32
	}{
		{"token_embd.weight", "F32", "[4, 3]", 0, 11},
		{"norm.weight", "F16", "[3]", 1, -2},
		{"quantised", "Q8_0", "[2, 64]", -0.99993896, 0.99993896},
		{"ids", "I32", "[3, 1, 2]", 1, 6},
	} {
		v, ok := f.Tensor(c.name)
		if !ok {
			t.Errorf("no tensor %s", c.name)
			continue
		}
		x := make([]float32, v.Shape.Elements())
		if err := v.Type.Decode(x, v.Data); err != nil {
			t.Error(err)
		}
		if v.Type.String() != c.typ || v.Shape.String() != c.shape || x[0] != c.first || x[len(x)-1] != c.last {
			t.Errorf("%s: got %s %s %v … %v", c.name, v.Type, v.Shape, x[0], x[len(x)-1])
		}
	}
}
