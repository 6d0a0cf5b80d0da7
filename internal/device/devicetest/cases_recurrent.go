package devicetest

import (
	"math"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// Recurrent layers stand between others, so that programs can be cut before
// and after them.
func recurrentCase(name string, mix func(n *net, h *graph.Node) *graph.Node) testCase {
	has := []program.Kind{program.KindConv1D, program.KindRecurrent}
	switch {
	case strings.HasPrefix(name, "conv"):
		has = has[:1]
	case strings.HasPrefix(name, "linear") || strings.HasPrefix(name, "general"):
		has = has[1:]
	}
	return testCase{name: "recurrent/" + name, tol: 2e-5, has: has, build: func(n *net) *graph.Node {
		x := n.embed()
		n.Layer = 0
		x = n.add(x, n.linear(n.flat(mix(n, n.rms(x))), width))
		n.Layer = 1
		h := n.rms(x)
		x = n.add(x, n.linear(n.binary("mul", n.unary("silu", n.linear(h, 80)), n.linear(h, 80)), width))
		n.Layer = 2
		x = n.add(x, n.linear(n.flat(mix(n, n.rms(x))), width))
		return n.head(x)
	}}
}

func (n *net) flat(x *graph.Node) *graph.Node { return n.reshape(x, -1) }

// conv is a convolution of taps, with a bias or none.
func (n *net) conv(x *graph.Node, taps int, bias bool) *graph.Node {
	var b *graph.Weight
	if bias {
		b = n.vector(0, x.Width())
	}
	return n.must(n.Conv1D(x, n.vector(0, x.Width(), taps), b))
}

// scan is a state space mixer without its norm.
func (n *net) scan(h *graph.Node, heads, p, groups, size, taps int) *graph.Node {
	inner := heads * p
	u := n.unary("silu", n.conv(n.linear(h, inner+2*groups*size), taps, true))
	x := n.reshape(n.must(n.Slice(u, 0, 0, inner, 1)), heads, p)
	b := n.reshape(n.must(n.Slice(u, 0, inner, inner+groups*size, 1)), groups, size)
	c := n.reshape(n.must(n.Slice(u, 0, inner+groups*size, inner+2*groups*size, 1)), groups, size)
	dt := n.unary("clamp", n.unary("softplus", n.biased(h, heads)), 0.001, 10)
	y := n.must(n.Scan(x, b, c, dt, n.must(n.Param(n.vector(-1.5, heads)))))
	d := n.reshape(n.must(n.Param(n.vector(1, heads))), heads, 1)
	y = n.flat(n.add(y, n.binary("mul", d, x)))
	return n.binary("mul", y, n.unary("silu", n.linear(h, inner)))
}

// delta is a gated delta mixer; decays is 1 (a head) or dk (a channel).
func (n *net) delta(h *graph.Node, keyHeads, heads, dk, dv, decays int, tile bool) *graph.Node {
	u := n.unary("silu", n.conv(n.linear(h, 2*keyHeads*dk+heads*dv), 4, false))
	part := func(from, heads, d int) *graph.Node {
		return n.reshape(n.must(n.Slice(u, 0, from, from+heads*d, 1)), heads, d)
	}
	unit := graph.NormAttr{Kind: graph.L2, Eps: 1e-6}
	q := n.unary("scale", n.norm(part(0, keyHeads, dk), unit), 1/math.Sqrt(float64(dk)))
	k := n.norm(part(keyHeads*dk, keyHeads, dk), unit)
	v := part(2*keyHeads*dk, heads, dv)
	g := n.unary("scale", n.unary("softplus", n.biased(h, heads*decays)), -0.7)
	if decays > 1 {
		g = n.reshape(g, heads, decays)
	}
	beta := n.unary("sigmoid", n.linear(h, heads))
	return n.must(n.GatedDelta(q, k, v, g, beta, tile))
}

var recurrentCases = []testCase{
	recurrentCase("conv", func(n *net, h *graph.Node) *graph.Node { return n.conv(n.linear(h, 48), 4, false) }),
	recurrentCase("conv, bias", func(n *net, h *graph.Node) *graph.Node { return n.unary("silu", n.conv(n.linear(h, 37), 3, true)) }),
	recurrentCase("conv, one tap", func(n *net, h *graph.Node) *graph.Node { return n.conv(n.linear(h, 16), 1, true) }),
	recurrentCase("conv, many taps", func(n *net, h *graph.Node) *graph.Node { return n.conv(n.linear(h, 600), 9, true) }),
	recurrentCase("conv between products", func(n *net, h *graph.Node) *graph.Node {
		u := n.conv(n.binary("mul", n.linear(h, 40), n.linear(h, 40)), 3, false)
		return n.binary("mul", n.linear(h, 40), u)
	}),
	recurrentCase("scan", func(n *net, h *graph.Node) *graph.Node { return n.scan(h, 4, 16, 2, 16, 4) }),
	recurrentCase("scan, odd sizes", func(n *net, h *graph.Node) *graph.Node { return n.scan(h, 6, 7, 3, 11, 2) }),
	recurrentCase("scan, one group", func(n *net, h *graph.Node) *graph.Node { return n.scan(h, 3, 8, 1, 128, 4) }),
	recurrentCase("delta", func(n *net, h *graph.Node) *graph.Node { return n.delta(h, 4, 4, 16, 16, 1, false) }),
	recurrentCase("delta, grouped", func(n *net, h *graph.Node) *graph.Node { return n.delta(h, 2, 6, 8, 24, 1, false) }),
	recurrentCase("delta, tiled", func(n *net, h *graph.Node) *graph.Node { return n.delta(h, 2, 6, 8, 5, 1, true) }),
	recurrentCase("delta, decay a channel", func(n *net, h *graph.Node) *graph.Node { return n.delta(h, 3, 3, 16, 16, 16, false) }),
	recurrentCase("beside attention", func(n *net, h *graph.Node) *graph.Node {
		a := n.must(n.Attention(n.reshape(n.linear(h, 64), 4, 16), n.reshape(n.linear(h, 32), 2, 16), n.reshape(n.linear(h, 32), 2, 16),
			graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal}))
		return n.add(n.flat(a), n.scan(h, 4, 16, 1, 8, 4))
	}),
}
