package devicetest

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// zeros is where a state begins.
func (n *net) zeros(shape ...int) *graph.Node {
	return n.must(n.Const(make([]float64, graph.Product(shape)), shape))
}

// stepNet holds the operations of a step.
type stepNet struct {
	*net
	b *graph.Builder
}

func (n stepNet) unary(f string, x *graph.Node, p ...float64) *graph.Node {
	p = append(p, 0, 0)
	return n.must(n.b.Unary(f, x, p[0], p[1]))
}

func (n stepNet) binary(f string, x, y *graph.Node) *graph.Node { return n.must(n.b.Binary(f, x, y)) }

func (n stepNet) part(x *graph.Node, i, d int) *graph.Node {
	return n.must(n.b.Slice(x, 0, i*d, (i+1)*d, 1))
}

// loop is a recurrence of any step.
func (n *net) loop(start []*graph.Node, step func(in stepNet, s []*graph.Node) []*graph.Node) *graph.Node {
	return n.must(n.Loop(start, func(b *graph.Builder, s []*graph.Node) ([]*graph.Node, error) { return step(stepNet{n, b}, s), nil }))
}

// memoryCell is a long short-term memory of d cells.
func (n *net) memoryCell(x *graph.Node, d int) *graph.Node {
	gates := n.biased(x, 4*d)
	recurrent, bias := n.matrix(quant.F32, 4*d, d), n.vector(0, 4*d)
	return n.loop([]*graph.Node{n.zeros(d), n.must(n.Param(n.vector(0, d)))}, func(in stepNet, s []*graph.Node) []*graph.Node {
		z := in.binary("add", gates, in.must(in.b.Linear(s[0], recurrent, bias)))
		i, f, g, o := in.part(z, 0, d), in.part(z, 1, d), in.part(z, 2, d), in.part(z, 3, d)
		c := in.binary("add", in.binary("mul", in.unary("sigmoid", f), s[1]), in.binary("mul", in.unary("sigmoid", i), in.unary("tanh", g)))
		h := in.binary("mul", in.unary("sigmoid", o), in.unary("tanh", c))
		return []*graph.Node{h, c, h}
	})
}

// learner is a matrix a head that takes a step of its gradient with every token.
func (n *net) learner(x *graph.Node, heads, d int) *graph.Node {
	q, k, v := n.norm(n.reshape(n.linear(x, heads*d), heads, d), graph.NormAttr{Kind: graph.L2, Eps: 1e-6}),
		n.norm(n.reshape(n.linear(x, heads*d), heads, d), graph.NormAttr{Kind: graph.L2, Eps: 1e-6}), n.reshape(n.linear(x, heads*d), heads, d)
	rate := n.reshape(n.unary("sigmoid", n.linear(x, heads)), heads, 1, 1)
	scale := graph.NormAttr{Kind: graph.Layer, Eps: 1e-3, W: n.vector(1, d), B: n.vector(0, d)}
	return n.loop([]*graph.Node{n.must(n.Param(n.matrix(quant.F32, heads, d, d)))}, func(in stepNet, s []*graph.Node) []*graph.Node {
		guess := in.must(in.b.Add(graph.OpDot, &graph.DotAttr{}, nil, k, s[0]))
		wrong := in.binary("sub", in.unary("tanh", guess), v)
		outer := in.binary("mul", in.must(in.b.Reshape(wrong, []int{heads, d, 1})), in.must(in.b.Reshape(k, []int{heads, 1, d})))
		w := in.binary("sub", s[0], in.binary("mul", rate, outer))
		y := in.must(in.b.Add(graph.OpDot, &graph.DotAttr{}, nil, q, w))
		return []*graph.Node{w, in.binary("add", q, in.must(in.b.Norm(y, scale)))}
	})
}

// loopCases are recurrences of any step.
var loopCases = []testCase{
	{name: "loop/memory cells", has: []program.Kind{program.KindOp}, build: func(n *net) *graph.Node {
		x := n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			x = n.add(x, n.linear(n.memoryCell(n.rms(x), 24), width))
		}
		n.Layer--
		return n.head(x)
	}},
	{name: "loop/a learner beside attention", tol: 2e-5, has: []program.Kind{program.KindOp, program.KindQKV}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)
		return n.head(n.add(x, n.linear(n.flat(n.learner(n.rms(x), 3, 8)), width)))
	}},
	{name: "loop/states that change places, a softmax, what is the same for all", has: []program.Kind{program.KindOp}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		fixed := n.unary("tanh", n.must(n.Param(n.vector(0, width))))
		y := n.loop([]*graph.Node{n.zeros(width), n.zeros(width)}, func(in stepNet, s []*graph.Node) []*graph.Node {
			p := in.must(in.b.Add(graph.OpSoftmax, nil, nil, in.binary("add", s[0], in.must(in.b.Tokens(), nil))))
			at := in.must(in.b.Add(graph.OpWhere, nil, nil, in.must(in.b.Add(graph.OpPositions, &graph.PositionsAttr{}, nil)), p, fixed))
			return []*graph.Node{in.binary("add", in.unary("scale", s[1], 0.5), x), in.unary("scale", s[0], 0.5), in.binary("add", s[1], at)}
		})
		return n.head(n.add(x, y))
	}},
	{name: "loop/of a source, both ways", has: []program.Kind{program.KindOp, program.KindPut}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			x := n.embed()
			return n.add(n.linear(n.memoryCell(x, 16), width), n.linear(n.must(n.Reverse(n.memoryCell(n.must(n.Reverse(x)), 16))), width))
		})
		return n.head(n.cross(n.embed(), memory, heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{}))
	}},
}
