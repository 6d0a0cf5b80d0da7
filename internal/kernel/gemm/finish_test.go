package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

// Finished results have the bits of product, bias and residual one after the
// other, whatever part of the rows was finished, and nothing else is written.
func TestMulFinish(t *testing.T) {
	const n, wide = 53, 90 // columns, values of a row of the output
	for _, typ := range []quant.Type{quant.F32, quant.F16, quant.BF16, quant.Q8_0} {
		for _, k := range []int{64, segment, segment + 32, 3*segment + 32} {
			for _, rows := range []int{1, 5, 12, 17, 203} {
				testFinish(t, typ, n, k, rows, wide)
			}
		}
	}
}

func testFinish(t *testing.T, typ quant.Type, n, k, rows, wide int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(21, uint64(k*rows)))
	w := newMatrix(t, rng, typ, n, k)
	a := prepared(typ, randomActs(rng, rows, k), rows, k)
	bias, old := randomActs(rng, 1, n+panelRows), randomActs(rng, rows, wide)
	for _, tier := range tiers() {
		m := w.on(tier)
		for mask := range 4 {
			for _, p := range [][2]int{{0, 3}, {1, 2}, {0, 4}} {
				row := min(3, rows-1)
				name := fmt.Sprint(typ, " ", tier, " k ", k, " rows ", rows, " panels ", p, " with ", mask)
				checkFinish(t, name, m, a, finishCase{row, p[0], p[1], wide, mask&1 != 0, mask&2 != 0}, bias, old)
			}
		}
	}
}

type finishCase struct {
	row, from, to, wide    int
	withBias, withResidual bool
}

func checkFinish(t *testing.T, name string, w *Matrix, a *Acts, c finishCase, bias, old []float32) {
	t.Helper()
	stride, s := (c.to-c.from)*panelRows, NewScratch(w.k)
	y, plain := make([]float32, (a.rows-c.row)*stride), make([]float32, (a.rows-c.row)*stride)
	out := append([]float32{}, old...)
	at := c.row*c.wide + c.from*panelRows
	f := Finish{Out: out[at:], Stride: c.wide}
	if c.withBias {
		f.Bias = bias[c.from*panelRows:]
	}
	if c.withResidual {
		f.Residual = old[at:]
	}
	done := w.MulFinish(y, &f, a, c.row, a.rows, c.from, c.to, s)
	w.MulTile(plain, stride, a, c.row, a.rows, c.from, c.to, s)
	want := append([]float32{}, old...)
	for r := range done {
		for i, v := range plain[r*stride:][:stride] {
			if c.withBias {
				v += bias[c.from*panelRows+i]
			}
			if c.withResidual {
				v += old[at+r*c.wide+i]
			}
			want[at+r*c.wide+i] = v
		}
	}
	sameBits(t, name, out, want)
	sameBits(t, name+", the rest", y[done*stride:], plain[done*stride:])
	if whole := c.to*panelRows <= w.n && w.kernels != nil; done > 0 && !whole {
		t.Fatalf("%s: finished columns that do not exist", name)
	}
}

// Segments added one by one, each from activations of its own, have the bits of
// the whole product.
func TestAddSegment(t *testing.T) {
	const n = 48
	for _, typ := range []quant.Type{quant.F32, quant.F16} {
		for _, k := range []int{64, Segment, Segment + 32, 3*Segment + 32} {
			rng := rand.New(rand.NewPCG(22, uint64(k)))
			x := randomActs(rng, 107, k)
			a := prepared(typ, x, 107, k)
			whole := newMatrix(t, rng, typ, n, k)
			bias, res := randomActs(rng, 1, n), randomActs(rng, 107, n)
			for _, tier := range tiers() {
				w, s := whole.on(tier), NewScratch(k)
				rows := w.WholeTiles(107)
				if rows == 0 {
					continue
				}
				want, got := make([]float32, 107*n), make([]float32, 107*n)
				y := make([]float32, 107*n)
				w.MulFinish(y, &Finish{Out: want, Residual: res, Stride: n, Bias: bias}, a, 0, rows, 0, n/panelRows, s)
				for i := range (k + Segment - 1) / Segment {
					c := min(Segment, k-i*Segment)
					part := make([]float32, (107+SpareRows)*c)
					for r := range 107 {
						copy(part[r*c:][:c], x[r*k+i*Segment:])
					}
					var pa Acts
					pa.Alias(part, rows, c)
					w.AddSegment(y, &Finish{Out: got, Residual: res, Stride: n, Bias: bias}, &pa, rows, i, 0, n/panelRows, s)
				}
				sameBits(t, fmt.Sprint(typ, " ", tier, " k ", k), got[:rows*n], want[:rows*n])
			}
		}
	}
}
