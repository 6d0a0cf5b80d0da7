package devicetest

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

var chained = []program.Kind{program.KindElementwise}

// chainCases are elementwise chains; their values come from norms and
// products so that no pattern of a product takes them.
var chainCases = []testCase{
	{name: "chain/long", has: chained, build: func(n *net) *graph.Node {
		x := n.rms(n.embed())
		y := x
		for i := range 9 {
			y = n.binary([]string{"add", "mul", "sub", "max"}[i%4], n.unary([]string{"tanh", "silu", "sin", "abs"}[i%4], y), x)
		}
		return n.head(y)
	}},
	{name: "chain/longer than its registers", has: chained, build: func(n *net) *graph.Node {
		x := n.embed()
		y := x
		for range 40 {
			y = n.add(n.unary("cos", y), x)
		}
		return n.head(y)
	}},
	{name: "chain/pairs", has: chained, build: func(n *net) *graph.Node {
		x, y := n.rms(n.embed()), n.unary("add", n.unary("square", n.rms(n.embed())), 0.5)
		s := n.binary("sub", n.binary("div", x, y), n.binary("min", x, y))
		s = n.binary("max", s, n.binary("mul", n.binary("less", x, y), n.binary("pow", y, n.unary("tanh", x))))
		return n.head(s)
	}},
	{name: "chain/where", has: chained, build: func(n *net) *graph.Node {
		x, y := n.rms(n.embed()), n.rms(n.embed())
		return n.head(n.must(n.Add(graph.OpWhere, nil, nil, n.binary("less", x, y), n.unary("exp", x), n.unary("neg", y))))
	}},
	{name: "chain/stored values", has: chained, build: func(n *net) *graph.Node {
		p := n.must(n.Param(n.vector(1, width)))
		return n.head(n.binary("mul", n.unary("tanh", n.rms(n.embed())), p))
	}},
	{name: "chain/numbers", has: chained, build: func(n *net) *graph.Node {
		k := n.must(n.Const([]float64{0.5, 1, 2, 4}, []int{4, 1}))
		one := n.must(n.Const([]float64{0.25}, []int{1}))
		x := n.reshape(n.unary("tanh", n.rms(n.embed())), 4, width/4)
		return n.head(n.reshape(n.add(n.binary("mul", x, k), one), width))
	}},
	{name: "chain/a factor a head", has: chained, build: func(n *net) *graph.Node {
		x := n.embed()
		g := n.reshape(n.unary("tanh", n.rms(n.linear(x, 4))), 4, 1)
		return n.head(n.reshape(n.binary("mul", n.reshape(n.rms(x), 4, width/4), g), width))
	}},
	{name: "chain/a factor in the middle", build: func(n *net) *graph.Node {
		x := n.reshape(n.rms(n.embed()), 2, 4, width/8)
		g := n.reshape(n.rms(n.linear(n.reshape(x, width), width/4)), 2, 1, width/8)
		return n.head(n.reshape(n.binary("mul", x, n.unary("tanh", g)), width))
	}},
	{name: "chain/outer product", has: chained, build: func(n *net) *graph.Node {
		x := n.embed()
		a, b := n.rms(n.linear(x, 8)), n.rms(n.linear(x, 8))
		return n.head(n.reshape(n.binary("mul", n.reshape(a, 8, 1), n.reshape(b, 1, 8)), width))
	}},
	{name: "chain/wider than a tile", has: chained, build: func(n *net) *graph.Node {
		x := n.rms(n.linear(n.embed(), 1300))
		return n.head(n.binary("sub", n.unary("tanh", x), n.unary("cos", x)))
	}},
	{name: "chain/a value of two users", has: chained, build: func(n *net) *graph.Node {
		x := n.unary("tanh", n.rms(n.embed()))
		return n.head(n.add(n.unary("sin", x), n.norm(x, graph.NormAttr{Kind: graph.Layer, Eps: 1e-5})))
	}},
}

