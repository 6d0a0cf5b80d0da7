package devicetest

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

// constantCase is an operation with inputs of those shapes, any of which may be
// the same for all tokens.
type constantCase struct {
	name  string
	in    [][]int
	build func(n *net, in []*graph.Node) (*graph.Node, error)
	// takes says whether the inputs of a set, bit i for input i, may be constants;
	// nil: any may be.
	takes func(set int) bool
}

// applied is a case of an operation alone.
func applied(name string, op graph.Op, attr any, in ...[]int) constantCase {
	return constantCase{name: name, in: in, build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.Add(op, attr, nil, in...) }}
}

var (
	rowShape, headShape, scoreShape = []int{width}, []int{4, 16}, []int{experts}
	keyShape                        = []int{2, 16}
	causal                          = graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.25}
	full                            = graph.AttentionAttr{Mask: graph.MaskFull, Scale: 0.25}
	neverAll                        = func(n int) func(set int) bool { return func(set int) bool { return set != 1<<n-1 } }
)

// constantPlain are operations on a row alone.
var constantPlain = []constantCase{
	{name: "embed", in: [][]int{{}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Embed(n.whole(in[0]), n.vector(0, 4, width), 0)
	}},
	{name: "linear", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.unary("silu", n.biased(in[0], 48)), nil
	}},
	{name: "linear, each head", in: [][]int{headShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.biased(in[0], 24), nil }},
	{name: "linear, gated", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.binary("mul", n.unary("silu", n.linear(in[0], 48)), n.linear(in[0], 48)), nil
	}},
	{name: "linear, residual", in: [][]int{rowShape, rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.add(in[0], n.linear(n.rms(in[1]), width)), nil
	}},
	{name: "linear, cut", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		y := n.linear(in[0], 96)
		return n.binary("mul", n.must(n.Slice(y, 0, 0, 48, 1)), n.must(n.Slice(y, 0, 48, 96, 1))), nil
	}},
	{name: "norm, residual", in: [][]int{rowShape, rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.add(in[0], n.rms(in[1])), nil }},
	{name: "norm, heads", in: [][]int{headShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.rms(in[0]), nil }},
	applied("unary", graph.OpUnary, &graph.UnaryAttr{F: "tanh"}, headShape),
	applied("binary", graph.OpBinary, &graph.BinaryAttr{F: "mul"}, headShape, []int{4, 1}),
	applied("where", graph.OpWhere, nil, []int{1}, headShape, []int{16}),
	applied("reduce", graph.OpReduce, &graph.ReduceAttr{F: "std"}, headShape),
	applied("softmax", graph.OpSoftmax, nil, headShape),
	applied("balance", graph.OpBalance, &graph.BalanceAttr{Rounds: 3, Eps: 1e-6}, []int{4, 4, 4}),
	applied("transpose", graph.OpTranspose, &graph.TransposeAttr{Perm: []int{1, 0}}, headShape),
	applied("slice", graph.OpSlice, &graph.SliceAttr{Axis: 1, From: 3, To: 11, Step: 1}, headShape),
	applied("slice by steps", graph.OpSlice, &graph.SliceAttr{Axis: 1, From: 1, To: 15, Step: 3}, headShape),
	applied("concat", graph.OpConcat, &graph.ConcatAttr{Axis: 1}, headShape, []int{4, 5}, headShape),
	applied("dot", graph.OpDot, &graph.DotAttr{}, headShape, []int{4, 6, 16}),
	applied("dot, one matrix", graph.OpDot, &graph.DotAttr{}, headShape, []int{6, 16}),
	{name: "dot of products", in: [][]int{headShape, {96}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Add(graph.OpDot, &graph.DotAttr{}, nil, in[0], n.reshape(n.linear(in[1], 96), 6, 16))
	}},
	{name: "gather", in: [][]int{{12}, {5}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Add(graph.OpGather, nil, nil, in[0], n.whole(in[1]))
	}},
	{name: "rope", in: [][]int{headShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Rope(in[0], graph.RopeAttr{Table: n.table(16)})
	}},
	{name: "rope in heads", in: [][]int{{4, 8}, headShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Concat(1, in[0], n.rope(n.rms(in[1]), graph.RopeAttr{Table: n.table(12), At: 2, Interleaved: true}))
	}},
	{name: "head_linear", in: [][]int{headShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.HeadLinear(in[0], n.matrix(quant.F32, 4, 10, 16))
	}},
	{name: "route", in: [][]int{scoreShape, rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.expertsOf(in[1], n.routeOf(in[0]))
	}},
	{name: "experts", in: [][]int{rowShape, rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.mixture(in[1], in[0], quant.F32, nil), nil
	}},
	{name: "experts of a norm", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.moe(in[0], quant.F32, nil), nil }},
	{name: "expert_linear", in: [][]int{scoreShape, rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Add(graph.OpExpertLinear, &graph.ExpertLinearAttr{W: n.matrix(quant.F32, experts, 8, width), Sum: true}, nil, in[1], n.routeOf(in[0]))
	}},
}

