package devicetest

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// headsCase makes four vectors of 16 values, changes them and reads the result.
func headsCase(name string, op func(n *net, x *graph.Node) *graph.Node) testCase {
	c := opCase(name, op)
	c.name, c.has = "heads/"+name, []program.Kind{program.KindHeads}
	return c
}

// loose allows a larger error, of activations of 8 bits.
func loose(tol float64, c testCase) testCase {
	c.tol = tol
	return c
}

func (n *net) headLinear(x *graph.Node, typ quant.Type, out int) *graph.Node {
	return n.must(n.HeadLinear(x, n.matrix(typ, x.Shape[0], out, x.Shape[1])))
}

func (n *net) cut(x *graph.Node, from, to int) *graph.Node {
	return n.must(n.Slice(x, -1, from, to, 1))
}

var headsCases = []testCase{
	headsCase("a matrix each", func(n *net, x *graph.Node) *graph.Node { return n.headLinear(x, quant.F32, 24) }),
	headsCase("a matrix each, narrow", func(n *net, x *graph.Node) *graph.Node { return n.headLinear(x, quant.F16, 3) }),
	headsCase("a matrix each, wide", func(n *net, x *graph.Node) *graph.Node { return n.headLinear(x, quant.BF16, 150) }),
	loose(2e-2, headsCase("a matrix each, 8 bits", func(n *net, x *graph.Node) *graph.Node {
		return n.headLinear(n.reshape(x, 2, 32), quant.Q8_0, 40)
	})),
	headsCase("a matrix of a cut", func(n *net, x *graph.Node) *graph.Node { return n.headLinear(n.cut(x, 3, 12), quant.F32, 20) }),
	headsCase("cut", func(n *net, x *graph.Node) *graph.Node { return n.cut(x, 2, 11) }),
	headsCase("cut of heads", func(n *net, x *graph.Node) *graph.Node { return n.must(n.Slice(x, 0, 1, 3, 1)) }),
	headsCase("joined", func(n *net, x *graph.Node) *graph.Node { return n.must(n.Concat(-1, x, n.unary("neg", x))) }),
	headsCase("joined heads", func(n *net, x *graph.Node) *graph.Node {
		return n.must(n.Concat(0, x, n.must(n.Slice(x, 0, 2, 4, 1))))
	}),
	headsCase("joined with what all tokens share", func(n *net, x *graph.Node) *graph.Node {
		return n.must(n.Concat(-1, n.must(n.Param(n.vector(0, 4, 6))), x))
	}),
	headsCase("norm, scale and rotation of a cut", func(n *net, x *graph.Node) *graph.Node {
		y := n.unary("scale", n.rms(n.cut(x, 4, 16)), 1.3)
		return n.must(n.Concat(-1, n.rope(y, graph.RopeAttr{Table: n.table(8), At: 2, Interleaved: true}), n.cut(x, 0, 4)))
	}),
	headsCase("a norm of each head's own", func(n *net, x *graph.Node) *graph.Node {
		return n.norm(n.headLinear(x, quant.F32, 12), graph.NormAttr{Kind: graph.Layer, Eps: 1e-5, W: n.vector(1, 4, 12), B: n.vector(0, 4, 12)})
	}),
	headsCase("rotated twice", func(n *net, x *graph.Node) *graph.Node {
		return n.rope(n.rope(x, graph.RopeAttr{Table: n.table(16)}), graph.RopeAttr{Table: n.table(4), At: 12})
	}),
}

// streamCases mix four streams of a value by weights that the value gives, as
// hyper-connections do: chains that read cuts.
var streamCases = []testCase{
	{name: "chain/streams", has: []program.Kind{program.KindElementwise}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 2, kv: 1, dim: 16}, graph.AttentionAttr{}, nil)
		streams, w := n.reshape(n.linear(n.rms(x), 4*width), 4, width), n.biased(n.rms(x), 9)
		var sum *graph.Node
		for i := range 4 {
			s := n.binary("mul", n.reshape(n.must(n.Slice(streams, 0, i, i+1, 1)), width), n.cut(w, 2*i, 2*i+1))
			if sum == nil {
				sum = s
			} else {
				sum = n.add(sum, s)
			}
		}
		post := n.reshape(n.unary("sigmoid", n.cut(w, 5, 9)), 4, 1)
		streams = n.add(streams, n.binary("mul", post, n.linear(sum, width)))
		return n.head(n.reshape(streams, 4*width))
	}},
}

