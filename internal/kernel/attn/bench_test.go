package attn

import (
	"fmt"
	"testing"
)

// BenchmarkRun reports the multiply-adds of visible positions, as GFLOP/s.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		s      shape
		tokens int
	}{
		{shape{dk: 64, dv: 64, heads: 4, keys: 512, kt: F16, vt: F16}, 512},
		{shape{dk: 64, dv: 64, heads: 4, keys: 2048, kt: F16, vt: F16}, 64},
		{shape{dk: 128, dv: 128, heads: 4, keys: 2048, kt: F16, vt: F16}, 64},
		{shape{dk: 64, dv: 64, heads: 4, keys: 2048, kt: F16, vt: F16, extra: "softcap"}, 64},
		{shape{dk: 576, dv: 512, heads: 16, keys: 1024, kt: F16, vt: F16}, 4},
		{shape{dk: 64, dv: 64, heads: 1, keys: 2048, kt: F16, vt: F16}, 1},
		{shape{dk: 64, dv: 64, heads: 3, keys: 2048, kt: F16, vt: F16}, 1},
		{shape{dk: 128, dv: 128, heads: 8, keys: 2048, kt: F16, vt: F16}, 1},
	} {
		b.Run(fmt.Sprintf("dk%d heads%d keys%d tokens%d %s", c.s.dk, c.s.heads, c.s.keys, c.tokens, c.s.extra), func(b *testing.B) {
			q := build(c.s, c.tokens, 1)
			scr := NewScratch(64, c.s.dk, c.s.dv)
			pairs := 0
			for r := range q.call.Rows {
				pairs += int(q.call.Hi[r] - q.call.Lo[r])
			}
			b.ReportAllocs()
			for b.Loop() {
				q.call.Run(scr)
			}
			flops := float64(2*pairs*(c.s.dk+c.s.dv)) * float64(b.N)
			b.ReportMetric(flops/1e9/b.Elapsed().Seconds(), "GFLOP/s")
		})
	}
}
