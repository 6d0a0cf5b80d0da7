package attn

import (
	"fmt"
	"testing"
)

// TestValuesOfKeys holds values that are a part of the keys against the same
// values stored apart: the bits are equal, in every tier.
func TestValuesOfKeys(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, typ := range []Elem{F32, F16, BF16} {
			for _, s := range []shape{
				{dk: 20, dv: 16, heads: 6, keys: 37, kt: typ, vt: typ},
				{dk: 24, dv: 24, heads: 3, keys: 16, kt: typ, vt: typ},
				{dk: 9, dv: 5, heads: 1, keys: 50, kt: typ, vt: typ, window: 19, first: 1},
				{dk: 72, dv: 64, heads: 70, keys: 600, kt: typ, vt: typ},
			} {
				q := build(s, min(3, s.keys), 5)
				c := q.call
				for p := s.first * Tile; p < s.keys; p++ {
					at := p/Tile - s.first
					PutValue(c.Values[c.TileV[at]:][:ValueTileBytes(typ, s.dv)], typ, s.dv, p%Tile, q.k[p][:s.dv])
				}
				c.Run(NewScratch(c.Rows, s.dk, s.dv))
				want := append([]float32{}, c.Out...)
				c.Values, c.TileV, c.ValuesOfKeys = nil, nil, true
				for r := range c.Rows {
					clear(c.Out[r*c.OutStride:][:c.DV])
				}
				c.Run(NewScratch(c.Rows, s.dk, s.dv))
				same(t, fmt.Sprint(s), &c, want)
			}
		}
	})
}

// TestSkip passes over tiles of which nothing is seen: the bits stay.
func TestSkip(t *testing.T) {
	tiers(t, func(t *testing.T) {
		s := shape{dk: 16, dv: 16, heads: 8, keys: 700}
		q := build(s, 1, 3)
		c := q.call
		c.Bias, c.BiasStride, c.Skip = make([]float32, s.keys), 0, make([]bool, (s.keys+Tile-1)/Tile)
		for i := range c.Skip {
			c.Skip[i] = i%3 != 1
		}
		for p := range c.Bias {
			if c.Skip[p/Tile] || p%5 == 0 {
				c.Bias[p] = negInf
			}
		}
		c.Run(NewScratch(c.Rows, s.dk, s.dv))
		got := append([]float32{}, c.Out...)
		c.Skip = nil
		c.Run(NewScratch(c.Rows, s.dk, s.dv))
		same(t, "all tiles", &c, got)
	})
}

// tiers runs f with each tier of the kernels.
func tiers(t *testing.T, f func(t *testing.T)) {
	fast := useAVX2
	defer func() { useAVX2 = fast }()
	for _, use := range []bool{false, true} {
		if use && !fast {
			continue
		}
		useAVX2 = use
		t.Run(fmt.Sprintf("fast %v", use), f)
	}
}
