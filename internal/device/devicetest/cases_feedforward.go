package devicetest

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// feedForwardCases are two products, of which mostly the second alone reads the first.
var feedForwardCases = []testCase{
	forwardCase("post norm", func(n *net, x *graph.Node) *graph.Node {
		return n.add(x, n.biased(n.unary("gelu", n.biased(x, 400)), width))
	}),
	forwardCase("pre norm", func(n *net, x *graph.Node) *graph.Node {
		return n.add(x, n.linear(n.unary("relu", n.linear(n.rms(x), 400)), width))
	}),
	forwardCase("no residual", func(n *net, x *graph.Node) *graph.Node {
		return n.biased(n.unary("silu", n.biased(x, 80)), width)
	}),
	forwardCase("nothing between", func(n *net, x *graph.Node) *graph.Node { return n.biased(n.biased(x, 800), width) }),
	forwardCase("residual of what is between", func(n *net, x *graph.Node) *graph.Node {
		h := n.unary("gelu", n.biased(x, width))
		return n.add(h, n.biased(h, width))
	}),
	forwardCase("columns that fill no panel", func(n *net, x *graph.Node) *graph.Node {
		return n.biased(n.biased(x, 403), width)
	}),
}

func forwardCase(name string, f func(n *net, x *graph.Node) *graph.Node) testCase {
	return testCase{name: "feed-forward/" + name, has: []program.Kind{program.KindLinear}, build: func(n *net) *graph.Node {
		x := n.rms(n.embed())
		for range 2 {
			x = n.rms(f(n, x))
		}
		// all rows are needed, for later ones see them
		return n.head(n.attend(x, heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}, nil))
	}}
}
