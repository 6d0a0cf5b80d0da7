package devicetest

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
)

// selective is a state space mixer whose channels are heads of one component,
// with a decay of each component of the state.
func (n *net) selective(h *graph.Node, channels, size int) *graph.Node {
	u := n.unary("silu", n.conv(n.linear(h, channels), 4, true))
	p := n.linear(u, 2*size+4)
	part := func(from, to int) *graph.Node {
		return n.reshape(n.must(n.Slice(p, 0, from, to, 1)), 1, to-from)
	}
	dt := n.unary("softplus", n.biased(n.flat(part(2*size, 2*size+4)), channels))
	a := n.unary("scale", n.unary("exp", n.must(n.Param(n.vector(0, channels, size)))), -1)
	y := n.must(n.Scan(n.reshape(u, channels, 1), part(0, size), part(size, 2*size), dt, a))
	return n.binary("mul", n.flat(y), n.unary("silu", n.linear(h, channels)))
}

// recalls is a linear attention of heads that may differ in everything.
type recalls struct {
	keyHeads, heads, dk, dv int
	decays, bonus           int  // 0: none (of a decay: a number for all), 1: a head, dk: a channel
	gate                    bool // an exponential input gate
	norm                    string
	tile                    bool
}

func (n *net) recall(h *graph.Node, r recalls) *graph.Node {
	each := func(x *graph.Node, per int) *graph.Node {
		if per > 1 {
			return n.reshape(x, r.heads, per)
		}
		return x
	}
	in := graph.LinearAttentionIn{V: n.reshape(n.linear(h, r.heads*r.dv), r.heads, r.dv)}
	if r.keyHeads > 0 {
		in.Q = n.unary("scale", n.reshape(n.linear(h, r.keyHeads*r.dk), r.keyHeads, r.dk), 1/math.Sqrt(float64(r.dk)))
		in.K = n.reshape(n.linear(h, r.keyHeads*r.dk), r.keyHeads, r.dk)
		if r.norm == "sum" && !r.gate {
			in.Q, in.K = n.unary("exp", in.Q), n.unary("exp", in.K)
		}
	}
	if r.decays == 0 {
		slopes := make([]float64, r.heads)
		for i := range slopes {
			slopes[i] = -0.05 * float64(i+1)
		}
		in.G = n.must(n.Const(slopes, []int{r.heads}))
	} else {
		in.G = each(n.unary("scale", n.unary("softplus", n.biased(h, r.heads*r.decays)), -0.4), r.decays)
	}
	if r.gate {
		in.I = n.unary("scale", n.biased(h, r.heads), 3)
	}
	if r.bonus > 0 {
		shape := []int{r.heads}
		if r.bonus > 1 {
			shape = append(shape, r.bonus)
		}
		in.U = n.must(n.Param(n.vector(0.5, shape...)))
	}
	return n.must(n.LinearAttention(in, graph.LinearAttentionAttr{Norm: r.norm, Eps: 1e-6, Tile: r.tile}))
}

// generalDelta is a general delta rule that takes away what a unit key recalls.
func (n *net) generalDelta(h *graph.Node, heads, dk, dv, decays int) *graph.Node {
	part := func(d int) *graph.Node { return n.reshape(n.linear(h, heads*d), heads, d) }
	unit := n.norm(part(dk), graph.NormAttr{Kind: graph.L2, Eps: 1e-6})
	g := n.unary("scale", n.unary("sigmoid", n.biased(h, heads*decays)), -0.6)
	if decays > 1 {
		g = n.reshape(g, heads, decays)
	}
	b := n.binary("mul", unit, n.unary("sigmoid", part(dk)))
	return n.must(n.GeneralDelta(part(dk), part(dk), part(dv), g, n.unary("scale", unit, -1), b, false))
}

func (n *net) shift(x *graph.Node, by int) *graph.Node { return n.must(n.Shift(x, by)) }

func recallCase(name string, r recalls) testCase {
	c := recurrentCase("linear attention, "+name, func(n *net, h *graph.Node) *graph.Node { return n.recall(h, r) })
	if r.norm != "" {
		c.tol = 6e-5 // a small divisor makes rounding larger
	}
	return c
}

var recallCases = []testCase{
	recurrentCase("conv as a shift", func(n *net, h *graph.Node) *graph.Node {
		return n.add(n.shift(n.linear(h, 40), 1), n.unary("silu", n.shift(n.linear(h, 40), 5)))
	}),
	recurrentCase("scan, decay a component", func(n *net, h *graph.Node) *graph.Node { return n.selective(h, 70, 16) }),
	recurrentCase("scan, one component", func(n *net, h *graph.Node) *graph.Node { return n.selective(h, 9, 1) }),
	recallCase("fixed decay", recalls{keyHeads: 4, heads: 4, dk: 16, dv: 16}),
	recallCase("grouped", recalls{keyHeads: 2, heads: 6, dk: 8, dv: 24, decays: 1}),
	recallCase("tiled", recalls{keyHeads: 2, heads: 6, dk: 8, dv: 5, decays: 8, tile: true}),
	recallCase("bonus a channel", recalls{keyHeads: 3, heads: 3, dk: 16, dv: 16, decays: 16, bonus: 16}),
	recallCase("bonus a head", recalls{keyHeads: 3, heads: 3, dk: 7, dv: 9, decays: 1, bonus: 1}),
	recallCase("sum", recalls{keyHeads: 2, heads: 4, dk: 12, dv: 10, decays: 12, norm: "sum"}),
	recallCase("sum, bonus", recalls{keyHeads: 4, heads: 4, dk: 12, dv: 10, decays: 1, bonus: 12, norm: "sum"}),
	recallCase("largest, gate", recalls{keyHeads: 4, heads: 4, dk: 16, dv: 32, decays: 1, gate: true, norm: "max"}),
	recallCase("largest", recalls{keyHeads: 2, heads: 2, dk: 16, dv: 8, decays: 16, norm: "max"}),
	recallCase("gate, bonus, no keys", recalls{heads: 45, dk: 1, dv: 1, gate: true, bonus: 1, norm: "sum"}),
	recallCase("gate, no keys", recalls{heads: 12, dk: 1, dv: 3, decays: 1, gate: true, norm: "sum"}),
	recallCase("no keys", recalls{heads: 300, dk: 1, dv: 1, decays: 1}),
	recurrentCase("general delta", func(n *net, h *graph.Node) *graph.Node { return n.generalDelta(h, 4, 16, 16, 16) }),
	recurrentCase("general delta, decay a head", func(n *net, h *graph.Node) *graph.Node { return n.generalDelta(h, 3, 8, 12, 1) }),
}
