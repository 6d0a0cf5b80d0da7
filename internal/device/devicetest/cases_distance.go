package devicetest

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// dot multiplies vectors with vectors.
func (n *net) dot(x, y *graph.Node) *graph.Node {
	return n.must(n.Add(graph.OpDot, &graph.DotAttr{}, nil, x, y))
}

// fixed is a value that is the same for all tokens, computed from a stored one.
func (n *net) fixed(shape ...int) *graph.Node {
	x := n.unary("tanh", n.must(n.Param(n.matrix(quant.F32, shape...))))
	return n.biased(x, shape[len(shape)-1])
}

// nearby is an attention with a residual whose scores hold numbers of the query
// and, where byKey, of the key by distance.
func (n *net) nearby(x *graph.Node, h heads, a graph.AttentionAttr, buckets []int32, count int, byKey bool) *graph.Node {
	in := n.rms(x)
	q, k := n.reshape(n.linear(in, h.q*h.dim), h.q, h.dim), n.reshape(n.linear(in, h.kv*h.dim), h.kv, h.dim)
	v := n.reshape(n.linear(in, h.kv*h.dim), h.kv, h.dim)
	a.Scale, a.Buckets, a.ByQuery = 0.25, buckets, true
	more := []*graph.Node{n.dot(q, n.fixed(h.q, count, h.dim))}
	if byKey {
		a.ByKey = true
		more = append(more, n.dot(n.reshape(n.linear(in, h.q*h.dim), h.q, h.dim), n.fixed(count, h.dim)))
	}
	return n.add(x, n.linear(n.reshape(n.must(n.Attention(q, k, v, a, more...)), h.q*h.dim), x.Width()))
}

// ramp is a bucket for each distance up to half on both sides.
func ramp(half, count int) (buckets []int32) {
	for d := -half; d <= half; d++ {
		buckets = append(buckets, int32((d+half)*count/(2*half+1)))
	}
	return buckets
}

// distanceCases are products of vectors, biases by distance and shifts from ahead.
var distanceCases = []testCase{
	{name: "dot/with a computed matrix a head", has: []program.Kind{program.KindHeads}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.reshape(n.linear(n.embed(), 4*16), 4, 16)
		return n.head(n.reshape(n.dot(x, n.fixed(4, 37, 16)), 4*37))
	}},
	{name: "dot/with one computed matrix", has: []program.Kind{program.KindHeads}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.reshape(n.linear(n.embed(), 4*16), 4, 16)
		return n.head(n.reshape(n.dot(x, n.fixed(5, 16)), 4*5))
	}},
	{name: "dot/of two values", has: []program.Kind{program.KindOp}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		y := n.reshape(n.linear(x, 4*3*16), 4, 3, 16)
		return n.head(n.reshape(n.dot(n.reshape(x, 4, 16), y), 12))
	}},
	{name: "attention/by distance of the query, causal", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.head(n.nearby(n.embed(), heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{Mask: graph.MaskCausal, Softcap: 4}, ramp(9, 7), 7, false))
	}},
	{name: "attention/by distance of query and key", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.head(n.nearby(n.embed(), heads{q: 4, kv: 4, dim: 16}, both, ramp(30, 12), 12, true))
	}},
	{name: "attention/by distance in a window", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		local := both
		local.Window = 6
		return n.head(n.nearby(n.embed(), heads{q: 4, kv: 1, dim: 16}, local, ramp(4, 9), 9, true))
	}},
	{name: "source/by distance", has: []program.Kind{program.KindPut}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			return n.nearby(n.embed(), heads{q: 4, kv: 4, dim: 16}, both, ramp(20, 8), 8, true)
		})
		return n.head(n.cross(n.embed(), memory, heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{}))
	}},
	{name: "shift/from ahead", has: []program.Kind{program.KindConv1D}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 4, kv: 4, dim: 16}, both, nil)
		parts := []*graph.Node{n.must(n.Shift(x, -1)), x, n.must(n.Shift(x, 1)), n.must(n.Shift(x, -5))}
		return n.head(n.must(n.Concat(0, parts...)))
	}},
}
