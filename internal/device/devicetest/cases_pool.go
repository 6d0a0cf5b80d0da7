package devicetest

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

func (n *net) pool(x *graph.Node, how string) *graph.Node {
	return n.must(n.Add(graph.OpPool, &graph.PoolAttr{How: how}, nil, x))
}

// encoded is a layer that sees both ways: what pooling follows.
func (n *net) encoded() *graph.Node {
	n.Layer = 0
	return n.attend(n.embed(), heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{Mask: graph.MaskFull}, nil)
}

func poolCase(how string) testCase {
	return testCase{name: "pool/" + how, has: []program.Kind{program.KindPool}, build: func(n *net) *graph.Node {
		return n.head(n.unary("tanh", n.biased(n.pool(n.encoded(), how), width)))
	}}
}

var poolCases = []testCase{
	poolCase("cls"), poolCase("last"), poolCase("mean"), poolCase("max"), poolCase("mean_sqrt"), poolCase("weighted"),
	{name: "pool/at the end", has: []program.Kind{program.KindPool}, build: func(n *net) *graph.Node {
		return n.pool(n.encoded(), "mean")
	}},
	{name: "pool/two joined, normalised", has: []program.Kind{program.KindPool}, build: func(n *net) *graph.Node {
		x := n.encoded()
		y := n.must(n.Concat(0, n.pool(x, "cls"), n.pool(x, "max")))
		return n.must(n.Norm(y, graph.NormAttr{Kind: graph.L2, Eps: 1e-12}))
	}},
	{name: "pool/of a causal layer", has: []program.Kind{program.KindPool}, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.pool(n.rms(n.attend(n.embed(), heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)), "last")
	}},
	{name: "pool/read by every token", has: []program.Kind{program.KindPool}, build: func(n *net) *graph.Node {
		x := n.encoded()
		n.Layer = 1
		return n.head(n.attend(n.add(x, n.linear(n.pool(x, "mean"), width)), heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{Mask: graph.MaskFull}, nil))
	}},
	{name: "encoder/post-norm", has: []program.Kind{program.KindNorm, program.KindQKV}, build: func(n *net) *graph.Node {
		ln := func() graph.NormAttr {
			return graph.NormAttr{Kind: graph.Layer, Eps: 1e-12, W: n.vector(1, width), B: n.vector(0, width)}
		}
		x := n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			x = n.norm(n.attend(x, heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{Mask: graph.MaskFull}, nil), ln())
			x = n.norm(n.add(x, n.biased(n.unary("gelu", n.biased(x, 80)), width)), ln())
		}
		n.Layer--
		return n.head(x)
	}},
	{name: "encoder/window", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.head(n.attend(n.embed(), heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{Mask: graph.MaskFull, Window: 3}, nil))
	}},
}

// columnCases read columns of the batch other than the tokens.
var columnCases = []testCase{
	{name: "embed/by type", has: []program.Kind{program.KindEmbed}, build: func(n *net) *graph.Node {
		kind := n.must(n.Add(graph.OpTypes, nil, nil))
		return n.head(n.add(n.embed(), n.must(n.Embed(kind, n.vector(0, 2, width), 0))))
	}},
	{name: "embed/by count", has: []program.Kind{program.KindEmbed}, build: func(n *net) *graph.Node {
		at := n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{Offset: 2, Count: true, Pad: padToken}, nil))
		return n.head(n.add(n.embed(), n.must(n.Embed(at, n.vector(0, limits.Tokens+2, width), 0))))
	}},
	{name: "rows/types and counts at the end", has: []program.Kind{program.KindRows}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.attend(n.embed(), heads{q: 2, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)
		at := n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{Offset: 2, Count: true, Pad: padToken}, nil))
		p := n.add(n.must(n.Add(graph.OpTypes, nil, nil)), n.unary("sin", at))
		return n.binary("mul", n.head(x), n.reshape(p, 1))
	}},
}
