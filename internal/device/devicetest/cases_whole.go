package devicetest

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// everyState is a mixer with each kind of recurrence, forwards and backwards.
func (n *net) everyState(x *graph.Node) *graph.Node {
	h := n.rms(x)
	x = n.add(x, n.linear(n.flat(n.scan(h, 4, 8, 2, 16, 4)), width))
	back := n.must(n.Reverse(n.rms(x)))
	y := n.binary("mul", n.flat(n.scan(back, 4, 8, 2, 16, 3)), n.unary("sigmoid", n.linear(back, 32)))
	x = n.add(x, n.linear(n.must(n.Reverse(y)), width))
	x = n.add(x, n.linear(n.flat(n.recall(n.rms(n.shift(x, 2)), recalls{keyHeads: 2, heads: 2, dk: 8, dv: 8, decays: 1, norm: "sum"})), width))
	x = n.add(x, n.linear(n.flat(n.delta(n.must(n.Reverse(n.rms(x))), 2, 4, 8, 16, 1, false)), width))
	fade := n.unary("neg", n.unary("softplus", n.biased(x, width)))
	sums := n.must(n.LinearAttention(graph.LinearAttentionIn{V: n.reshape(x, width, 1), G: fade}, graph.LinearAttentionAttr{}))
	ahead := n.must(n.Shift(x, -3))
	return n.add(n.add(x, n.unary("scale", n.reshape(sums, width), 0.2)), n.unary("scale", ahead, 0.3))
}

// wholeCases are recurrences in texts that are seen whole: those of a source, and of an encoder.
var wholeCases = []testCase{
	{name: "source/recurrences", tol: 1e-5, has: []program.Kind{program.KindRecurrent, program.KindConv1D, program.KindReverse, program.KindPut}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			fixed := n.must(n.Shift(n.must(n.Param(n.vector(0, width))), 2)) // zeros in the first two rows
			return n.everyState(n.attend(n.add(n.embed(), fixed), heads{q: 4, kv: 4, dim: 16}, both, nil))
		})
		x := n.cross(n.embed(), n.must(n.Shift(memory, 1)), heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{})
		x = n.add(x, n.linear(n.flat(n.scan(n.rms(x), 4, 8, 2, 16, 4)), width)) // beside states of the answer
		return n.head(x)
	}},
	{name: "reverse/recurrences of a whole text", tol: 1e-5, has: []program.Kind{program.KindRecurrent, program.KindReverse}, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.head(n.everyState(n.embed()))
	}},
	{name: "reverse/at the end", has: []program.Kind{program.KindReverse, program.KindRows}, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.must(n.Reverse(n.head(n.must(n.Reverse(n.must(n.Reverse(n.embed())))))))
	}},
}
