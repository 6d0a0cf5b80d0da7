package devicetest

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// testCase is a network with what it is to be compiled to.
type testCase struct {
	name  string
	seed  uint64
	tol   float64        // 0: 1e-5
	has   []program.Kind // steps that the program must hold
	build func(n *net) *graph.Node
}

func cases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{embedCases, normCases, linearCases, projectionCases, attentionCases, moeCases, chainCases, opCases, rowCases, recurrentCases, recallCases, poolCases, columnCases, sourceCases, headsCases, streamCases, mixtureCases, latentCases, distanceCases, joinCases, scoreCases, stepCases, wholeCases, blockCases, feedForwardCases, loopCases, orderCases, closedCases} {
		all = append(all, group...)
	}
	for i := range all { // new groups stand last, so that the nets of the others stay
		all[i].seed = uint64(i)
	}
	return all
}

var embedCases = []testCase{
	{name: "embed", has: []program.Kind{program.KindEmbed}, build: func(n *net) *graph.Node { return n.linear(n.embed(), vocab) }},
	{name: "embed/scaled", has: []program.Kind{program.KindEmbed}, build: func(n *net) *graph.Node {
		return n.linear(n.unary("scale", n.embed(), math.Sqrt(width)), vocab)
	}},
	{name: "embed/guard", has: []program.Kind{program.KindEmbed}, build: func(n *net) *graph.Node {
		return n.linear(n.must(n.Embed(n.Tokens(), n.vector(0, 20, width), 20)), vocab)
	}},
	{name: "embed/by position", has: []program.Kind{program.KindEmbed}, build: func(n *net) *graph.Node {
		at := n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{Offset: 2}, nil))
		return n.head(n.add(n.embed(), n.must(n.Embed(at, n.vector(0, limits.Tokens+2, width), 0))))
	}},
}

func normCase(name string, kind program.Kind, a func(n *net) graph.NormAttr) testCase {
	return testCase{name: "norm/" + name, has: []program.Kind{kind}, build: func(n *net) *graph.Node {
		x := n.embed()
		y := n.add(x, n.unary("scale", n.norm(x, a(n)), 0.7)) // a norm with what may follow it
		return n.linear(n.norm(y, a(n)), vocab)               // and one that opens a product
	}}
}

var normCases = []testCase{
	normCase("rms", program.KindNorm, func(n *net) graph.NormAttr {
		return graph.NormAttr{Kind: graph.RMS, Eps: 1e-3, W: n.vector(1, width)}
	}),
	normCase("rms, offset", program.KindNorm, func(n *net) graph.NormAttr {
		return graph.NormAttr{Kind: graph.RMS, Eps: 1e-6, W: n.vector(0, width), Offset: 1}
	}),
	normCase("rms, no weight", program.KindNorm, func(n *net) graph.NormAttr { return graph.NormAttr{Kind: graph.RMS, Eps: 1e-6} }),
	normCase("rms, bias", program.KindNorm, func(n *net) graph.NormAttr {
		return graph.NormAttr{Kind: graph.RMS, Eps: 1e-6, W: n.vector(1, width), B: n.vector(0, width)}
	}),
	normCase("rms, bias alone", program.KindNorm, func(n *net) graph.NormAttr {
		return graph.NormAttr{Kind: graph.RMS, Eps: 1e-6, B: n.vector(0, width), Offset: 1}
	}),
	normCase("layer", program.KindNorm, func(n *net) graph.NormAttr {
		return graph.NormAttr{Kind: graph.Layer, Eps: 1e-5, W: n.vector(1, width), B: n.vector(0, width)}
	}),
	normCase("layer, no bias", program.KindNorm, func(n *net) graph.NormAttr {
		return graph.NormAttr{Kind: graph.Layer, Eps: 1e-5, W: n.vector(1, width)}
	}),
	normCase("layer, bare", program.KindNorm, func(n *net) graph.NormAttr { return graph.NormAttr{Kind: graph.Layer, Eps: 1e-5} }),
	normCase("layer, offset", program.KindNorm, func(n *net) graph.NormAttr {
		return graph.NormAttr{Kind: graph.Layer, Eps: 1e-5, W: n.vector(0, width), B: n.vector(0, width), Offset: 1}
	}),
	normCase("l2", program.KindNorm, func(n *net) graph.NormAttr { return graph.NormAttr{Kind: graph.L2, Eps: 1e-6, W: n.vector(1, width)} }),
	normCase("groups", program.KindNorm, func(n *net) graph.NormAttr {
		return graph.NormAttr{Kind: graph.RMS, Eps: 1e-6, W: n.vector(1, width), Groups: 4}
	}),
	{name: "norm/heads", has: []program.Kind{program.KindHeads}, build: func(n *net) *graph.Node {
		x := n.reshape(n.embed(), 4, width/4)
		x = n.norm(x, graph.NormAttr{Kind: graph.Layer, Eps: 1e-5, W: n.vector(1, 4, width/4), B: n.vector(0, width/4)})
		return n.linear(n.reshape(x, width), vocab)
	}},
}

