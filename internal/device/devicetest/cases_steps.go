package devicetest

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// product is a gated delta mixer of several steps a token.
func (n *net) product(h *graph.Node, steps, keyHeads, heads, dk, dv, decays int, tile bool) *graph.Node {
	unit := graph.NormAttr{Kind: graph.L2, Eps: 1e-6}
	q := n.unary("scale", n.norm(n.reshape(n.linear(h, keyHeads*dk), keyHeads, dk), unit), 1/math.Sqrt(float64(dk)))
	k := n.norm(n.reshape(n.linear(h, steps*keyHeads*dk), steps, keyHeads, dk), unit)
	v := n.reshape(n.linear(h, steps*heads*dv), steps, heads, dv)
	g := n.unary("scale", n.unary("softplus", n.biased(h, heads*decays)), -0.7)
	if decays > 1 {
		g = n.reshape(g, heads, decays)
	}
	beta := n.unary("scale", n.unary("sigmoid", n.reshape(n.linear(h, steps*heads), steps, heads)), 2)
	return n.must(n.GatedDelta(q, k, v, g, beta, tile))
}

// stepCases are delta rules of several steps a token, and rows before the text.
var stepCases = []testCase{
	recurrentCase("linear, two delta steps a token", func(n *net, h *graph.Node) *graph.Node { return n.product(h, 2, 3, 6, 8, 5, 1, false) }),
	recurrentCase("linear, three delta steps a token, decay a channel", func(n *net, h *graph.Node) *graph.Node { return n.product(h, 3, 2, 4, 16, 16, 16, true) }),
	recurrentCase("general, two steps a token", func(n *net, h *graph.Node) *graph.Node {
		shape := func(x *graph.Node, s ...int) *graph.Node { return n.reshape(x, s...) }
		k := n.norm(shape(n.linear(h, 2*2*8), 2, 2, 8), graph.NormAttr{Kind: graph.L2, Eps: 1e-6})
		g := n.unary("neg", n.unary("softplus", n.biased(h, 4)))
		b := n.binary("mul", k, n.unary("sigmoid", shape(n.linear(h, 2*2*8), 2, 2, 8)))
		return n.must(n.GeneralDelta(shape(n.linear(h, 16), 2, 8), k, shape(n.linear(h, 2*4*6), 2, 4, 6), g, n.unary("neg", k), b, false))
	}),
	{name: "embed/rows before the text", has: []program.Kind{program.KindEmbed}, build: func(n *net) *graph.Node {
		x := n.must(n.EmbedLed(n.Tokens(), n.vector(0, vocab-11, width), n.matrix(quant.BF16, 11, width), 0)) // the ids of some tokens here
		return n.linear(n.unary("scale", x, 3), vocab)
	}},
}

// orderCases choose by the numbers of a value.
var orderCases = []testCase{
	{name: "conv/a kernel that is computed", has: []program.Kind{program.KindConv1D}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.linear(n.embed(), 24)
		kernel := n.must(n.Add(graph.OpTranspose, &graph.TransposeAttr{Perm: []int{1, 0}}, nil, n.fixed(19, 24)))
		return n.head(n.unary("silu", n.must(n.ConvolveBy(x, kernel, n.vector(0, 24)))))
	}},
	scoredCase("sparsemax", heads{q: 4, kv: 2, dim: 16}, scored(graph.ScoreSparsemax)),
	scoredCase("entmax", heads{q: 4, kv: 2, dim: 16}, scored(graph.ScoreEntmax)),
	scoredCase("sparsemax in a window beside the first", heads{q: 6, kv: 1, dim: 12, value: 9}, func(n *net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: graph.ScoreSparsemax, Window: 5, First: 2, Slopes: []float64{0.5, 0.25, 0.1, 0, 0.05, 0.01}}
	}),
	scoredCase("entmax seeing all, a relative bias", heads{q: 4, kv: 4, dim: 16}, func(n *net) graph.AttentionAttr {
		return n.relative(graph.AttentionAttr{Score: graph.ScoreEntmax, Mask: graph.MaskFull}, 8, 20, true)
	}),
	scoredCase("entmax before the token, a bias that it makes", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: graph.ScoreEntmax, Mask: graph.MaskBefore, Softcap: 3, Buckets: []int32{0}, ByQuery: true}
	}),
	fadedCase(", of a sparsemax", graph.AttentionAttr{Score: graph.ScoreSparsemax}),
	{name: "order/the largest of each head alone", has: []program.Kind{program.KindOp}, build: func(n *net) *graph.Node {
		x := n.reshape(n.biased(n.embed(), width), 4, 16)
		best := n.must(n.Slice(n.must(n.Add(graph.OpOrder, nil, nil, x)), 1, 0, 5, 1))
		least := n.must(n.Slice(n.must(n.Add(graph.OpGather, nil, nil, x, best)), 1, 4, 5, 1)) // the fifth
		kept := n.binary("mul", x, n.unary("add", n.unary("neg", n.binary("less", x, least)), 1))
		return n.head(n.reshape(n.must(n.Concat(1, kept, n.must(n.Add(graph.OpGather, nil, nil, x, best)))), 84))
	}},
}
