package gemm

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

func BenchmarkTmp(b *testing.B) {
	const n, k = 16, 512
	for _, typ := range allTypes {
		if KindOf(typ) == Float || setOf(2-1, typ) == nil {
			continue
		}
		rng := rand.New(rand.NewPCG(1, 1))
		row := randomRow(rng, typ, k)
		size, _ := PackedBytes(typ, n, k)
		w, _ := Pack(alignedBytes(size), typ, n, k, func(int) []byte { return row })
		a, s, dst := prepared(typ, randomActs(rng, 8, k), 8, k), NewScratch(k), make([]float32, 8*n)
		w.Mul(dst, n, a, 0, 8, 0, 1, s)
		for _, c := range []struct {
			n    string
			k    kernel
			macs int
		}{{"x1", w.kernels.one, 1}, {"x2", w.kernels.two, 2}, {"x4", w.kernels.four, 4}, {"wide", w.kernels.wide, 4}, {"unpack", w.kernels.unpack, 1}} {
			b.Run(fmt.Sprintf("%s/%s", typ, c.n), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				g := &s.args
				best := 1e9
				for rep := 0; rep < 200; rep++ {
					start := threadTime(b)
					for i := 0; i < 40; i++ {
						w.kernels.pointTo(g, w, 0, 0)
						g.n = w.blocks
						g.acts = unsafe.Pointer(&a.buf[0])
						g.tiles = 1
						g.actStride = a.stride
						g.dst, g.dstStride = unsafe.Pointer(&dst[0]), n*4
						g.slice, g.work = unsafe.Pointer(s.slice), unsafe.Pointer(&s.work[0])
						c.k.call(g)
					}
					best = min(best, (threadTime(b)-start)/40)
				}
				b.ReportMetric(best*3.16e9/16, "cyc/blk")
				b.ReportMetric(2*float64(n*k*c.macs)/best/1e9, "Gop/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
