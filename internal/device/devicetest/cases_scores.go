package devicetest

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// scoredCase is two layers of attention whose scores pass through something
// else than a softmax; each divides by the row's position, so that sums of many
// weights stay small.
func scoredCase(name string, h heads, attr func(n *net) graph.AttentionAttr) testCase {
	return testCase{name: "score/" + name, tol: 2e-5, has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		x := n.embed()
		at := n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{Offset: 1}, nil))
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			a := attr(n)
			if a.Scale = 0.3; a.Mask == "" {
				a.Mask = graph.MaskCausal
			}
			q, k, v := n.asking(x, h)
			var more []*graph.Node
			if a.Buckets != nil { // a bias for all keys, which the token makes
				more = append(more, n.reshape(n.linear(x, h.q), h.q, 1))
			}
			y := n.must(n.Attention(q, k, v, a, more...))
			x = n.back(x, n.binary("div", y, at))
		}
		n.Layer--
		return n.head(x)
	}}
}

func scored(score string) func(*net) graph.AttentionAttr {
	return func(*net) graph.AttentionAttr { return graph.AttentionAttr{Score: score} }
}

// countedCase has positions that gates count.
func countedCase(name string, h heads, positions int, a graph.AttentionAttr) testCase {
	return testCase{name: "score/counted positions" + name, tol: 2e-5, has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		x := n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			q, k, v := n.asking(x, h)
			a := a
			if a.Scale, a.Counted, a.ByQuery = 0.3, true, true; a.Mask == "" {
				a.Mask = graph.MaskCausal
			}
			more := []*graph.Node{n.dot(q, n.fixed(positions, h.dim))}
			if a.SinkOf {
				more = append(more, n.linear(x, h.q))
			}
			x = n.back(x, n.must(n.Attention(q, k, v, a, more...)))
		}
		n.Layer--
		return n.head(x)
	}}
}

// fadedCase has keys that gates fade.
func fadedCase(name string, a graph.AttentionAttr) testCase {
	return testCase{name: "score/faded keys" + name, tol: 2e-5, has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		x := n.embed()
		zero := n.must(n.Const(make([]float64, 4), []int{4, 1}))
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			q, k, v := n.asking(x, heads{q: 4, kv: 2, dim: 15})
			gates := n.unary("neg", n.unary("softplus", n.biased(x, 2)))
			k = n.must(n.Concat(1, k, n.reshape(gates, 2, 1)))
			a := a
			if a.Scale, a.Faded = 0.3, true; a.Mask == "" {
				a.Mask = graph.MaskCausal
			}
			x = n.back(x, n.must(n.Attention(n.must(n.Concat(1, q, zero)), k, v, a)))
		}
		n.Layer--
		return n.head(x)
	}}
}

