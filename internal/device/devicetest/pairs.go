package devicetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// mixedAttention is one attention to be: options change it one after the other.
type mixedAttention struct {
	heads  heads
	attr   graph.AttentionAttr
	keys   string // where they come from: "", "latent", "shared", "cross", "encoder"
	chosen *graph.IndexAttr
}

// option is something that an attention may be asked for. Of one kind there is
// one value, so that two of a kind make no pair.
type option struct {
	kind, name string
	set        func(n *net, m *mixedAttention)
}

// options are all that graph.AttentionAttr knows.
var options = slices.Concat(seenOptions, biasOptions, weightOptions, keyOptions)

func masked(mask graph.MaskKind, window int, sides ...int) func(*net, *mixedAttention) {
	return func(_ *net, m *mixedAttention) { m.attr.Mask, m.attr.Window, m.attr.Sides = mask, window, sides }
}

func choosing(a graph.IndexAttr) func(*net, *mixedAttention) {
	return func(_ *net, m *mixedAttention) { m.attr.Allowed, m.chosen = true, &a }
}

// seenOptions say which positions a row sees.
var seenOptions = []option{
	{"mask", "window", masked(graph.MaskCausal, 9)},
	{"mask", "chunk", masked(graph.MaskChunk, 11)},
	{"mask", "before", masked(graph.MaskBefore, 0)},
	{"mask", "before in a window", masked(graph.MaskBefore, 5)},
	{"mask", "full", masked(graph.MaskFull, 0)},
	{"mask", "full in a window", masked(graph.MaskFull, 6)},
	{"mask", "full with sides", masked(graph.MaskFull, 0, 2, 5)},
	{"first", "first", func(_ *net, m *mixedAttention) { m.attr.First = 3 }},
	{"queries", "queries", func(_ *net, m *mixedAttention) { m.attr.Ask = 4 }},
	{"every", "every third", func(_ *net, m *mixedAttention) { m.attr.Every = 3 }},
	{"every", "every twentieth", func(_ *net, m *mixedAttention) { m.attr.Every = 20 }},
	{"allowed", "chosen positions", choosing(graph.IndexAttr{TopK: 6})},
	{"allowed", "chosen blocks and the last", choosing(graph.IndexAttr{TopK: 3, Block: 4, Local: 1, Signed: true})},
	{"allowed", "closed blocks and the own", choosing(graph.IndexAttr{TopK: 3, Block: 4, Closed: true, Local: 1})},
	{"allowed", "closed blocks and the tail", choosing(graph.IndexAttr{TopK: 2, Block: 4, Closed: true, Tail: true})},
	{"allowed", "ends of closed blocks", choosing(graph.IndexAttr{TopK: 3, Block: 4, Closed: true, Ends: true})},
}

// biasOptions change scores.
var biasOptions = []option{
	{"softcap", "softcap", func(_ *net, m *mixedAttention) { m.attr.Softcap = 2 }},
	{"slopes", "slopes", func(_ *net, m *mixedAttention) { m.attr.Slopes = []float64{0.5, 0.25, 0.1, 0} }},
	{"relative", "relative bias", func(n *net, m *mixedAttention) {
		m.attr = n.relative(m.attr, 8, 9, m.attr.Mask == graph.MaskFull)
	}},
	{"bias", "bias by distance", func(_ *net, m *mixedAttention) { m.attr.Buckets, m.attr.ByQuery = ramp(9, 7), true }},
	{"bias", "bias by distance of the key too", func(_ *net, m *mixedAttention) {
		if m.attr.Buckets, m.attr.ByQuery, m.attr.ByKey = ramp(9, 7), true, true; m.attr.Mask == graph.MaskCausal {
			m.attr.Mask = graph.MaskFull // no other is possible
		}
	}},
	{"bias", "bias of all scores", func(_ *net, m *mixedAttention) { m.attr.Buckets, m.attr.ByQuery = []int32{0}, true }},
	{"bias", "counted positions", func(_ *net, m *mixedAttention) { m.attr.Counted, m.attr.ByQuery = true, true }},
	{"fade", "fade", func(_ *net, m *mixedAttention) { m.attr.Faded = true }},
}

func weighed(score string) option {
	return option{"score", "score " + score, func(_ *net, m *mixedAttention) { m.attr.Score = score }}
}

// weightOptions say what becomes of scores.
var weightOptions = []option{
	weighed("sigmoid"), weighed(graph.ScoreNone), weighed("square"), weighed(graph.ScoreSticks), weighed(graph.ScoreSparsemax), weighed(graph.ScoreEntmax),
	{"sinks", "sinks", func(n *net, m *mixedAttention) { m.attr.Sinks = n.vector(0, 4) }},
	{"sinks", "sinks of the token", func(_ *net, m *mixedAttention) { m.attr.SinkOf = true }},
	{"open", "open", func(_ *net, m *mixedAttention) { m.attr.Open = true }},
}

// keyOptions say where keys come from and who reads them.
var keyOptions = []option{
	{"heads", "a key head for each", func(_ *net, m *mixedAttention) { m.heads.kv = 4 }},
	{"heads", "one key head", func(_ *net, m *mixedAttention) { m.heads.kv = 1 }},
	{"tile", "tile", func(_ *net, m *mixedAttention) { m.attr.Tile = true }},
	{"keys", "values of keys", func(_ *net, m *mixedAttention) { m.keys = "latent" }},
	{"keys", "shared keys", func(_ *net, m *mixedAttention) { m.keys = "shared" }},
	{"keys", "the source", func(_ *net, m *mixedAttention) { m.keys = "cross" }},
	{"keys", "the source to itself", func(_ *net, m *mixedAttention) { m.keys = "encoder" }},
}