func unaryCase(f string, p ...float64) testCase {
	return testCase{name: "linear/" + f, has: []program.Kind{program.KindLinear}, build: func(n *net) *graph.Node {
		x := n.embed()
		if f == "log" || f == "sqrt" || f == "rsqrt" || f == "log1p" || f == "pow" {
			x = n.unary("add", n.unary("square", n.linear(x, width)), 1)
			return n.linear(n.unary(f, x, p...), vocab)
		}
		return n.linear(n.unary(f, n.biased(x, 80), p...), vocab)
	}}
}

var linearCases = []testCase{
	{name: "linear/bias", has: []program.Kind{program.KindLinear}, build: func(n *net) *graph.Node { return n.biased(n.embed(), vocab) }},
	{name: "linear/narrow", build: func(n *net) *graph.Node { return n.biased(n.unary("silu", n.biased(n.embed(), 3)), 5) }},
	{name: "linear/everything after", has: []program.Kind{program.KindLinear}, build: func(n *net) *graph.Node {
		x := n.embed()
		y := n.unary("softcap", n.unary("scale", n.unary("gelu_tanh", n.biased(n.rms(x), width)), 1.5), 2)
		return n.head(n.add(x, y))
	}},
	{name: "linear/residual on the left", build: func(n *net) *graph.Node {
		x := n.embed()
		return n.head(n.add(n.linear(x, width), x))
	}},
	{name: "linear/two products added", build: func(n *net) *graph.Node {
		x := n.rms(n.embed())
		return n.head(n.add(n.linear(x, width), n.linear(x, width)))
	}},
	{name: "linear/residual of itself", build: func(n *net) *graph.Node {
		y := n.linear(n.embed(), width)
		return n.head(n.add(y, y))
	}},
	{name: "linear/outer sum", build: func(n *net) *graph.Node {
		x := n.embed()
		s := n.add(n.reshape(n.linear(x, 8), 8, 1), n.reshape(n.linear(x, 8), 1, 8))
		return n.linear(n.reshape(s, 64), vocab)
	}},
	{name: "linear/scalar gate", build: func(n *net) *graph.Node {
		x := n.embed()
		return n.head(n.binary("mul", n.unary("sigmoid", n.linear(x, 1)), n.linear(x, width)))
	}},
	{name: "linear/gated by heads", build: func(n *net) *graph.Node {
		x := n.embed()
		g := n.reshape(n.unary("sigmoid", n.linear(x, 4)), 4, 1)
		return n.head(n.reshape(n.binary("mul", g, n.reshape(n.linear(x, width), 4, width/4)), width))
	}},
	{name: "linear/each head", has: []program.Kind{program.KindOp}, build: func(n *net) *graph.Node {
		return n.linear(n.reshape(n.biased(n.reshape(n.embed(), 4, width/4), 12), 48), vocab)
	}},
	{name: "linear/split", build: func(n *net) *graph.Node {
		y := n.biased(n.rms(n.embed()), 128)
		g, u := n.must(n.Slice(y, 0, 0, 64, 1)), n.must(n.Slice(y, 0, 64, 128, 1))
		return n.linear(n.binary("mul", n.unary("silu", g), u), vocab)
	}},
	{name: "linear/split by steps", build: func(n *net) *graph.Node {
		y := n.biased(n.rms(n.embed()), 128)
		g, u := n.must(n.Slice(y, 0, 0, 128, 2)), n.must(n.Slice(y, 0, 1, 128, 2))
		return n.linear(n.binary("mul", n.unary("gelu", g), u), vocab)
	}},
	gatedCase("silu"), gatedCase("gelu"), gatedCase("gelu_tanh"), gatedCase("relu"), gatedCase("sigmoid"), gatedCase("gelu_quick"),
	unaryCase("silu"), unaryCase("gelu"), unaryCase("gelu_tanh"), unaryCase("gelu_quick"), unaryCase("relu"), unaryCase("relu2"),
	unaryCase("sigmoid"), unaryCase("tanh"), unaryCase("softplus"), unaryCase("elu", 0.8), unaryCase("clamp", -0.5, 0.7),
	unaryCase("softcap", 3), unaryCase("scale", -2), unaryCase("scale", 0), unaryCase("add", 0.5), unaryCase("neg"), unaryCase("abs"), unaryCase("square"),
	unaryCase("exp"), unaryCase("expm1"), unaryCase("sin"), unaryCase("cos"), unaryCase("log"), unaryCase("log1p"),
	unaryCase("sqrt"), unaryCase("rsqrt"), unaryCase("pow", 1.5),
}

func gatedCase(act string) testCase {
	return testCase{name: "gated/" + act, has: []program.Kind{program.KindLinear}, build: func(n *net) *graph.Node {
		h := n.rms(n.embed())
		return n.linear(n.binary("mul", n.biased(h, 80), n.unary(act, n.biased(h, 80))), vocab)
	}}
}
