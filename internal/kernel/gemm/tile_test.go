package gemm

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

// A tile has the bits of the whole product, and zeros where no weight row is.
func TestMulTile(t *testing.T) {
	const n, k, rows = 37, 512, 27
	for _, typ := range []quant.Type{quant.F32, quant.Q4_0, quant.Q4_K, quant.Q6_K} {
		rng := rand.New(rand.NewPCG(12, uint64(typ)))
		w := newMatrix(t, rng, typ, n, k)
		a := prepared(typ, randomActs(rng, rows, k), rows, k)
		for _, tier := range tiers() {
			all := mulAll(w.on(tier), a, 0, rows, 0, w.Panels())
			for p0 := range w.Panels() {
				for p1 := p0 + 1; p1 <= w.Panels(); p1++ {
					stride := panelRows * (p1 - p0)
					dst := make([]float32, (rows-5)*stride)
					w.on(tier).MulTile(dst, stride, a, 5, rows, p0, p1, NewScratch(k))
					for m := 5; m < rows; m++ {
						row := dst[(m-5)*stride:][:stride]
						cols := min(stride, n-p0*panelRows)
						sameBits(t, fmt.Sprint(typ, tier, " row ", m), row[:cols], all[m*n+p0*panelRows:][:cols])
						for i, v := range row[cols:] {
							if v != 0 {
								t.Fatalf("%s %s: column %d without a weight row is %g", typ, tier, cols+i, v)
							}
						}
					}
				}
			}
		}
	}
}

// Threads prepare parts of the rows, then share one matrix and one Acts, each
// with its own Scratch.
func TestThreadsShareMatrixAndActs(t *testing.T) {
	const n, k, rows, threads = 80, 512, 20, 4
	rng := rand.New(rand.NewPCG(13, 13))
	w := newMatrix(t, rng, quant.Q4_K, n, k)
	x := randomActs(rng, rows, k)
	want := mulAll(w.Matrix, prepared(quant.Q4_K, x, rows, k), 0, rows, 0, w.Panels())
	a, got := NewActs(rows, k), make([]float32, rows*n)
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() { a.Prepare(Int8, x, k, rows, k, i*rows/threads, (i+1)*rows/threads) })
	}
	wg.Wait()
	for p := range w.Panels() {
		wg.Go(func() { w.Mul(got, n, a, 0, rows, p, p+1, NewScratch(k)) })
	}
	wg.Wait()
	sameBits(t, "threads", got, want)
}
