package devicetest

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

var fusedQKV = []program.Kind{program.KindQKV, program.KindAttention}

// projectionCase is two layers whose queries and keys go through edit.
func projectionCase(name string, has []program.Kind, edit func(n *net, table, i int, y *graph.Node) *graph.Node) testCase {
	return testCase{name: "qkv/" + name, has: has, build: func(n *net) *graph.Node {
		table, x := n.table(16), n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			x = n.attend(x, heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}, func(i int, y *graph.Node) *graph.Node {
				if i == 2 {
					return y
				}
				return edit(n, table, i, y)
			})
		}
		n.Layer--
		return n.head(x)
	}}
}

// merged treats all heads as one row, then parts them again.
func (n *net) merged(y *graph.Node, f func(y *graph.Node) *graph.Node) *graph.Node {
	s := y.Shape
	return n.reshape(f(n.reshape(y, y.Width())), s...)
}

var projectionCases = []testCase{
	projectionCase("rope", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rope(y, graph.RopeAttr{Table: table})
	}),
	projectionCase("rope, interleaved", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rope(y, graph.RopeAttr{Table: table, Interleaved: true})
	}),
	projectionCase("rope, a part", fusedQKV, func(n *net, _, i int, y *graph.Node) *graph.Node {
		return n.rope(y, graph.RopeAttr{Table: n.table(6), At: 4 * i})
	}),
	projectionCase("rope, twice", []program.Kind{program.KindHeads, program.KindAttention}, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rope(n.rope(y, graph.RopeAttr{Table: table}), graph.RopeAttr{Table: n.table(4), At: 12})
	}),
	projectionCase("rope, divisors and factor", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		n.G.Ropes[table].Divisors, n.G.Ropes[table].Factor = n.vector(2, 8), 1.2
		return n.rope(y, graph.RopeAttr{Table: table})
	}),
	projectionCase("rope, by length", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		r := n.G.Ropes[table]
		r.Kind, r.Original, r.LongFreq = "longrope", 24, []float64{1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0}
		return n.rope(y, graph.RopeAttr{Table: table})
	}),
	projectionCase("rope, dynamic", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		r := n.G.Ropes[table]
		r.Kind, r.Original, r.Theta, r.NTKFactor = "dynamic", 24, 100, 2
		return n.rope(y, graph.RopeAttr{Table: table})
	}),
	projectionCase("rope over two heads", []program.Kind{program.KindAttention}, func(n *net, _, i int, y *graph.Node) *graph.Node {
		wide := n.reshape(y, y.Shape[0]/2, 32)
		return n.reshape(n.rope(wide, graph.RopeAttr{Table: n.table(32)}), y.Shape...)
	}),
	projectionCase("norm, then rope", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rope(n.rms(y), graph.RopeAttr{Table: table})
	}),
	projectionCase("rope, then norm", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rms(n.rope(y, graph.RopeAttr{Table: table}))
	}),
	projectionCase("norm with a weight for each head", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rope(n.norm(y, graph.NormAttr{Kind: graph.Layer, Eps: 1e-5, W: n.vector(1, y.Shape...)}), graph.RopeAttr{Table: table})
	}),
	projectionCase("norm with a weight for each head and one bias", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.norm(y, graph.NormAttr{Kind: graph.Layer, Eps: 1e-5, W: n.vector(1, y.Shape...), B: n.vector(0, y.Shape[1])})
	}),
	projectionCase("norm over all heads, then rope", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rope(n.merged(y, n.rms), graph.RopeAttr{Table: table})
	}),
	projectionCase("rope, then norm over all heads", []program.Kind{program.KindAttention}, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.merged(n.rope(y, graph.RopeAttr{Table: table}), n.rms)
	}),
	projectionCase("norm twice", []program.Kind{program.KindAttention}, func(n *net, _, _ int, y *graph.Node) *graph.Node {
		return n.rms(n.merged(y, n.rms))
	}),
	projectionCase("clamp", fusedQKV, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rope(n.unary("clamp", y, -0.6, 0.6), graph.RopeAttr{Table: table})
	}),
	projectionCase("clamp, lopsided", []program.Kind{program.KindAttention}, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.rope(n.unary("clamp", y, -0.3, 0.6), graph.RopeAttr{Table: table})
	}),
	projectionCase("clamp after the norm", []program.Kind{program.KindAttention}, func(n *net, table, _ int, y *graph.Node) *graph.Node {
		return n.unary("clamp", n.rms(y), -0.6, 0.6)
	}),
	projectionCase("scale", []program.Kind{program.KindAttention}, func(n *net, table, i int, y *graph.Node) *graph.Node {
		return n.unary("scale", n.rope(y, graph.RopeAttr{Table: table}), 0.5)
	}),
}

