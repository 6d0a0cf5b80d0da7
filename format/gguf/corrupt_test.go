package gguf

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
)

// raw builds files byte by byte, lies included.
type raw []byte

func (r raw) u32(n uint32) raw { return binary.LittleEndian.AppendUint32(r, n) }
func (r raw) u64(n uint64) raw { return binary.LittleEndian.AppendUint64(r, n) }
func (r raw) str(s string) raw { return append(r.u64(uint64(len(s))), s...) }
func (r raw) zeros(n int) raw  { return append(r, make([]byte, n)...) }

// start is a header of version 3 that claims so many tensors and keys.
func start(tensors, keys uint64) raw {
	return append(raw(nil), "GGUF"...).u32(3).u64(tensors).u64(keys)
}

// tensor appends the header of an F32 tensor with GGUF's order of dimensions.
func (r raw) tensor(name string, offset uint64, typ uint32, dims ...uint64) raw {
	r = r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r = r.u64(d)
	}
	return r.u32(typ).u64(offset)
}

// data pads to the default alignment and appends n bytes.
func (r raw) data(n int) raw { return r.zeros(int(padding(uint64(len(r)), defaultAlign)) + n) }

// corrupt are the hand-made bad files: what they are, bytes, the sentinel and
// words that the error must say.
var corrupt = []struct {
	what string
	data raw
	is   error
	say  []string
}{
	{"empty", raw{}, ErrNotGGUF, []string{"0 bytes"}},
	{"three bytes", raw("GGU"), ErrNotGGUF, nil},
	{"zip", raw("PK\x03\x04....").zeros(100), ErrNotGGUF, []string{`"PK`}},
	{"old format", raw("tjgg").zeros(100), ErrUnsupported, []string{"before GGUF"}},
	{"no version", raw("GGUF"), ErrCorrupt, []string{"version"}},
	{"version 0", raw("GGUF").u32(0).u64(0).u64(0), ErrUnsupported, []string{"version 0"}},
	{"version 1", raw("GGUF").u32(1).u32(0).u32(0), ErrUnsupported, []string{"version 1", "convert"}},
	{"version 4", raw("GGUF").u32(4).u64(0).u64(0), ErrUnsupported, []string{"version 4"}},
	{"big endian", raw("GGUF\x00\x00\x00\x03").zeros(16), ErrUnsupported, []string{"big-endian (version 3)", "convert"}},
	{"no counts", raw("GGUF").u32(3), ErrCorrupt, []string{"offset 8"}},
	{"2^60 tensors", start(1<<60, 0), ErrCorrupt, []string{"1152921504606846976 tensors"}},
	{"2^64-1 keys", start(0, math.MaxUint64), ErrCorrupt, []string{"18446744073709551615 metadata keys"}},
	{"keys for the bytes but above the limit", start(0, maxKeys+1).zeros((maxKeys + 1) * minKeyBytes), ErrCorrupt, []string{"65537 metadata keys"}},
	{"tensors without bytes", start(3, 0).zeros(3*minTensorBytes - 1), ErrCorrupt, []string{"claims 3 tensors"}},
	{"key of 2^62 bytes", start(0, 1).u64(1 << 62).zeros(20), ErrCorrupt, []string{"offset 24", "key 0", "4611686018427387904 bytes"}},
	{"key cut short", start(0, 1).u64(20).zeros(10), ErrCorrupt, []string{"key 0", "20 bytes", "10 more"}},
	{"key without type", start(0, 1).u64(10).zeros(10), ErrCorrupt, []string{"type"}},
	{"duplicate key", start(0, 2).str("a.b").u32(0).zeros(1).str("a.b").u32(0).zeros(1), ErrCorrupt, []string{`"a.b"`, "twice", "offset 40"}},
	{"kind 13", start(0, 1).str("a.b").u32(13).zeros(8), ErrCorrupt, []string{`"a.b"`, "13", "offset 35"}},
	{"scalar cut short", start(0, 1).str("a.b").u32(uint32(Uint64)).zeros(7), ErrCorrupt, []string{`"a.b"`, "8 bytes", "7 more"}},
	{"string of 2^63 bytes", start(0, 1).str("a.b").u32(uint32(String)).u64(1 << 63), ErrCorrupt, []string{`"a.b"`, "9223372036854775808"}},
	{"string cut short", start(0, 1).str("a.b").u32(uint32(String)).u64(9).zeros(8), ErrCorrupt, []string{`"a.b"`, "9 bytes"}},
	{"array of kind 99", start(0, 1).str("a.b").u32(uint32(Array)).u32(99).u64(1).zeros(8), ErrCorrupt, []string{`"a.b"`, "99", "offset 39"}},
	{"array of arrays", start(0, 1).str("a.b").u32(uint32(Array)).u32(uint32(Array)).u64(1).u32(0).u64(0), ErrUnsupported, []string{`"a.b"`, "array of arrays"}},
	{"array of 2^61 int64", start(0, 1).str("a.b").u32(uint32(Array)).u32(uint32(Int64)).u64(1 << 61).zeros(64), ErrCorrupt, []string{`"a.b"`, "2305843009213693952 elements"}},
	{"array of 2^64-1 bytes", start(0, 1).str("a.b").u32(uint32(Array)).u32(uint32(Uint8)).u64(math.MaxUint64).zeros(64), ErrCorrupt, []string{`"a.b"`}},
	{"array of 2^40 strings", start(0, 1).str("a.b").u32(uint32(Array)).u32(uint32(String)).u64(1 << 40).zeros(64), ErrCorrupt, []string{`"a.b"`, "1099511627776 elements"}},
	{"array whose string lies", start(0, 1).str("a.b").u32(uint32(Array)).u32(uint32(String)).u64(2).str("x").u64(1 << 40).zeros(16), ErrCorrupt, []string{`"a.b"`, "element 1", "1099511627776"}},
	{"alignment 0", start(0, 1).str(alignmentKey).u32(uint32(Uint32)).u32(0), ErrCorrupt, []string{alignmentKey, "is 0"}},
	{"alignment 48", start(0, 1).str(alignmentKey).u32(uint32(Uint32)).u32(48), ErrCorrupt, []string{alignmentKey, "is 48"}},
	{"alignment 2^31", start(0, 1).str(alignmentKey).u32(uint32(Uint32)).u32(1 << 31), ErrCorrupt, []string{alignmentKey, "2147483648"}},
	{"alignment of a wrong type", start(0, 1).str(alignmentKey).u32(uint32(Uint64)).u64(32), ErrCorrupt, []string{alignmentKey, "uint64"}},
	{"alignment in words", start(0, 1).str(alignmentKey).u32(uint32(String)).str("32"), ErrCorrupt, []string{alignmentKey, "string"}},
	{"tensor name cut short", start(1, 0).u64(30).zeros(29), ErrCorrupt, []string{"tensor 0", "30 bytes"}},
	{"tensor with 5 dimensions", start(1, 0).tensor("w", 0, 0, 1, 1, 1, 1, 1).data(4), ErrCorrupt, []string{`"w"`, "5 dimensions"}},
	{"tensor with 2^32-1 dimensions", start(1, 0).str("w").u32(math.MaxUint32).zeros(64), ErrCorrupt, []string{`"w"`, "4294967295 dimensions"}},
	{"tensor of 2^63 elements", start(1, 0).tensor("w", 0, 0, 1<<62, 2).data(64), ErrCorrupt, []string{`"w"`, "2^63"}},
	{"tensor whose product wraps to 0", start(1, 0).tensor("w", 0, 0, 1<<32, 1<<32).data(64), ErrCorrupt, []string{`"w"`, "2^63"}},
	{"tensor of 2^62 bytes x 4", start(1, 0).tensor("w", 0, 0, 1<<62).data(64), ErrCorrupt, []string{`"w"`, "2^63 bytes"}},
	{"tensor with a dimension of 0", start(1, 0).tensor("w", 0, 0, 0, 4).data(64), ErrCorrupt, []string{`"w"`, "dimension 0 is 0"}},
	{"tensor of removed type 4", start(1, 0).tensor("w", 0, 4, 32).data(64), ErrUnsupported, []string{`"w"`, "4"}},
	{"tensor of a type that is not ggml's", start(1, 0).tensor("w", 0, 1<<16, 32).data(64), ErrUnsupported, []string{`"w"`, "65536"}},
	{"row no multiple of the block", start(1, 0).tensor("w", 0, 12, 128, 2).data(1024), ErrCorrupt, []string{`"w"`, "Q4_K", "128", "256"}},
	{"duplicate tensor", start(2, 0).tensor("w", 0, 0, 8).tensor("w", 32, 0, 8).data(64), ErrCorrupt, []string{`"w"`, "twice"}},
	{"offset not aligned", start(1, 0).tensor("w", 4, 0, 8).data(64), ErrCorrupt, []string{`"w"`, "multiple of the alignment 32"}},
	{"offset past the end", start(1, 0).tensor("w", 1<<40, 0, 8).data(64), ErrCorrupt, []string{`"w"`, "1099511627776", "ends at"}},
	{"offset that wraps", start(1, 0).tensor("w", math.MaxUint64-31, 0, 8).data(64), ErrCorrupt, []string{`"w"`}},
	{"data cut short", start(2, 0).tensor("v", 0, 0, 8).tensor("w", 32, 0, 8).data(63), ErrCorrupt, []string{`"w"`, "32 bytes", "cut short"}},
	{"overlap", start(2, 0).tensor("v", 0, 0, 16).tensor("w", 32, 0, 8).data(64), ErrCorrupt, []string{`"v"`, `"w"`, "inside"}},
	{"same place", start(2, 0).tensor("v", 0, 0, 8).tensor("w", 0, 0, 8).data(64), ErrCorrupt, []string{`"v"`, `"w"`, "inside"}},
	{"huge name", start(0, 2).str(strings.Repeat("n", 60000)).u32(0).zeros(1).str(strings.Repeat("n", 60000)).u32(0).zeros(1), ErrCorrupt, []string{"(60000 bytes)"}},
	{"split without neighbours", start(0, 1).str("split.count").u32(uint32(Uint16)).zeros(0).append16(3), ErrMissing, []string{"3 files"}},
	{"split of a wrong type", start(0, 1).str("split.count").u32(uint32(String)).str("3"), ErrCorrupt, []string{"split.count"}},
}

