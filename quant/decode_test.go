package quant

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// golden reads a file of testdata/golden.py and cuts it in blocks and values.
func golden(t *testing.T, dir string, typ Type) (blocks []byte, values []float32) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", dir, typ.String()+".bin"))
	if err != nil {
		t.Fatal(err)
	}
	l, _ := typ.Layout()
	n := len(raw) / (l.Bytes + 4*l.Block)
	if n == 0 || n*(l.Bytes+4*l.Block) != len(raw) {
		t.Fatalf("%s: %d bytes are no whole number of blocks with values", typ, len(raw))
	}
	blocks, rest := raw[:n*l.Bytes], raw[n*l.Bytes:]
	if dir == "encode" {
		rest, blocks = raw[:4*n*l.Block], raw[4*n*l.Block:]
	}
	values = make([]float32, n*l.Block)
	decodeF32(values, rest)
	return blocks, values
}

func TestDecodeGolden(t *testing.T) {
	for _, typ := range []Type{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4} {
		blocks, want := golden(t, "decode", typ)
		got := make([]float32, len(want))
		if err := typ.Decode(got, blocks); err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Errorf("%s: value %d of block %d: got %g, want %g", typ, i%layouts[typ].Block, i/layouts[typ].Block, got[i], want[i])
				break
			}
		}
	}
}

func TestDecodePlain(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		src  string
		want []float32
	}{
		{F32, "\x00\x00\x80\x3f\x00\x00\x20\xc0", []float32{1, -2.5}},
		{F16, "\x00\x3c\x01\x80", []float32{1, -5.9604645e-8}},
		{BF16, "\x80\x3f\x20\xc0", []float32{1, -2.5}},
		{F64, "\x00\x00\x00\x00\x00\x00\xf0\x3f", []float32{1}},
		{I8, "\x80\x7f", []float32{-128, 127}},
		{U8, "\x80\x7f", []float32{128, 127}},
		{Bool, "\x00\x01", []float32{0, 1}},
		{I16, "\x00\x80", []float32{-32768}},
		{I32, "\xff\xff\xff\xff", []float32{-1}},
		{I64, "\xfe\xff\xff\xff\xff\xff\xff\xff", []float32{-2}},
	} {
		got := make([]float32, len(c.want))
		if err := c.typ.Decode(got, []byte(c.src)); err != nil {
			t.Errorf("%s: %v", c.typ, err)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: got %v, want %v", c.typ, got, c.want)
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct {
		typ    Type
		values int
		bytes  int
		is     error
		text   string
	}{
		{IQ2_XXS, 256, 66, ErrNoDecoder, "IQ2_XXS"},
		{C64, 1, 8, ErrNoDecoder, "C64"},
		{Type(77), 32, 32, ErrNoDecoder, "77"},
		{Q4_K, 255, 144, ErrSize, "block of 256"},
		{Q8_0, 32, 33, ErrSize, "34 bytes"},
		{F32, 1, 5, ErrSize, "4 bytes"},
	} {
		err := c.typ.Decode(make([]float32, c.values), make([]byte, c.bytes))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want an error that wraps %q and says %q", c.typ, err, c.is, c.text)
		}
	}
	if err := Q4_0.Decode(nil, nil); err != nil {
		t.Errorf("an empty row: %v", err)
	}
}

func TestLayouts(t *testing.T) {
	for typ, l := range layouts {
		got, ok := ParseType(strings.ToLower(l.Name))
		if !ok || got != typ {
			t.Errorf("%s parses as %v, %v", l.Name, got, ok)
		}
		if n, ok := typ.RowBytes(3 * l.Block); !ok || n != 3*l.Bytes {
			t.Errorf("%s: 3 blocks take %d bytes, %v", l.Name, n, ok)
		}
		if typ.GGML() == (typ >= U8) {
			t.Errorf("%s: GGML() is %v", l.Name, typ.GGML())
		}
	}
	if _, ok := ParseType("Q9_9"); ok {
		t.Error("Q9_9 parses")
	}
}

// Every half value must survive the way to float32 and back.
func TestHalfRoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		f := FromF16(uint16(h))
		nan := f != f
		if got := ToF16(f); !nan && got != uint16(h) || nan && FromF16(got) == FromF16(got) {
			t.Fatalf("f16 %#04x is %g, back %#04x", h, f, got)
		}
		f = FromBF16(uint16(h))
		nan = f != f
		if got := ToBF16(f); !nan && got != uint16(h) || nan && FromBF16(got) == FromBF16(got) {
			t.Fatalf("bf16 %#04x is %g, back %#04x", h, f, got)
		}
	}
}
