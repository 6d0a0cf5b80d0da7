package devicetest

import "github.com/inferflow/inferflow/internal/graph"

// constantLater are later operations, and forms of earlier ones, with constants in each input.
var constantLater = []constantCase{
	{name: "attention, sigmoid", in: [][]int{headShape, keyShape, {2, 12}, {4, 1}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		a := causal
		a.Score, a.ByQuery, a.Buckets = "sigmoid", true, []int32{0}
		return n.Attention(in[0], in[1], in[2], a, in[3])
	}},
	{name: "attention, sticks", in: [][]int{headShape, keyShape, {2, 12}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		a := causal
		a.Score, a.Mask = graph.ScoreSticks, graph.MaskBefore
		return n.Attention(in[0], in[1], in[2], a)
	}},
	{name: "attention, counted positions", in: [][]int{headShape, keyShape, {2, 12}, {4, 7}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		a := causal
		a.ByQuery, a.Counted = true, true
		return n.Attention(in[0], in[1], in[2], a, in[3])
	}},
	{name: "attention, faded keys", in: [][]int{{4, 15}, {2, 15}, {2, 12}, {2, 1}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		a := causal
		a.Faded = true
		return n.Attention(n.must(n.Concat(1, in[0], n.zeros(4, 1))), n.must(n.Concat(1, in[1], n.below(in[3]))), in[2], a)
	}},
	{name: "gated_delta, steps", in: [][]int{keyShape, {3, 2, 16}, {3, 4, 12}, {4}, {3, 4}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.GatedDelta(n.unary("scale", n.unit(in[0]), 0.25), n.unit(in[1]), in[2], n.below(in[3]), n.unary("sigmoid", in[4]), false)
	}},
	applied("order", graph.OpOrder, nil, headShape),
	{name: "gather of heads", in: [][]int{headShape, {4, 3}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Add(graph.OpGather, nil, nil, in[0], n.whole(in[1]))
	}},
	{name: "reverse", in: [][]int{rowShape}, build: func(n *net, in []*graph.Node) (*graph.Node, error) { return n.Reverse(in[0]) }},
	{name: "recur", in: [][]int{{24}, {24, 16}, {1}}, build: func(n *net, in []*graph.Node) (*graph.Node, error) {
		return n.Loop([]*graph.Node{n.zeros(16)}, func(b *graph.Builder, s []*graph.Node) ([]*graph.Node, error) {
			step := stepNet{n, b}
			y := step.unary("scale", step.must(b.Add(graph.OpDot, &graph.DotAttr{}, nil, s[0], in[1])), 0.05) // not chaotic
			y = step.unary("tanh", step.binary("mul", step.binary("add", y, in[0]), in[2]))
			return []*graph.Node{step.part(y, 0, 16), y}, nil
		})
	}},
}