// opCases are nodes that no fused step takes.
var opCases = []testCase{
	opCase("sum", func(n *net, x *graph.Node) *graph.Node { return n.over(x, "sum") }),
	opCase("mean", func(n *net, x *graph.Node) *graph.Node { return n.over(x, "mean") }),
	opCase("std", func(n *net, x *graph.Node) *graph.Node { return n.over(x, "std") }),
	opCase("max", func(n *net, x *graph.Node) *graph.Node { return n.over(x, "max") }),
	opCase("min", func(n *net, x *graph.Node) *graph.Node { return n.over(x, "min") }),
	opCase("softmax", func(n *net, x *graph.Node) *graph.Node { return n.must(n.Add(graph.OpSoftmax, nil, nil, x)) }),
	opCase("transpose", func(n *net, x *graph.Node) *graph.Node {
		return n.must(n.Add(graph.OpTranspose, &graph.TransposeAttr{Perm: []int{1, 0}}, nil, x))
	}),
	opCase("slice", func(n *net, x *graph.Node) *graph.Node { return n.must(n.Slice(x, 1, 1, 15, 3)) }),
	{name: "op/gather", has: []program.Kind{program.KindOp}, build: func(n *net) *graph.Node {
		at := n.must(n.Const([]float64{3, 0, 63, 17, 17, 5}, []int{6}))
		return n.linear(n.must(n.Add(graph.OpGather, nil, nil, n.rms(n.embed()), at)), vocab)
	}},
	{name: "op/positions", has: []program.Kind{program.KindOp}, build: func(n *net) *graph.Node {
		p := n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{Offset: -3}, nil))
		return n.head(n.binary("mul", n.rms(n.embed()), n.reshape(n.unary("cos", p), 1)))
	}},
}

func (n *net) over(x *graph.Node, f string) *graph.Node {
	return n.must(n.Add(graph.OpReduce, &graph.ReduceAttr{F: f}, nil, x))
}

// opCase puts an operation on [4, width/4] in the middle of a net.
func opCase(name string, op func(n *net, x *graph.Node) *graph.Node) testCase {
	return testCase{name: "op/" + name, has: []program.Kind{program.KindOp}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 2, kv: 1, dim: 16}, graph.AttentionAttr{}, nil)
		y := op(n, n.reshape(n.rms(x), 4, width/4))
		x = n.add(x, n.linear(n.reshape(y, y.Width()), width))
		return n.head(n.attend(x, heads{q: 2, kv: 1, dim: 16}, graph.AttentionAttr{}, nil))
	}}
}

// rowCases are about which rows are computed: all, or the wanted ones.
var rowCases = []testCase{
	{name: "rows/attention at the end", has: []program.Kind{program.KindRows, program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		in := n.rms(n.embed())
		q, k, v := n.reshape(n.linear(in, 64), 4, 16), n.reshape(n.linear(in, 32), 2, 16), n.reshape(n.linear(in, 32), 2, 16)
		return n.reshape(n.must(n.Attention(q, k, v, graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal})), 64)
	}},
	{name: "rows/embedding at the end", build: func(n *net) *graph.Node { return n.embed() }},
	{name: "rows/two values kept", has: []program.Kind{program.KindRows}, build: func(n *net) *graph.Node {
		n.Layer = 0
		e := n.embed()
		x := n.attend(e, heads{q: 2, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)
		return n.head(n.add(n.ffn(x, "silu"), n.unary("tanh", e)))
	}},
	{name: "rows/operations at the end", has: []program.Kind{program.KindRows, program.KindOp}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 2, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)
		return n.must(n.Add(graph.OpSoftmax, nil, nil, n.head(x)))
	}},
	{name: "rows/experts at the end", has: []program.Kind{program.KindRows, program.KindMoE}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 2, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)
		return n.head(n.moe(x, 0, nil))
	}},
	{name: "rows/positions at the end", has: []program.Kind{program.KindRows}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 2, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)
		p := n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{}, nil))
		return n.binary("mul", n.head(x), n.reshape(n.unary("sin", p), 1))
	}},
	{name: "rows/rope at the end", build: func(n *net) *graph.Node {
		return n.reshape(n.rope(n.reshape(n.embed(), 4, 16), graph.RopeAttr{Table: n.table(16)}), width)
	}},
}
