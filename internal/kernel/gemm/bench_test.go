package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

// BenchmarkMul measures one thread on a matrix of 2048 × 2048 × copies: for one
// row enough copies to leave the caches, so that MB/s is the rate of streaming
// weights; G is 10⁹ operations a second (two for each product).
func BenchmarkMul(b *testing.B) {
	const n, k = 2048, 2048
	for _, typ := range allTypes {
		rng := rand.New(rand.NewPCG(1, 1))
		row := randomRow(rng, typ, k)
		for _, rows := range []int{1, 2, 4, 8, 16, 512} {
			b.Run(fmt.Sprintf("%s/M=%d", typ, rows), func(b *testing.B) {
				copies := 1
				if rows == 1 {
					copies = 32
				}
				ws := make([]*Matrix, copies)
				for i := range ws {
					size, _ := PackedBytes(typ, n, k)
					ws[i], _ = Pack(alignedBytes(size), typ, n, k, func(int) []byte { return row })
				}
				a, s, dst := prepared(typ, randomActs(rng, rows, k), rows, k), NewScratch(k), make([]float32, rows*n)
				b.SetBytes(int64(ws[0].Bytes()))
				b.ResetTimer()
				for i := range b.N {
					ws[i%copies].Mul(dst, n, a, 0, rows, 0, ws[0].Panels(), s)
				}
				b.ReportMetric(2*float64(n*k*rows)*float64(b.N)/b.Elapsed().Seconds()/1e9, "G")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

var _ = quant.F32
