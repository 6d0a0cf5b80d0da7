package ref

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
)

// join evaluates graph.JoinAttr.
func join(heads int, in []*Value, out *Value) {
	e := out.Width / heads
	acc := make([]float64, e)
	for r := range out.Rows {
		for h := range heads {
			top := math.Inf(-1)
			for _, x := range in {
				top = math.Max(top, float64(x.Row(r)[h*(e+1)+e]))
			}
			sum := 0.0
			clear(acc)
			for _, x := range in {
				y := x.Row(r)[h*(e+1):][:e+1]
				w := math.Exp(float64(y[e]) - top)
				sum += w
				for d := range acc {
					acc[d] += w * float64(y[d])
				}
			}
			for d := range acc {
				out.Row(r)[h*e+d] = float32(acc[d] / sum)
			}
		}
	}
}

// logSum is the logarithm of a sum that was taken relative to exp(top).
func logSum(top, sum float64) float32 {
	if sum == 0 {
		return graph.Nothing
	}
	return float32(top + math.Log(sum))
}

// stored evaluates graph.StoredAttr: what attention does with keys and values
// that stand in memory.
func (m *Machine) stored(n *graph.Node, a *graph.StoredAttr, in []*Value, out *Value) error {
	k, v := m.Graph.Nodes[n.In[1]].Shape, m.Graph.Nodes[n.In[2]].Shape
	c := graph.Cache{Kind: graph.CacheKV, Heads: k[1], KeyDim: k[2], ValueDim: v[2]}
	as := &graph.AttentionAttr{Scale: a.Scale, Softcap: a.Softcap, Tile: a.Tile, Open: a.Open, Mask: graph.MaskFull, Heads: n.Shape[0], KVHeads: k[1]}
	return m.parallel(out.Rows, func(from, to int) error {
		for r := from; r < to; r++ {
			row := seenRow{a: as, c: c, k: in[1].Row(0), v: in[2].Row(0)}
			row.see(k[0], nil)
			row.attend(in[0].Row(r), out.Row(r))
		}
		return nil
	})
}
