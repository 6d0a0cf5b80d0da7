package devicetest

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// blockCases are attentions to keys that stand for blocks: chosen ones, all of
// them, and those beside a window in one softmax.
var blockCases = []testCase{
	chosenCase("closed blocks and the tail", graph.IndexAttr{TopK: 2, Block: 4, Closed: true, Tail: true}),
	chosenCase("closed blocks", graph.IndexAttr{TopK: 3, Block: 3, Closed: true, Signed: true}),
	chosenCase("ends of closed blocks", graph.IndexAttr{TopK: 3, Block: 4, Closed: true, Ends: true}),
	chosenCase("ends of blocks longer than a tile", graph.IndexAttr{TopK: 1, Block: 18, Closed: true, Ends: true}),
	reachCase("every fourth", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Every: 4} }),
	reachCase("every twentieth", heads{q: 4, kv: 1, dim: 16}, func(n *net) graph.AttentionAttr {
		return graph.AttentionAttr{Every: 20, Softcap: 2, Sinks: n.vector(0, 4), Slopes: []float64{0.5, 0.25, 0.1, 0}}
	}),
	{name: "join/blocks beside a window", has: joined, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		q, k, v := n.asking(x, heads{q: 4, kv: 1, dim: 16})
		near := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Window: 5, Sinks: n.vector(0, 4)})))
		_, k, v = n.asking(x, heads{q: 4, kv: 1, dim: 16})
		far := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Every: 6})))
		chosen := n.index(x, n.table(8), graph.IndexAttr{TopK: 2, Block: 4, Closed: true, Ends: true})
		_, k, v = n.asking(x, heads{q: 4, kv: 1, dim: 16})
		some := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Allowed: true}), chosen))
		return n.head(n.back(x, n.must(n.Join(near, far, some))))
	}},
	opCase("balance", func(n *net, x *graph.Node) *graph.Node {
		y := n.reshape(x, 4, 4, 4)
		return n.must(n.Add(graph.OpBalance, &graph.BalanceAttr{Rounds: 7, Eps: 1e-3}, nil, y))
	}),
	{name: "latent/every third", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.head(n.latent(n.embed(), n.table(8), 4, graph.AttentionAttr{Every: 3}))
	}},
}

// closedCases are blocks that stand closed, beside the token's own.
var closedCases = []testCase{
	chosenCase("closed blocks and the own", graph.IndexAttr{TopK: 3, Block: 4, Closed: true, Local: 1, Signed: true}),
	chosenCase("closed blocks and the last two", graph.IndexAttr{TopK: 2, Block: 7, Closed: true, Local: 2}),
}
