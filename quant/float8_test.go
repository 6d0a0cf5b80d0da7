package quant

import (
	"math"
	"os"
	"testing"
)

// The goldens are PyTorch's (testdata/float8.py).
func TestFloat8(t *testing.T) {
	codes := make([]byte, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	for _, typ := range []Type{F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ, F8_E8M0} {
		raw, err := os.ReadFile("testdata/float8/" + typ.String() + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		got, want := make([]float32, 256), make([]float32, 256)
		if err := typ.Decode(got, codes); err != nil {
			t.Fatal(err)
		}
		decodeF32(want, raw)
		for i := range want {
			nan := want[i] != want[i]
			if nan != (got[i] != got[i]) || !nan && math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Errorf("%s: code %#02x is %g, PyTorch says %g", typ, i, got[i], want[i])
			}
		}
	}
}

// The values are those of the tables in OCP Microscaling Formats 1.0, section 5.3.
func TestFloatsBelowAByte(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		src  []byte
		want []float32
	}{
		{F4_E2M1, []byte{0x10, 0x32, 0x54, 0x76, 0xf8}, []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -6}},
		{F6_E2M3, []byte{0x3f | 0x01<<6&0xff, 0x01<<6>>8 | 0x08<<4&0xff, 0x08<<4>>8 | 0x1f<<2}, []float32{-7.5, 0.125, 1, 7.5}},
		{F6_E3M2, []byte{0x3f | 0x01<<6&0xff, 0x01<<6>>8 | 0x0c<<4&0xff, 0x0c<<4>>8 | 0x1f<<2}, []float32{-28, 0.0625, 1, 28}},
		{U16, []byte{0xff, 0xff}, []float32{65535}},
		{U32, []byte{0, 0, 0, 0x80}, []float32{1 << 31}},
		{U64, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, []float32{1 << 63}},
	} {
		got := make([]float32, len(c.want))
		if err := c.typ.Decode(got, c.src); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(c.want[i]) {
				t.Errorf("%s: got %v, want %v", c.typ, got, c.want)
				break
			}
		}
	}
}