// latent is a block of latent attention: queries [heads, 12 + 8] over one key
// of 16 + 8, whose first 16 components are the values.
func (n *net) latent(x *graph.Node, table, q int, attr graph.AttentionAttr, allowed ...*graph.Node) *graph.Node {
	in := n.rms(x)
	query := n.reshape(n.linear(n.rms(n.linear(in, 40)), q*20), q, 20)
	turn := graph.RopeAttr{Table: table, Interleaved: true}
	query = n.must(n.Concat(-1, n.headLinear(n.cut(query, 0, 12), quant.F16, 16), n.rope(n.cut(query, 12, 20), turn)))
	kv := n.reshape(n.linear(in, 24), 1, 24)
	key := n.must(n.Concat(-1, n.rms(n.cut(kv, 0, 16)), n.rope(n.cut(kv, 16, 24), turn)))
	attr.Mask, attr.Scale, attr.Allowed = graph.MaskCausal, 1/math.Sqrt(20), len(allowed) > 0
	a := n.headLinear(n.must(n.AttentionLatent(query, key, 16, attr, allowed...)), quant.F16, 10)
	return n.add(x, n.linear(n.reshape(a, q*10), x.Width()))
}

// index chooses positions by two heads of 8.
func (n *net) index(x *graph.Node, table int, a graph.IndexAttr) *graph.Node {
	in := n.rms(x)
	q := n.rope(n.reshape(n.linear(in, 16), 2, 8), graph.RopeAttr{Table: table})
	k := n.rope(n.linear(in, 8), graph.RopeAttr{Table: table})
	w := n.linear(in, 2)
	if a.Signed {
		w = n.must(n.Add(graph.OpConst, &graph.ConstAttr{Values: []float64{1, 0.5}}, []int{2}))
	}
	return n.must(n.IndexTopK(q, k, w, a))
}

// mixtureCases are mixtures of attention heads: queries and outputs of the
// experts chosen, keys and values of all.
var mixtureCases = []testCase{
	{name: "experts/attention heads", has: []program.Kind{program.KindOp, program.KindAttention}, build: func(n *net) *graph.Node {
		x := n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			in := n.rms(x)
			attr := &graph.RouteAttr{TopK: 2, Score: "none", ChosenSoftmax: true, Scale: 1}
			r := n.must(n.Add(graph.OpRoute, attr, nil, n.linear(in, 5)))
			q := n.must(n.Add(graph.OpExpertLinear, &graph.ExpertLinearAttr{W: n.matrix(quant.BF16, 5, 32, width)}, nil, in, r))
			k, v := n.reshape(n.linear(in, 32), 2, 16), n.reshape(n.linear(in, 32), 2, 16)
			a := n.must(n.Attention(n.reshape(q, 4, 16), k, v, graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal, Tile: true}))
			out := &graph.ExpertLinearAttr{W: n.matrix(quant.F32, 5, width, 32), Sum: true}
			x = n.add(x, n.must(n.Add(graph.OpExpertLinear, out, nil, n.reshape(a, 2, 32), r)))
		}
		n.Layer--
		return n.head(x)
	}},
}

func latentCase(name string, q int, attr func(n *net) graph.AttentionAttr) testCase {
	return testCase{name: "latent/" + name, has: []program.Kind{program.KindHeads, program.KindAttention}, build: func(n *net) *graph.Node {
		table, x := n.table(8), n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			x = n.ffn(n.latent(x, table, q, attr(n)), "silu")
		}
		n.Layer--
		return n.head(x)
	}}
}

// chosenCase is attention to positions, or blocks of them, that an index chooses.
func chosenCase(name string, a graph.IndexAttr) testCase {
	return testCase{name: "attention/" + name, has: []program.Kind{program.KindQKV, program.KindIndex, program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		allowed, in := n.index(x, n.table(8), a), n.rms(x)
		q, k, v := n.reshape(n.linear(in, 64), 4, 16), n.reshape(n.linear(in, 32), 2, 16), n.reshape(n.linear(in, 32), 2, 16)
		attr := graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal, Allowed: true, Sinks: n.vector(0, 4)}
		return n.head(n.add(x, n.linear(n.reshape(n.must(n.Attention(q, k, v, attr, allowed)), 64), width)))
	}}
}

var latentCases = []testCase{
	latentCase("few heads", 4, plain),
	latentCase("many heads", 70, plain),
	latentCase("window", 6, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Window: 9} }),
	latentCase("sinks", 4, func(n *net) graph.AttentionAttr { return graph.AttentionAttr{Sinks: n.vector(0, 4)} }),
	{name: "latent/chosen positions", has: []program.Kind{program.KindIndex, program.KindAttention}, build: func(n *net) *graph.Node {
		table, x := n.table(8), n.embed()
		var allowed *graph.Node
		for n.Layer = 0; n.Layer < 3; n.Layer++ {
			if n.Layer != 1 { // the second layer sees what the first does
				allowed = n.index(x, table, graph.IndexAttr{TopK: 5 + 8*n.Layer})
			}
			x = n.latent(x, table, 4, graph.AttentionAttr{}, allowed)
		}
		n.Layer--
		return n.head(x)
	}},
	chosenCase("chosen positions", graph.IndexAttr{TopK: 6}),
	chosenCase("chosen positions, by signed scores", graph.IndexAttr{TopK: 6, Signed: true}),
	chosenCase("chosen blocks", graph.IndexAttr{TopK: 3, Block: 4, Local: 1, Signed: true}),
	chosenCase("chosen blocks, none of them the last", graph.IndexAttr{TopK: 2, Block: 5}),
}
