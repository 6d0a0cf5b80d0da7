package gemm

import (
	"fmt"
	"math/rand/v2"
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
