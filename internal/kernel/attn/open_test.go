package attn

import (
	"fmt"
	"math"
	"testing"
)

// TestOpen holds what an open softmax tells of its sum against the sum itself,
// and two of them, joined, against the softmax over all.
func TestOpen(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, keys := range []int{1, 40, 1100} {
			for _, sink := range []bool{false, true} {
				s := shape{dk: 16, dv: 8, heads: 3, keys: keys}
				q := build(s, 1, 7)
				c := q.call
				c.Sinks = nil
				whole := openRun(c, int32(0), int32(keys), sink)
				cut := int32(keys / 3)
				a, b := openRun(c, 0, cut, sink), openRun(c, cut, int32(keys), false)
				for r := range whole {
					x, y, w := a[r], b[r], whole[r]
					top := math.Max(float64(x[c.DV]), float64(y[c.DV]))
					p, o := math.Exp(float64(x[c.DV])-top), math.Exp(float64(y[c.DV])-top)
					for d := range c.DV + 1 {
						want := (p*float64(x[d]) + o*float64(y[d])) / (p + o)
						if d == c.DV {
							want = top + math.Log(p+o)
						}
						if diff := math.Abs(want - float64(w[d])); !(diff < 2e-5) {
							t.Fatalf("%d keys, sink %v, row %d, value %d: %g joined, %g at once", keys, sink, r, d, want, w[d])
						}
					}
				}
			}
		}
		s := shape{dk: 16, dv: 8, heads: 3, keys: 20}
		c := build(s, 1, 7).call
		for r, row := range openRun(c, 5, 5, false) {
			if got := fmt.Sprint(row); row[c.DV] != Nothing || row[0] != 0 {
				t.Errorf("row %d sees nothing and gives %s", r, got)
			}
		}
	})
}

// openRun is a call's rows, left open, over the positions from lo to hi.
func openRun(c Call, lo, hi int32, sink bool) (rows [][]float32) {
	c.Open, c.OutStride = true, c.DV+1
	c.Out = make([]float32, c.Rows*c.OutStride)
	c.Lo, c.Hi = make([]int32, c.Rows), make([]int32, c.Rows)
	if c.Sinks = nil; sink {
		c.Sinks = make([]float32, c.Rows)
	}
	for r := range c.Rows {
		c.Lo[r], c.Hi[r] = lo, hi
		if sink {
			c.Sinks[r] = 0.5 * float32(r)
		}
	}
	c.Run(NewScratch(c.Rows, c.DK, c.DV))
	for r := range c.Rows {
		rows = append(rows, c.Out[r*c.OutStride:][:c.OutStride])
	}
	return rows
}