// attentionCase is three layers of attention of one form.
func attentionCase(name string, h heads, attr func(n *net) graph.AttentionAttr) testCase {
	return testCase{name: "attention/" + name, has: fusedQKV, build: func(n *net) *graph.Node {
		table, x := n.table(8), n.embed()
		for n.Layer = 0; n.Layer < 3; n.Layer++ {
			x = n.attend(x, h, attr(n), func(i int, y *graph.Node) *graph.Node {
				if i == 2 {
					return y
				}
				return n.rope(y, graph.RopeAttr{Table: table})
			})
			x = n.ffn(x, "silu")
		}
		n.Layer--
		return n.head(x)
	}}
}

func plain(*net) graph.AttentionAttr { return graph.AttentionAttr{} }

var attentionCases = []testCase{
	attentionCase("a key head for each", heads{q: 4, kv: 4, dim: 16}, plain),
	attentionCase("grouped", heads{q: 6, kv: 2, dim: 8}, plain),
	attentionCase("one key head", heads{q: 5, kv: 1, dim: 12}, plain),
	attentionCase("tiled heads", heads{q: 6, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Tile: true} }),
	attentionCase("narrow values", heads{q: 4, kv: 2, dim: 24, value: 10}, plain),
	attentionCase("wide values", heads{q: 3, kv: 3, dim: 8, value: 40}, plain),
	attentionCase("window", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Window: 9} }),
	attentionCase("window of a tile", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Window: 16} }),
	attentionCase("window of one", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Window: 1} }),
	attentionCase("chunks", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Mask: graph.MaskChunk, Window: 11}
	}),
	attentionCase("sinks", heads{q: 4, kv: 2, dim: 16}, func(n *net) graph.AttentionAttr { return graph.AttentionAttr{Sinks: n.vector(1, 4)} }),
	attentionCase("soft cap", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Softcap: 1.5, Scale: 1} }),
	attentionCase("slopes", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Slopes: []float64{0.5, 0.25, 0.125, 0.0625}}
	}),
	attentionCase("everything", heads{q: 6, kv: 2, dim: 16, value: 8}, func(n *net) graph.AttentionAttr {
		return graph.AttentionAttr{Slopes: []float64{0.5, 0.4, 0.3, 0.2, 0.1, 0}, Sinks: n.vector(0, 6), Softcap: 2, Scale: 0.7, Window: 19, Tile: true}
	}),
	attentionCase("both sides", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Mask: graph.MaskFull} }),
	attentionCase("both sides, window", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Mask: graph.MaskFull, Window: 6}
	}),
	{name: "attention/windows by layer", has: fusedQKV, build: func(n *net) *graph.Node {
		x := n.embed()
		for n.Layer = 0; n.Layer < 4; n.Layer++ {
			attr := graph.AttentionAttr{Window: 7 * (n.Layer % 2)}
			x = n.attend(x, heads{q: 2 + 2*(n.Layer%2), kv: 2, dim: 8 + 4*n.Layer}, attr, nil)
		}
		n.Layer--
		return n.head(x)
	}},
	{name: "attention/shared keys", has: fusedQKV, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)
		for n.Layer = 1; n.Layer < 3; n.Layer++ {
			q := n.reshape(n.linear(n.rms(x), 64), 4, 16)
			a := n.must(n.AttentionShared(q, graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal, Window: 12 * (n.Layer - 1)}))
			x = n.add(x, n.linear(n.reshape(a, 64), width))
		}
		n.Layer--
		return n.head(x)
	}},
	{name: "attention/values of keys", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		in := n.rms(n.embed())
		q, k := n.reshape(n.linear(in, 64), 4, 16), n.reshape(n.linear(in, 32), 2, 16)
		a := n.must(n.Attention(q, n.rope(k, graph.RopeAttr{Table: n.table(16)}), k, graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal}))
		return n.head(n.add(in, n.linear(n.reshape(a, 64), width)))
	}},
	{name: "attention/queries of another value", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		q, k, v := n.linear(n.rms(x), 64), n.linear(x, 32), n.linear(n.unary("silu", x), 32)
		a := n.must(n.Attention(n.reshape(q, 4, 16), n.reshape(k, 2, 16), n.reshape(v, 2, 16), graph.AttentionAttr{Scale: 1 / math.Sqrt(16), Mask: graph.MaskCausal}))
		return n.head(n.reshape(a, 64))
	}},
	{name: "attention/gated output", has: fusedQKV, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		in := n.rms(x)
		q, k, v := n.reshape(n.biased(in, 64), 4, 16), n.reshape(n.biased(in, 32), 2, 16), n.reshape(n.biased(in, 32), 2, 16)
		a := n.must(n.Attention(q, k, v, graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal}))
		return n.head(n.add(x, n.linear(n.binary("mul", n.reshape(a, 64), n.unary("sigmoid", n.linear(in, 64))), width)))
	}},
}
