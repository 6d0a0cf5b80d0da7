package quant

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func TestEncodeGolden(t *testing.T) {
	for _, typ := range []Type{F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0} {
		want, values := golden(t, "encode", typ)
		got := make([]byte, len(want))
		if err := typ.Encode(got, values); err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		size := layouts[typ].Bytes
		for i := 0; i < len(got); i += size {
			if !bytes.Equal(got[i:i+size], want[i:i+size]) {
				t.Errorf("%s: block %d: got % x, want % x", typ, i/size, got[i:i+size], want[i:i+size])
				break
			}
		}
	}
}

// relativeError is the root of the squared error over that of the values, after encoding and decoding.
func relativeError(t *testing.T, typ Type, x []float32) float64 {
	t.Helper()
	n, _ := typ.RowBytes(len(x))
	b, y := make([]byte, n), make([]float32, len(x))
	if err := typ.Encode(b, x); err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	if err := typ.Decode(y, b); err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	var e, s float64
	for i := range x {
		e += math.Pow(float64(x[i])-float64(y[i]), 2)
		s += math.Pow(float64(x[i]), 2)
	}
	return math.Sqrt(e / s)
}

// The bounds are 2 % above the errors of ggml's own quantisers (its *_ref
// functions, version 0.25) on 65536 normal values, so that a search that
// stopped searching shows.
func TestEncodeQuality(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 256*64)
	for i := range x {
		x[i] = float32(r.NormFloat64() * 0.02)
	}
	for _, c := range []struct {
		typ   Type
		bound float64
	}{
		{F16, 3e-4}, {BF16, 2.3e-3}, {Q4_0, 0.0882}, {Q4_1, 0.0801}, {Q5_0, 0.0439}, {Q5_1, 0.0388}, {Q8_0, 0.0055},
		{Q2_K, 0.3042}, {Q3_K, 0.1544}, {Q4_K, 0.0733}, {Q5_K, 0.0370}, {Q6_K, 0.0182}, {IQ4_NL, 0.0805}, {MXFP4, 0.1159},
	} {
		if e := relativeError(t, c.typ, x); e > c.bound {
			t.Errorf("%s: relative error %.5f, want at most %g", c.typ, e, c.bound)
		} else {
			t.Logf("%s: %.5f", c.typ, e)
		}
	}
}

// Rows that defeat careless arithmetic: zeros, one value, subnormals, the
// largest magnitudes, all negative, all positive. The result must be finite
// and, except where the scale is too small for a half, close.
func TestEncodeEdges(t *testing.T) {
	rows := map[string]func(i int) float32{
		"zeros":      func(int) float32 { return 0 },
		"constant":   func(int) float32 { return -0.75 },
		"positive":   func(i int) float32 { return 1 + float32(i%7) },
		"one value":  func(i int) float32 { return float32(max(0, 1-i)) },
		"largest":    func(i int) float32 { return 65504 * float32(1-i%3) },
		"subnormal":  func(i int) float32 { return 1e-41 * float32(i%5-2) },
		"tiny":       func(i int) float32 { return 1e-12 * float32(i%5-2) },
		"mixed size": func(i int) float32 { return float32(math.Pow(10, float64(i%9-6))) },
	}
	for typ := range encoders {
		for name, f := range rows {
			x := make([]float32, 512)
			for i := range x {
				x[i] = f(i)
			}
			n, _ := typ.RowBytes(len(x))
			b, y := make([]byte, n), make([]float32, len(x))
			if err := typ.Encode(b, x); err != nil {
				t.Errorf("%s, %s: %v", typ, name, err)
			}
			if err := typ.Decode(y, b); err != nil {
				t.Errorf("%s, %s: %v", typ, name, err)
			}
			for i := range y {
				top := float64(abs(extreme(x)))
				if e := math.Abs(float64(x[i]) - float64(y[i])); !(e <= 0.35*top+1e-7) {
					t.Errorf("%s, %s: value %d is %g, stored as %g", typ, name, i, x[i], y[i])
					break
				}
			}
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	bad := make([]float32, 256)
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), -65505} {
		bad[17] = v
		for _, typ := range []Type{Q4_0, Q8_0, Q4_K, Q6_K} {
			n, _ := typ.RowBytes(len(bad))
			if err := typ.Encode(make([]byte, n), bad); !errors.Is(err, ErrRange) {
				t.Errorf("%s of %g: got %v, want ErrRange", typ, v, err)
			}
		}
	}
	if err := IQ3_S.Encode(make([]byte, 110), make([]float32, 256)); !errors.Is(err, ErrNoEncoder) {
		t.Errorf("IQ3_S: got %v, want ErrNoEncoder", err)
	}
	if err := Q4_0.Encode(make([]byte, 17), make([]float32, 32)); !errors.Is(err, ErrSize) {
		t.Errorf("short buffer: got %v, want ErrSize", err)
	}
}

func FuzzEncodeBlocks(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), float32(0.1))
	f.Add([]byte{0, 255, 128, 127}, float32(-3e4))
	f.Fuzz(func(t *testing.T, pattern []byte, scale float32) {
		x := make([]float32, 256)
		for i := range x {
			if len(pattern) > 0 {
				x[i] = scale * float32(int8(pattern[i%len(pattern)])) / 127
			}
		}
		for typ := range encoders {
			n, _ := typ.RowBytes(len(x))
			b := make([]byte, n)
			if err := typ.Encode(b, x); err != nil {
				continue
			}
			y := make([]float32, len(x))
			if err := typ.Decode(y, b); err != nil {
				t.Fatalf("%s: %v", typ, err)
			}
			if typ == F32 || typ == F16 || typ == BF16 {
				continue
			}
			for i, v := range y {
				if v-v != 0 {
					t.Fatalf("%s: value %d: %g became %g", typ, i, x[i], v)
				}
			}
		}
	})
}