// optioned makes a net of one attention with those options; the error is the
// builder's, which refuses some of them together.
func (n *net) optioned(of []option) (*graph.Node, error) {
	m := &mixedAttention{heads: heads{q: 4, kv: 2, dim: 16, value: 12}, attr: graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.3}}
	for _, o := range of {
		o.set(n, m)
	}
	n.Layer = 0
	if m.keys != "cross" && m.keys != "encoder" {
		x := n.embed()
		y, err := n.mixedOf(x, x, m)
		return y, err
	}
	var y *graph.Node
	var err error
	memory := n.encoder(func() *graph.Node {
		x := n.embed()
		if y = x; m.keys == "encoder" {
			y, err = n.mixedOf(x, x, m)
		}
		return y
	})
	if err != nil {
		return nil, err
	}
	x := n.embed()
	if m.keys == "encoder" {
		return n.cross(x, memory, heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{}), nil
	}
	return n.mixedOf(x, memory, m)
}

// mixedOf is the attention of x to the rows of from, with a residual.
func (n *net) mixedOf(x, from *graph.Node, m *mixedAttention) (*graph.Node, error) {
	a, h := m.attr, m.heads
	if a.Faded {
		h.dim--
	}
	q, k, v := n.asking(x, h)
	if from != x {
		_, k, v = n.asking(from, h)
	}
	if a.Faded {
		gates := n.unary("neg", n.unary("softplus", n.biased(from, h.kv)))
		k = n.must(n.Concat(1, k, n.reshape(gates, h.kv, 1)))
		q = n.must(n.Concat(1, q, n.must(n.Const(make([]float64, h.q), []int{h.q, 1}))))
	}
	var more []*graph.Node
	for _, by := range []bool{a.ByQuery, a.ByKey} {
		if by {
			more = append(more, n.reshape(n.linear(x, h.q*7), h.q, 7))
		}
	}
	if a.SinkOf {
		more = append(more, n.linear(x, h.q))
	}
	if m.chosen != nil && m.keys == "encoder" {
		return nil, errors.New("positions are chosen of the sequence's own tokens")
	}
	if m.chosen != nil {
		more = append(more, n.index(x, n.table(8), *m.chosen))
	}
	y, err := n.mixedCall(q, k, v, m, more)
	if err != nil {
		return nil, err
	}
	return n.back(x, n.closed(x, y, h, m)), nil
}

func (n *net) mixedCall(q, k, v *graph.Node, m *mixedAttention, more []*graph.Node) (*graph.Node, error) {
	switch m.keys {
	case "latent":
		return n.AttentionLatent(q, k, 12, m.attr, more...)
	case "shared":
		first, err := n.Attention(q, k, v, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.3, Faded: m.attr.Faded, Tile: m.attr.Tile})
		if err != nil {
			return nil, err
		}
		a := m.attr
		a.Cache = first.Attr.(*graph.AttentionAttr).Cache
		return n.AttentionShared(q, a, more...)
	}
	return n.Attention(q, k, v, m.attr, more...)
}

// closed makes heads of the size of values of what an attention gives.
func (n *net) closed(x, y *graph.Node, h heads, m *mixedAttention) *graph.Node {
	a := m.attr
	switch {
	case a.Open && a.Score == "":
		y = n.must(n.Join(y, n.reshape(n.linear(x, h.q*(h.value+1)), h.q, h.value+1)))
	case a.Open:
		left := n.unary("exp", n.must(n.Slice(y, 1, h.value, h.value+1, 1)))
		y = n.binary("mul", n.must(n.Slice(y, 1, 0, h.value, 1)), n.unary("add", left, 1))
	}
	if a.Score != "" && m.keys != "encoder" { // so that sums of many weights stay small
		y = n.binary("div", y, n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{Offset: 1}, nil)))
	}
	return y
}

// testPairs holds every two options of an attention that go together against the
// reference, then as many as go together in some orders of all.
func (d Device) testPairs(t *testing.T) {
	alone, together := 0, 0
	for i, o := range options {
		if !d.testOptions(t, uint64(i), o) {
			t.Errorf("%s: refused alone", o.name)
		}
		alone++
		for j, p := range options[:i] {
			if o.kind != p.kind && d.testOptions(t, uint64(1000+50*i+j), p, o) {
				together++
			}
		}
	}
	if together < 8*alone {
		t.Errorf("%d pairs of %d options go together; most should", together, alone)
	}
	for seed := range uint64(40) {
		rng := newNet(t, 7000+seed).rng
		var all []option
		for _, i := range rng.Perm(len(options)) {
			o := options[i]
			if slices.ContainsFunc(all, func(p option) bool { return p.kind == o.kind }) {
				continue
			}
			n := newNet(t, seed)
			if _, err := n.optioned(append(all, o)); err == nil {
				all = append(all, o)
			}
		}
		d.testOptions(t, seed, all...)
	}
}

// testOptions says whether the options go together; if so they are tested.
func (d Device) testOptions(t *testing.T, seed uint64, of ...option) (accepted bool) {
	n := newNet(t, seed)
	x, err := n.optioned(of)
	if err != nil {
		return false
	}
	var names []string
	for _, o := range of {
		names = append(names, o.name)
	}
	t.Run(strings.Join(names, ", "), func(t *testing.T) {
		n.t = t
		n.finish(n.head(x))
		m := d.open(t, n, compile.Options{})
		want := m.agree(t, n, 3e-5)
		if !graph.Whole(n.G) {
			m.aloneOf(t, want, []int{0}, 7, 1)
		}
		m.has(t, []program.Kind{program.KindAttention})
	})
	return true
}
