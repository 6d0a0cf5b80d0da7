package devicetest

import (
	"testing"

	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// asking are queries, keys and values of one value.
func (n *net) asking(x *graph.Node, h heads) (q, k, v *graph.Node) {
	in := n.rms(x)
	if h.value == 0 {
		h.value = h.dim
	}
	return n.reshape(n.linear(in, h.q*h.dim), h.q, h.dim), n.reshape(n.linear(in, h.kv*h.dim), h.kv, h.dim), n.reshape(n.biased(in, h.kv*h.value), h.kv, h.value)
}

// back adds what attention gave.
func (n *net) back(x, a *graph.Node) *graph.Node {
	return n.add(x, n.linear(n.reshape(a, a.Width()), x.Width()))
}

// open is an attention that is to be joined.
func open(a graph.AttentionAttr) graph.AttentionAttr {
	if a.Open = true; a.Mask == "" {
		a.Mask = graph.MaskCausal
	}
	a.Scale = 0.3
	return a
}

// learned are keys or values that are computed from stored ones.
func (n *net) learned(count, kv, dim int) *graph.Node {
	return n.rms(n.must(n.Param(n.matrix(quant.F32, count, kv, dim))))
}

// reachCase is two layers of attention with a residual and a table for all.
func reachCase(name string, h heads, attr func(n *net) graph.AttentionAttr) testCase {
	c := attentionCase(name, h, attr)
	c.name = "attention/" + name
	return c
}

var joined = []program.Kind{program.KindAttention, program.KindJoin}

// joinCases are softmaxes over several sources, sinks made by the token, and
// positions that are seen beside a window.
var joinCases = []testCase{
	{name: "join/own tokens and the source", has: []program.Kind{program.KindPut, program.KindJoin, program.KindQKV}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			return n.attend(n.embed(), heads{q: 4, kv: 4, dim: 16}, both, nil)
		})
		x := n.embed()
		for i := range 2 {
			q, k, v := n.asking(x, heads{q: 6, kv: 2, dim: 16, value: 10})
			own := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Window: 9 * i})))
			k, v = n.reshape(n.linear(memory, 3*16), 3, 16), n.reshape(n.linear(memory, 3*10), 3, 10)
			x = n.back(x, n.must(n.Join(own, n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Tile: i > 0}))))))
			n.Layer++
		}
		n.Layer--
		return n.head(x)
	}},
	{name: "join/a shared cache beside a local window", has: joined, build: func(n *net) *graph.Node {
		n.Layer = 0
		q, k, v := n.asking(n.embed(), heads{q: 4, kv: 2, dim: 16})
		first := n.must(n.Attention(q, k, v, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.25}))
		cache := first.Attr.(*graph.AttentionAttr).Cache
		x := n.back(n.embed(), first)
		for n.Layer = 1; n.Layer < 3; n.Layer++ {
			q, k, v = n.asking(x, heads{q: 4, kv: 4, dim: 16})
			a := open(graph.AttentionAttr{Softcap: 2, Slopes: []float64{0.5, 0.25, 0.1, 0}})
			a.Cache = cache
			far := n.must(n.AttentionShared(q, a))
			near := n.must(n.Attention(q, k, v, n.relative(open(graph.AttentionAttr{Window: 5}), 7, 9, false)))
			x = n.back(x, n.must(n.Join(near, far, near)))
		}
		n.Layer--
		return n.head(x)
	}},
	{name: "join/stored keys", has: []program.Kind{program.KindQKV, program.KindStored, program.KindJoin}, build: func(n *net) *graph.Node {
		x, keys := n.embed(), n.learned(19, 2, 12) // the keys are made before the layers, for both of them
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			q, k, v := n.asking(x, heads{q: 6, kv: 3, dim: 12, value: 7})
			own := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Sinks: n.vector(0, 6)})))
			prefix := n.must(n.AttentionStored(q, keys, n.learned(19, 2, 7), graph.StoredAttr{Scale: 0.4, Softcap: 3, Tile: n.Layer > 0, Open: true}))
			x = n.back(x, n.must(n.Join(prefix, own)))
		}
		n.Layer--
		q, _, _ := n.asking(x, heads{q: 4, kv: 1, dim: 16})
		return n.head(n.back(x, n.must(n.AttentionStored(q, n.learned(5, 1, 16), n.learned(5, 1, 16), graph.StoredAttr{Scale: 1}))))
	}},
	{name: "join/a key and value by hand", has: joined, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		q, k, v := n.asking(x, heads{q: 4, kv: 4, dim: 16})
		a := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Window: 6})))
		q2, k2, v2 := n.asking(x, heads{q: 4, kv: 4, dim: 16})
		score := n.must(n.Add(graph.OpReduce, &graph.ReduceAttr{F: "sum"}, nil, n.binary("mul", q2, k2)))
		return n.head(n.back(x, n.must(n.Join(a, n.must(n.Concat(1, v2, score))))))
	}},
	{name: "join/one that sees nothing", has: joined, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		q, k, v := n.asking(x, heads{q: 4, kv: 2, dim: 16})
		a := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Ask: 9})))
		b := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Ask: 3, Sinks: n.vector(0, 4)})))
		return n.head(n.back(n.back(x, n.must(n.Join(a, b))), n.must(n.Join(a))))
	}},
	{name: "join/latent and in an encoder", has: []program.Kind{program.KindJoin}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			x := n.embed()
			q, k, v := n.asking(x, heads{q: 4, kv: 4, dim: 16})
			local := both
			local.Window = 4
			a := n.must(n.Attention(q, k, v, open(local)))
			return n.back(x, n.must(n.Join(a, n.must(n.AttentionStored(q, n.learned(3, 4, 16), n.learned(3, 4, 16), graph.StoredAttr{Scale: 1, Open: true})))))
		})
		x := n.cross(n.embed(), memory, heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{})
		q, k, _ := n.asking(x, heads{q: 4, kv: 1, dim: 24})
		a := n.must(n.AttentionLatent(q, k, 16, open(graph.AttentionAttr{SinkOf: true}), n.linear(x, 4)))
		return n.head(n.back(x, n.must(n.Join(a, n.must(n.AttentionStored(q, n.learned(17, 1, 24), n.learned(17, 1, 16), graph.StoredAttr{Scale: 1, Open: true}))))))
	}},
	{name: "join/keys of attentions that nothing else reads", has: []program.Kind{program.KindPut}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			return n.attend(n.embed(), heads{q: 4, kv: 4, dim: 16}, both, nil)
		})
		x := n.embed()
		q, k, v := n.asking(x, heads{q: 4, kv: 2, dim: 16})
		own := n.must(n.Attention(q, k, v, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.3}))
		across := n.must(n.Attention(q, n.reshape(n.linear(memory, 16), 1, 16), n.reshape(n.linear(memory, 16), 1, 16), both))
		_, k, _ = n.asking(x, heads{q: 4, kv: 2, dim: 16})
		latent := n.must(n.AttentionLatent(q, k, 16, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.3}))
		q, _, _ = n.asking(x, heads{q: 4, kv: 2, dim: 16})
		var parts []*graph.Node
		for _, of := range []*graph.Node{own, across, latent} {
			a := open(graph.AttentionAttr{})
			a.Cache = of.Attr.(*graph.AttentionAttr).Cache
			parts = append(parts, n.must(n.AttentionShared(q, a)))
		}
		return n.head(n.back(x, n.must(n.Join(parts...))))
	}},
	{name: "attention/sinks made by the token", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		x := n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			q, k, v := n.asking(x, heads{q: 6, kv: 2, dim: 16})
			x = n.back(x, n.must(n.Attention(q, k, v, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.3, Window: 9 * n.Layer, SinkOf: true, Tile: n.Layer > 0}, n.linear(x, 6))))
		}
		n.Layer--
		return n.head(x)
	}},
	{name: "attention/sinks of a constant, values of keys that see the first", has: []program.Kind{program.KindAttention}, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		q, k, _ := n.asking(x, heads{q: 4, kv: 1, dim: 16})
		a := n.must(n.AttentionLatent(q, k, 12, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.3, Window: 6, First: 4, SinkOf: true}, n.must(n.Param(n.vector(0, 4)))))
		return n.head(n.back(x, a))
	}},
	reachCase("the first beside a window", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Window: 7, First: 3} }),
	reachCase("the first tiles beside a window", heads{q: 4, kv: 1, dim: 16}, func(*net) graph.AttentionAttr { return graph.AttentionAttr{Window: 3, First: 20} }),
	reachCase("the first beside chunks", heads{q: 6, kv: 2, dim: 8}, func(n *net) graph.AttentionAttr {
		return graph.AttentionAttr{Mask: graph.MaskChunk, Window: 11, First: 1, Tile: true, Softcap: 2, Slopes: []float64{0.5, 0.4, 0.3, 0.2, 0.1, 0}, Sinks: n.vector(0, 6)}
	}),
	reachCase("the first and a relative bias", heads{q: 4, kv: 2, dim: 16}, func(n *net) graph.AttentionAttr {
		return n.relative(graph.AttentionAttr{Window: 5, First: 2}, 7, 9, false)
	}),
	reachCase("the first see all, and all see them", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Mask: graph.MaskFull, Window: 3, First: 2}
	}),
	reachCase("sides of a window", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Mask: graph.MaskFull, Sides: []int{0, 5}, First: 1}
	}),
	reachCase("queries of the first alone", heads{q: 4, kv: 2, dim: 16}, func(*net) graph.AttentionAttr {
		return graph.AttentionAttr{Mask: graph.MaskFull, Ask: 2}
	}),
	{name: "join/the first, shared", has: joined, build: func(n *net) *graph.Node {
		n.Layer = 0
		x := n.embed()
		q, k, v := n.asking(x, heads{q: 4, kv: 2, dim: 16})
		a := n.must(n.Attention(q, k, v, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.25, Window: 4, First: 2}))
		b := open(graph.AttentionAttr{Window: 3, First: 1})
		b.Cache = a.Attr.(*graph.AttentionAttr).Cache
		q, k, v = n.asking(x, heads{q: 4, kv: 2, dim: 16})
		return n.head(n.back(n.back(x, a), n.must(n.Join(n.must(n.AttentionShared(q, b)), n.must(n.Attention(q, k, v, open(graph.AttentionAttr{})))))))
	}},
}

// testJoined counts what attention to several sources allocates in the steady
// state: nothing.
func (d Device) testJoined(t *testing.T) {
	n := newNet(t, 21)
	x := n.embed()
	for n.Layer = 0; n.Layer < 2; n.Layer++ {
		q, k, v := n.asking(x, heads{q: 4, kv: 2, dim: 16})
		own := n.must(n.Attention(q, k, v, open(graph.AttentionAttr{Window: 5, First: 2, SinkOf: true}), n.linear(x, 4)))
		prefix := n.must(n.AttentionStored(q, n.learned(19, 2, 16), n.learned(19, 2, 16), graph.StoredAttr{Scale: 0.3, Open: true, Tile: n.Layer > 0}))
		x = n.back(x, n.must(n.Join(own, prefix)))
	}
	n.Layer--
	n.finish(n.head(x))
	d.open(t, n, compile.Options{}).keepsNothing(t)
	n = newNet(t, 22)
	scoredNet(n)
	d.open(t, n, compile.Options{}).keepsNothing(t)
}
