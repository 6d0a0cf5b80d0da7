package attn

import (
	"fmt"
	"math"
	"testing"
)

// scoresOf are the logits of row r in float64, by position.
func (q *seq) scoresOf(r int) map[int]float64 {
	c, out := &q.call, map[int]float64{}
	for p := int(c.Lo[r]); p < int(c.Hi[r]); p++ {
		s := 0.0
		for d, x := range c.Q[r*c.QStride:][:c.DK] {
			s += float64(x) * float64(q.k[p][d])
		}
		s *= float64(c.Scale)
		if c.Softcap > 0 {
			s = float64(c.Softcap) * math.Tanh(s/float64(c.Softcap))
		}
		out[p] = s
	}
	return out
}

// TestWeights holds sums without a softmax, sticks, counted gates and fading
// keys against loops over positions, in both tiers and all element types.
func TestWeights(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, s := range []shape{{dk: 16, dv: 8, heads: 3, keys: 41}, {dk: 7, dv: 5, heads: 1, keys: 700, window: 90, kt: F16, vt: BF16}, {dk: 16, dv: 16, heads: 2, keys: 100, first: 2, extra: "softcap"}} {
			q := build(s, 30, 5)
			c := q.call
			c.Open, c.OutStride = true, c.DV+1
			stride := len(c.TileK) * Tile
			gates, fades := make([]float32, c.Rows*stride), make([]float32, c.Rows*stride)
			mapped, sticks := make([]float32, c.Rows*c.OutStride), make([]float32, c.Rows*c.OutStride)
			scratch := NewScratch(c.Rows, c.DK, c.DV)
			c.Gates(scratch, gates, stride)
			c.Fades(scratch, fades, stride, 3)
			for r := range c.Rows {
				q.holdEnds(t, fmt.Sprintf("%v, row %d", s, r), r, fades[r*stride:], 3)
			}
			c.Fades(scratch, fades, stride, 0)
			c.Out = mapped
			c.RunMapped(scratch, func(dst, x []float32) {
				for i, v := range x {
					dst[i] = v*v + 1
				}
			})
			c.Out = sticks
			c.RunSticks(scratch)
			for r := range c.Rows {
				q.holdWeights(t, fmt.Sprintf("%v, row %d", s, r), r, mapped[r*c.OutStride:], sticks[r*c.OutStride:], gates[r*stride:], fades[r*stride:])
			}
		}
	})
}

// holdEnds holds fading keys of which only those that end a block are seen.
func (q *seq) holdEnds(t *testing.T, what string, r int, fades []float32, every int) {
	t.Helper()
	c, sum := &q.call, 0.0
	for p := int(c.Hi[r]) - 1; p >= int(c.Lo[r]); p-- {
		got, want := float64(fades[p-Tile*c.FirstTile]), math.Inf(-1)
		if (p+1)%every == 0 {
			want = sum
			sum += float64(q.k[p][c.DK-1])
		}
		if got != want && !(math.Abs(got-want) <= 3e-5*max(1, math.Abs(want))) {
			t.Fatalf("%s: the fading at %d of every %d is %g, want %g", what, p, every, got, want)
		}
	}
}

func (q *seq) holdWeights(t *testing.T, what string, r int, mapped, sticks, gates, fades []float32) {
	t.Helper()
	c, scores := &q.call, q.scoresOf(r)
	sum, broken := make([]float64, c.DV), make([]float64, c.DV)
	left, counted, faded := 1.0, 0.0, 0.0
	near := func(name string, got float32, want float64) {
		if diff := math.Abs(float64(got) - want); !(diff <= 3e-5*max(1, math.Abs(want))) {
			t.Fatalf("%s: %s is %g, want %g", what, name, got, want)
		}
	}
	for p := int(c.Hi[r]) - 1; p >= int(c.Lo[r]); p-- {
		x := scores[p]
		gate := 1 / (1 + math.Exp(-x))
		counted += gate
		near(fmt.Sprintf("the count at %d", p), gates[p-Tile*c.FirstTile], counted)
		near(fmt.Sprintf("the fading at %d", p), fades[p-Tile*c.FirstTile], faded)
		faded += float64(q.k[p][c.DK-1])
		for d, v := range q.v[p] {
			sum[d] += (x*x + 1) * float64(v)
			broken[d] += gate * left * float64(v)
		}
		left *= 1 - gate
	}
	for d := range c.DV {
		near(fmt.Sprintf("value %d of the sum", d), mapped[d], sum[d])
		near(fmt.Sprintf("value %d of the sticks", d), sticks[d], broken[d])
	}
	near("what is left", sticks[c.DV], math.Log(left))
}