// scoreCases are attentions without a softmax, of a stick that is broken, and
// biases by counted positions.
var scoreCases = []testCase{
	scoredCase("sigmoid", heads{q: 4, kv: 2, dim: 16}, scored("sigmoid")),
	scoredCase("sigmoid, a bias that the token makes", heads{q: 6, kv: 2, dim: 16, value: 10}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: "sigmoid", Buckets: []int32{0}, ByQuery: true, Softcap: 2, Tile: true}
	}),
	scoredCase("sigmoid, slopes in a window beside the first", heads{q: 4, kv: 1, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: "sigmoid", Window: 7, First: 3, Slopes: []float64{0.5, 0.25, 0.1, 0}}
	}),
	scoredCase("silu, a relative bias", heads{q: 4, kv: 4, dim: 16}, func(n *net) graph.AttentionAttr {
		return n.relative(graph.AttentionAttr{Score: "silu", Window: 20, First: 1}, 7, 9, false)
	}),
	scoredCase("relu, in chunks", heads{q: 4, kv: 2, dim: 12}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: "relu", Mask: graph.MaskChunk, Window: 11}
	}),
	scoredCase("relu2", heads{q: 4, kv: 2, dim: 16}, scored("relu2")),
	scoredCase("square", heads{q: 4, kv: 2, dim: 16}, scored("square")),
	scoredCase("softplus, before the token", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: "softplus", Mask: graph.MaskBefore, Window: 17}
	}),
	scoredCase("none", heads{q: 4, kv: 2, dim: 16}, scored("none")),
	scoredCase("sigmoid, seeing all", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: "sigmoid", Mask: graph.MaskFull, Window: 9}
	}),
	scoredCase("sticks", heads{q: 4, kv: 2, dim: 16}, scored(graph.ScoreSticks)),
	scoredCase("sticks, before the token in a window", heads{q: 5, kv: 1, dim: 12, value: 20}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: graph.ScoreSticks, Mask: graph.MaskBefore, Window: 19}
	}),
	scoredCase("sticks, in chunks beside the first", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Score: graph.ScoreSticks, Mask: graph.MaskChunk, Window: 11, First: 2, Slopes: []float64{0.5, 0.25, 0.1, 0}}
	}),
	{name: "score/what is left of sticks", tol: 2e-5, has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		q, k, v := n.asking(x, heads{q: 4, kv: 4, dim: 16})
		a := n.must(n.Attention(q, k, v, graph.AttentionAttr{Score: graph.ScoreSticks, Mask: graph.MaskBefore, Scale: 0.3, Open: true}))
		y, left := n.must(n.Slice(a, 1, 0, 16, 1)), n.unary("exp", n.must(n.Slice(a, 1, 16, 17, 1)))
		return n.head(n.back(x, n.add(y, n.binary("mul", left, v))))
	}},
	{name: "score/values of keys, at chosen positions", tol: 2e-5, has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		q, k, _ := n.asking(x, heads{q: 4, kv: 1, dim: 16})
		set := n.must(n.IndexTopK(n.reshape(n.linear(x, 24), 3, 8), n.linear(x, 8), n.linear(x, 3), graph.IndexAttr{TopK: 9}))
		a := n.must(n.AttentionLatent(q, k, 12, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.3, Score: "sigmoid", Allowed: true}, set))
		return n.head(n.back(x, a))
	}},
	{name: "score/sigmoid of the source", tol: 2e-5, has: []program.Kind{program.KindPut}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			full := both
			full.Score = "sigmoid"
			return n.rms(n.attend(n.embed(), heads{q: 4, kv: 4, dim: 16}, full, nil))
		})
		return n.head(n.cross(n.embed(), memory, heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{Score: "relu2"}))
	}},
	countedCase("", heads{q: 4, kv: 2, dim: 16}, 9, graph.AttentionAttr{}),
	countedCase(", more than there are", heads{q: 4, kv: 4, dim: 16}, 200, graph.AttentionAttr{Softcap: 2, SinkOf: true}),
	countedCase(", in a window", heads{q: 6, kv: 1, dim: 16}, 5, graph.AttentionAttr{Window: 21, Tile: true}),
	countedCase(", before the token", heads{q: 4, kv: 2, dim: 16, value: 9}, 30, graph.AttentionAttr{Mask: graph.MaskBefore}),
	fadedCase("", graph.AttentionAttr{}),
	fadedCase(", of sticks before the token", graph.AttentionAttr{Score: graph.ScoreSticks, Mask: graph.MaskBefore}),
	fadedCase(", of a sigmoid in a window", graph.AttentionAttr{Score: "sigmoid", Window: 21}),
	attentionCase("before the token", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Mask: graph.MaskBefore} }),
	attentionCase("before the token, window of two", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Mask: graph.MaskBefore, Window: 2, First: 3}
	}),
}

// scoredNet is a net of which a test counts what it allocates.
func scoredNet(n *net) {
	x := n.embed()
	for n.Layer = 0; n.Layer < 3; n.Layer++ {
		q, k, v := n.asking(x, heads{q: 4, kv: 2, dim: 16})
		a := graph.AttentionAttr{Faded: n.Layer == 0, Mask: graph.MaskCausal, Scale: 1 / math.Sqrt(16), Score: []string{"sigmoid", graph.ScoreSticks, ""}[n.Layer]}
		var more []*graph.Node
		if n.Layer == 2 {
			a.Counted, a.ByQuery = true, true
			more = append(more, n.dot(q, n.fixed(7, 16)))
		}
		x = n.back(x, n.must(n.Attention(q, k, v, a, more...)))
	}
	n.Layer--
	n.finish(n.head(x))
}
