package gemm

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkMul measures one thread on a matrix of 2048 × 2048 × copies: for one
// row enough copies to leave the caches, so that GB/s is the rate of streaming
// weights; Gop/s is 10⁹ operations a second (two for each product). Both are by
// the thread's own time, so that other work on the machine disturbs less.
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
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				b.ResetTimer()
				start := threadTime(b)
				for i := range b.N {
					ws[i%copies].Mul(dst, n, a, 0, rows, 0, ws[0].Panels(), s)
				}
				t := threadTime(b) - start
				b.ReportMetric(2*float64(n*k*rows)*float64(b.N)/t/1e9, "Gop/s")
				b.ReportMetric(float64(ws[0].Bytes())*float64(b.N)/t/1e9, "GB/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// threadTime is the processor time of the calling thread in seconds.
func threadTime(b *testing.B) float64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return float64(ts.Sec) + float64(ts.Nsec)/1e9
}
