package devicetest

import "github.com/inferflow/inferflow/internal/graph"

// asked is an attention in the making: its attributes, the inputs beside query,
// key and value, and what is done to those.
type asked struct {
	graph.AttentionAttr
	table, sink, list *graph.Node
	faded             bool
}

// attentionOption is one thing that can be said of an attention.
type attentionOption struct {
	name string
	set  func(n *net, x *graph.Node, a *asked)
}

func ofScore(score string) attentionOption {
	return attentionOption{"score " + score, func(_ *net, _ *graph.Node, a *asked) { a.Score = score }}
}

func ofAttr(name string, set func(a *graph.AttentionAttr)) attentionOption {
	return attentionOption{name, func(_ *net, _ *graph.Node, a *asked) { set(&a.AttentionAttr) }}
}

// attentionOptions are all of them, the mask that takes whole texts apart from the others.
var attentionOptions = []attentionOption{
	ofAttr("seeing all", func(a *graph.AttentionAttr) { a.Mask = graph.MaskFull }),
	ofAttr("before the token", func(a *graph.AttentionAttr) { a.Mask = graph.MaskBefore }),
	ofAttr("chunks", func(a *graph.AttentionAttr) { a.Mask, a.Window = graph.MaskChunk, 11 }),
	ofAttr("window", func(a *graph.AttentionAttr) { a.Window = 19 }),
	ofAttr("first", func(a *graph.AttentionAttr) { a.First = 3 }),
	ofAttr("queries", func(a *graph.AttentionAttr) { a.Ask = 20 }),
	ofAttr("every", func(a *graph.AttentionAttr) { a.Every = 3 }),
	ofAttr("softcap", func(a *graph.AttentionAttr) { a.Softcap = 2 }),
	ofAttr("slopes", func(a *graph.AttentionAttr) { a.Slopes = []float64{0.5, 0.25, 0.1, 0} }),
	ofAttr("tile", func(a *graph.AttentionAttr) { a.Tile = true }),
	ofAttr("open", func(a *graph.AttentionAttr) { a.Open = true }),
	{"sinks", func(n *net, _ *graph.Node, a *asked) { a.Sinks = n.vector(0, 4) }},
	{"sinks of the token", func(n *net, x *graph.Node, a *asked) { a.SinkOf, a.sink = true, n.linear(x, 4) }},
	{"relative", func(n *net, _ *graph.Node, a *asked) { a.AttentionAttr = n.relative(a.AttentionAttr, 7, 9, false) }},
	{"bias of the query", func(n *net, x *graph.Node, a *asked) {
		a.Buckets, a.ByQuery, a.table = []int32{2, 1, 0, 1, 2}, true, n.reshape(n.linear(x, 12), 4, 3)
	}},
	{"counted", func(n *net, x *graph.Node, a *asked) {
		a.Counted, a.ByQuery, a.table = true, true, n.reshape(n.linear(x, 28), 4, 7)
	}},
	{"fade", func(_ *net, _ *graph.Node, a *asked) { a.Faded, a.faded = true, true }},
	{"allowed", func(n *net, x *graph.Node, a *asked) {
		a.Allowed, a.list = true, n.must(n.IndexTopK(n.reshape(n.linear(x, 24), 3, 8), n.linear(x, 8), n.linear(x, 3), graph.IndexAttr{TopK: 9}))
	}},
	ofScore("sigmoid"), ofScore(graph.ScoreNone), ofScore(graph.ScoreSticks), ofScore(graph.ScoreSparsemax), ofScore(graph.ScoreEntmax),
}

// attend is the attention, nil where the graph refuses it.
func (a *asked) attend(n *net, x *graph.Node) *graph.Node {
	q, k, v := n.asking(x, heads{q: 4, kv: 2, dim: 15})
	if a.faded {
		gates := n.reshape(n.unary("neg", n.unary("softplus", n.biased(x, 2))), 2, 1)
		q, k = n.must(n.Concat(1, q, n.zeros(4, 1))), n.must(n.Concat(1, k, gates))
	}
	if a.Scale = 0.3; a.Mask == "" {
		a.Mask = graph.MaskCausal
	}
	var more []*graph.Node
	for _, in := range []*graph.Node{a.table, a.sink, a.list} {
		if in != nil {
			more = append(more, in)
		}
	}
	y, err := n.Attention(q, k, v, a.AttentionAttr, more...)
	if err != nil {
		return nil
	}
	if a.Open { // the logarithm of a sum over nothing is far below all others
		last := n.unary("tanh", n.unary("scale", n.must(n.Slice(y, 1, 15, 16, 1)), 0.1))
		y = n.must(n.Concat(1, n.must(n.Slice(y, 1, 0, 15, 1)), last))
	}
	return y
}

// closedCases are blocks that stand closed, beside the token's own.
var closedCases = []testCase{
	chosenCase("closed blocks and the own", graph.IndexAttr{TopK: 3, Block: 4, Closed: true, Local: 1, Signed: true}),
	chosenCase("closed blocks and the last two", graph.IndexAttr{TopK: 2, Block: 7, Closed: true, Local: 2}),
}

// pairCases hold every two options of an attention that the graph takes
// together, those of one option in a net.
func pairCases() (all []testCase) {
	for i, one := range attentionOptions[:len(attentionOptions)-1] {
		all = append(all, testCase{name: "attention/pairs of " + one.name, tol: 2e-5, build: func(n *net) *graph.Node {
			x := n.embed()
			at := n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{Offset: 1}, nil))
			sum := x
			n.Layer = 0
			for _, other := range attentionOptions[i+1:] {
				a := &asked{}
				one.set(n, x, a)
				other.set(n, x, a)
				if y := a.attend(n, x); y != nil {
					n.Layer++
					sum = n.back(sum, n.binary("div", y, at)) // sums of many weights stay small
				}
			}
			n.Layer = max(0, n.Layer-1)
			return n.head(sum)
		}})
	}
	return all
}