// constantKept are operations that keep something of a sequence, or see other rows.
var constantKept = []constantCase{
	{name: "attention", in: [][]int{headShape, keyShape, {2, 12}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Attention(in[0], in[1], in[2], causal)
	}},
	{name: "attention, full", in: [][]int{headShape, keyShape, {2, 12}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Attention(in[0], in[1], in[2], full)
	}},
	{name: "attention of products", in: [][]int{rowShape, rowShape, rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		q, k, v := n.reshape(n.linear(in[0], 64), 4, 16), n.reshape(n.linear(in[1], 32), 2, 16), n.reshape(n.linear(in[2], 32), 2, 16)
		return n.Attention(n.rope(q, graph.RopeAttr{Table: n.table(16)}), k, v, causal)
	}},
	{name: "attention of one value", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.attend(in[0], heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}, nil), nil
	}},
	{name: "attention, latent", in: [][]int{headShape, {1, 16}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.AttentionLatent(in[0], in[1], 10, causal)
	}},
	{name: "attention, shared", in: [][]int{headShape, keyShape, {2, 12}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		a := n.must(n.Attention(n.reshape(n.linear(n.embed(), 64), 4, 16), in[1], in[2], causal)) // its cache alone is used
		read := causal
		read.Cache = a.Attr.(*graph.AttentionAttr).Cache
		return n.AttentionShared(in[0], read)
	}},
	{name: "attention, sinks", in: [][]int{headShape, keyShape, {2, 12}, {4}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		a := causal
		a.SinkOf = true
		return n.Attention(in[0], in[1], in[2], a, in[3])
	}},
	{name: "attention, by distance", in: [][]int{headShape, keyShape, {2, 12}, {4, 3}, {4, 3}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		a := full
		a.ByQuery, a.ByKey, a.Buckets = true, true, []int32{0, 1, 1, 2, 0}
		return n.Attention(in[0], in[1], in[2], a, in[3:]...)
	}},
	{name: "attention, chosen", in: [][]int{headShape, keyShape, {2, 12}, {3, 8}, {8}, {3}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		a := causal
		a.Allowed = true
		return n.Attention(in[0], in[1], in[2], a, n.must(n.IndexTopK(in[3], in[4], in[5], graph.IndexAttr{TopK: 6})))
	}},
	{name: "attention_stored", in: [][]int{headShape, {7, 2, 16}, {7, 2, 12}}, takes: func(set int) bool { return set == 6 }, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.AttentionStored(in[0], in[1], in[2], graph.StoredAttr{Scale: 0.25})
	}},
	{name: "join", in: [][]int{{4, 9}, {4, 9}}, takes: neverAll(2), build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.Join(in...) }},
	{name: "pool", in: [][]int{rowShape}, takes: neverAll(1), build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Add(graph.OpPool, &graph.PoolAttr{How: "mean"}, nil, in[0])
	}},
	{name: "conv1d", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.unary("silu", n.conv(in[0], 4, true)), nil
	}},
	{name: "shift", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.Shift(in[0], 3) }},
	{name: "shift from ahead", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.Shift(in[0], -3) }},
	{name: "ssd_scan", in: [][]int{headShape, {2, 8}, {2, 8}, {4}, {4}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Scan(in[0], in[1], in[2], n.unary("abs", in[3]), n.below(in[4]))
	}},
	{name: "gated_delta", in: [][]int{keyShape, keyShape, {4, 12}, {4}, {4}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.GatedDelta(n.unary("scale", n.unit(in[0]), 0.25), n.unit(in[1]), in[2], n.below(in[3]), n.unary("sigmoid", in[4]), false)
	}},
	{name: "general delta", in: [][]int{keyShape, keyShape, {4, 12}, {4, 16}, keyShape, keyShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		b := n.unit(in[5])
		return n.GeneralDelta(in[0], n.unit(in[1]), in[2], n.below(in[3]), n.unary("neg", n.unit(in[4])), b, false)
	}},
	{name: "linear_attention", in: [][]int{headShape, {4}, keyShape, keyShape, {4}, {4}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.LinearAttention(graph.LinearAttentionIn{V: in[0], G: n.below(in[1]), Q: in[2], K: in[3], I: in[4], U: in[5]}, graph.LinearAttentionAttr{Norm: "max"})
	}},
	{name: "linear_attention, channels", in: [][]int{{300, 1}, {300}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.LinearAttention(graph.LinearAttentionIn{V: in[0], G: n.below(in[1])}, graph.LinearAttentionAttr{})
	}},
}

// whole makes whole numbers from 0 to 3.
func (n *net) whole(x *graph.Node) *graph.Node {
	return n.unary("clamp", n.unary("floor", n.unary("scale", n.unary("abs", x), 3)), 0, 3)
}

// below makes a logarithm of a decay.
func (n *net) below(x *graph.Node) *graph.Node { return n.unary("neg", n.unary("abs", x)) }

func (n *net) unit(x *graph.Node) *graph.Node {
	return n.norm(x, graph.NormAttr{Kind: graph.L2, Eps: 1e-6})
}

// routeOf is the route by those scores, the same whoever asks.
func (n *net) routeOf(scores *graph.Node) *graph.Node {
	for _, r := range n.G.Nodes {
		if r.Op == graph.OpRoute && r.In[0] == scores.ID {
			return r
		}
	}
	return n.must(n.Add(graph.OpRoute, &graph.RouteAttr{TopK: 3, Score: "softmax"}, nil, scores))
}

func (n *net) expertsOf(x, route *graph.Node) (*graph.Node, error) {
	return n.Add(graph.OpExperts, &graph.ExpertsAttr{Experts: experts, Act: "silu", Gate: n.matrix(quant.F32, experts, inner, width),
		Up: n.matrix(quant.F32, experts, inner, width), Down: n.matrix(quant.F32, experts, width, inner)}, nil, x, route)
}