func (r raw) append16(n uint16) raw { return binary.LittleEndian.AppendUint16(r, n) }

func TestCorrupt(t *testing.T) {
	for _, c := range corrupt {
		t.Run(c.what, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := Parse("bad.gguf", c.data)
			runtime.ReadMemStats(&after)
			if f != nil || !errors.Is(err, c.is) {
				t.Fatalf("got %v, want an error that wraps %q", err, c.is)
			}
			for _, s := range append(c.say, "bad.gguf") {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("%d bytes were allocated for a file of %d", n, len(c.data))
			}
		})
	}
}

// Every prefix of a good file must be refused, and every change of one byte
// must be refused or read without a panic.
func TestDamaged(t *testing.T) {
	good := sample(t)
	for n := range good {
		f, err := Parse("cut.gguf", good[:n])
		if err == nil {
			t.Fatalf("the first %d of %d bytes were read as %d tensors", n, len(good), len(f.Tensors()))
		}
	}
	for at := range good {
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			bad := append([]byte(nil), good...)
			bad[at] = b
			if f, err := Parse("bad.gguf", bad); err == nil {
				exercise(t, f)
			}
		}
	}
}

// exercise touches everything that a file offers.
func exercise(t *testing.T, f *File) {
	t.Helper()
	for k, v := range f.Meta.All() {
		_, _ = v.Any(), v.String()
		f.Meta.Uint(k)
		f.Meta.Int(k)
		f.Meta.Float(k)
		f.Meta.Bool(k)
		f.Meta.String(k)
		f.Meta.Strings(k)
		f.Meta.Ints(k)
		f.Meta.Floats(k)
		f.Meta.Bools(k)
	}
	for _, v := range f.Tensors() {
		if w, ok := f.Tensor(v.Name); !ok || !w.Shape.Equal(v.Shape) {
			t.Fatalf("tensor %q is not found by its name", v.Name)
		}
		if len(v.Data) != v.RowBytes()*v.Shape.Rows() {
			t.Fatalf("tensor %q: %d bytes for shape %s of %s", v.Name, len(v.Data), v.Shape, v.Type)
		}
		row := v.Row(v.Shape.Rows() - 1)
		if len(row) < 1<<16 && v.Type.CanDecode() == nil {
			if err := v.Type.Decode(make([]float32, v.Shape.Cols()), row); err != nil {
				t.Fatalf("tensor %q: %v", v.Name, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range corrupt {
		if len(c.data) < 1<<12 {
			f.Add([]byte(c.data))
		}
	}
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if g, err := Parse("fuzz.gguf", data); err == nil {
			exercise(t, g)
		}
	})
}
