package gemm

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkMul measures one thread on matrices of 256 × 2048. Gop/s is 10⁹
// operations a second (two for each product), GB/s the rate at which weights
// are read. Both come from the best of many short runs by the thread's own time,
// so that other work on the machine disturbs less. M=1 is measured on weights in
// cache, M=0 also has one row, but streams weights that no cache holds.
func BenchmarkMul(b *testing.B) {
	const n, k = 256, 2048
	for _, typ := range allTypes {
		row := randomRow(rand.New(rand.NewPCG(1, 1)), typ, k)
		for _, m := range []int{0, 1, 2, 4, 8, 16, 128} {
			b.Run(fmt.Sprintf("%s/M=%d", typ, m), func(b *testing.B) {
				copies, rows := 1, max(m, 1)
				if m == 0 {
					copies = 64 << 20 / (n * k / 2)
				}
				ws := make([]*Matrix, copies)
				for i := range ws {
					size, _ := PackedBytes(typ, n, k)
					ws[i], _ = Pack(alignedBytes(size), typ, n, k, func(int) []byte { return row })
				}
				x := randomActs(rand.New(rand.NewPCG(2, 2)), rows, k)
				benchMul(b, ws, prepared(typ, x, rows, k))
			})
		}
	}
}

func benchMul(b *testing.B, ws []*Matrix, a *Acts) {
	w, s := ws[0], NewScratch(a.k)
	dst := make([]float32, a.rows*w.n)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := 1e9
	b.ResetTimer()
	for i := range b.N {
		start := threadTime(b)
		for j := range min(4, len(ws)) {
			ws[(4*i+j)%len(ws)].Mul(dst, w.n, a, 0, a.rows, 0, w.Panels(), s)
		}
		best = min(best, (threadTime(b)-start)/float64(min(4, len(ws))))
	}
	b.ReportMetric(2*float64(w.n*w.k*a.rows)/best/1e9, "Gop/s")
	b.ReportMetric(float64(w.Bytes())/best/1e9, "GB/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPrepare measures the rounding of one row of 4096 values.
func BenchmarkPrepare(b *testing.B) {
	a, x := NewActs(1, 4096), randomActs(rand.New(rand.NewPCG(2, 2)), 1, 4096)
	b.SetBytes(4 * 4096)
	for b.Loop() {
		a.Prepare(Int8, x, 4096, 1, 4096, 0, 1)
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
