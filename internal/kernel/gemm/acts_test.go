package gemm

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

func TestPrepareEqualsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, special := range []float32{0, 1, -3e38, 1e-36, 9e-37, 1e-40, 2e-45, inf, -inf, nan, 0.5} {
		for range 20 {
			x := make([]float32, 96)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
				if special != 1 && special != inf && special == special {
					x[i] = float32(float64(special) * (rng.Float64()*2 - 1))
				}
				if special == 0.5 { // ties
					x[i] = float32(rng.IntN(255)-127) / 2
				}
			}
			x[40+rng.IntN(8)] = special
			a := NewActs(1, 96)
			a.Prepare(Int8, x, 96, 1, 96, 0, 1)
			want := make([]byte, 3*recordBytes)
			prepareInt8Go(want, x)
			got := a.buf[:3*recordBytes]
			for b := range 3 {
				if special != special || special == inf || special == -inf {
					clearNaN(got[b*recordBytes:])
					clearNaN(want[b*recordBytes:])
				}
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%g: got\n%v\nwant\n%v", special, got, want)
			}
		}
	}
}

// clearNaN makes the payloads of a record's NaNs equal; which one it is does not matter.
func clearNaN(r []byte) {
	_, scale, sum, _ := record(r, 0)
	if scale != scale && sum != sum {
		clear(r[32:40])
	}
}

func TestPrepareError(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	x := randomActs(rng, 1, 320)
	a := prepared(quant.Q4_0, x, 1, 320)
	for b := range 10 {
		_, scale, sum, halves := record(a.buf, b)
		var total int32
		for i := range granule {
			k := b*granule + i
			if d := math.Abs(a.value(0, k) - float64(x[k])); d > float64(scale)*0.5001 {
				t.Fatalf("value %d: %g is stored as %g, scale %g", k, x[k], a.value(0, k), scale)
			}
			codes, _, _, _ := record(a.buf, b)
			total += int32(codes[i])
		}
		if total != halves[0]+halves[1] || sum != scale*float32(total) {
			t.Fatalf("block %d: sums %v and %g, want %d", b, halves, sum, total)
		}
	}
}

func TestPrepareInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, kind := range []Kind{Float, Int8} {
		x := randomActs(rng, 7*3, 64) // a stride of 3 rows
		whole, parts := NewActs(7, 64), NewActs(9, 96)
		whole.Prepare(kind, x, 192, 7, 64, 0, 7)
		for _, r := range [][2]int{{4, 7}, {2, 2}, {0, 1}, {1, 4}} {
			parts.Prepare(kind, x, 192, 7, 64, r[0], r[1])
		}
		n := 7 * whole.stride
		if parts.Rows() != 7 || parts.K() != 64 || parts.Kind() != kind || !bytes.Equal(whole.buf[:n], parts.buf[:n]) {
			t.Errorf("%s: parts differ from the whole", kind)
		}
	}
}

func TestGather(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	x := randomActs(rng, 9, 128)
	src, dst := prepared(quant.Q8_0, x, 9, 128), NewActs(4, 128)
	rows := []int32{8, 0, 3}
	dst.Gather(src, rows)
	if dst.Rows() != 3 || dst.K() != 128 || dst.Kind() != Int8 {
		t.Fatalf("shape %d %d %s", dst.Rows(), dst.K(), dst.Kind())
	}
	for i, r := range rows {
		for k := range 128 {
			if dst.value(i, k) != src.value(int(r), k) {
				t.Fatalf("row %d value %d differs", i, k)
			}
		}
	}
}
