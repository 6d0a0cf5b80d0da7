package devicetest

import (
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// sourceOf is what the encoder reads for a sequence: shorter and longer than a
// tile, and than the blocks of block attention.
func sourceOf(seq int) []int32 {
	lengths := []int{3, 40, 17, 99}
	return text(seq + 50)[:lengths[seq%len(lengths)]]
}

// encode encodes the sources that the parts' sequences need and have not yet,
// in one batch, and tells b where they lie. It returns that batch, nil where
// there was nothing to encode.
func (m *machine) encode(t *testing.T, s *table, parts []part, b *batch.Batch) *batch.Batch {
	t.Helper()
	if !m.crosses() {
		return nil
	}
	e := &batch.Batch{Encode: true}
	for _, p := range parts {
		q := s.seats[p.seq]
		if q.memory != nil {
			continue
		}
		q.memory = s.pool.NewSequence()
		if err := q.memory.Grow(len(q.source)); err != nil {
			t.Fatal(err)
		}
		e.Seqs = append(e.Seqs, batch.Seq{ID: q.id, Row: int32(e.Rows()), N: int32(len(q.source)), State: -1, Spans: q.memory.Spans()})
		for i, id := range q.source {
			e.Tokens, e.Pos = append(e.Tokens, id), append(e.Pos, int32(i))
		}
	}
	for i, p := range parts {
		b.Seqs[i].Memory = s.seats[p.seq].memory.Spans()
	}
	if len(e.Seqs) == 0 {
		return nil
	}
	m.run(t, e)
	return e
}

// crosses says whether the program reads an encoded source.
func (m *machine) crosses() bool {
	for i := range m.p.Steps {
		if a, ok := m.p.Steps[i].Body.(*program.Attention); ok && a.Attr.Cross {
			return true
		}
	}
	return false
}

// encoder builds the part that reads the source.
func (n *net) encoder(build func() *graph.Node) *graph.Node {
	n.Memory = true
	x := build()
	n.Memory = false
	n.Layer++
	return x
}

// cross attends to memory, with a residual.
func (n *net) cross(x, memory *graph.Node, h heads, a graph.AttentionAttr) *graph.Node {
	if h.value == 0 {
		h.value = h.dim
	}
	if a.Scale == 0 {
		a.Scale = 0.3
	}
	q := n.reshape(n.linear(n.rms(x), h.q*h.dim), h.q, h.dim)
	k, v := n.reshape(n.linear(memory, h.kv*h.dim), h.kv, h.dim), n.reshape(n.biased(memory, h.kv*h.value), h.kv, h.value)
	return n.add(x, n.linear(n.reshape(n.must(n.Attention(q, k, v, a)), h.q*h.value), x.Width()))
}

// translator is an encoder of two layers and a decoder of two.
func (n *net) translator(own, other graph.AttentionAttr, h heads, across graph.AttentionAttr) *graph.Node {
	memory := n.encoder(func() *graph.Node {
		x := n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			x = n.ffn(n.attend(x, heads{q: 4, kv: 4, dim: 16}, own, nil), "relu")
		}
		n.Layer--
		return n.rms(x)
	})
	x := n.embed()
	for range 2 {
		x = n.attend(x, heads{q: 4, kv: 2, dim: 16}, other, nil)
		x = n.ffn(n.cross(x, memory, h, across), "gelu")
		n.Layer++
	}
	n.Layer--
	return n.head(x)
}

// relative gives an attention a table of relative biases for 4 heads.
func (n *net) relative(a graph.AttentionAttr, buckets, farthest int, twoSided bool) graph.AttentionAttr {
	a.Relative, a.Farthest, a.TwoSided = n.vector(0, buckets, 4), farthest, twoSided
	return a
}

var both = graph.AttentionAttr{Mask: graph.MaskFull}

var sourceCases = []testCase{
	{name: "attention/relative bias, both sides", has: fusedQKV, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.head(n.attend(n.embed(), heads{q: 4, kv: 2, dim: 16}, n.relative(both, 10, 12, true), nil))
	}},
	{name: "attention/relative bias, causal", has: fusedQKV, build: func(n *net) *graph.Node {
		n.Layer = 0
		return n.head(n.attend(n.embed(), heads{q: 4, kv: 1, dim: 16}, n.relative(graph.AttentionAttr{Softcap: 3}, 7, 9, false), nil))
	}},
	{name: "source/cross attention", has: []program.Kind{program.KindQKV, program.KindPut, program.KindAttention}, build: func(n *net) *graph.Node {
		return n.translator(both, graph.AttentionAttr{}, heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{})
	}},
	{name: "source/fewer keys, wider values, cap and sinks", has: []program.Kind{program.KindPut}, build: func(n *net) *graph.Node {
		return n.translator(both, graph.AttentionAttr{Window: 9}, heads{q: 6, kv: 2, dim: 8, value: 20}, graph.AttentionAttr{Softcap: 2, Sinks: n.vector(0, 6), Tile: true})
	}},
	{name: "source/relative biases", has: []program.Kind{program.KindPut}, build: func(n *net) *graph.Node {
		return n.translator(n.relative(both, 12, 20, true), n.relative(graph.AttentionAttr{}, 8, 30, false), heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{})
	}},
	{name: "source/relative bias in a window", has: []program.Kind{program.KindPut}, build: func(n *net) *graph.Node {
		local := both
		local.Window = 5
		return n.translator(n.relative(local, 32, 128, true), n.relative(graph.AttentionAttr{Window: 7}, 32, 128, false), heads{q: 4, kv: 1, dim: 16}, graph.AttentionAttr{})
	}},
	{name: "source/keys read twice", has: []program.Kind{program.KindPut}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			return n.attend(n.embed(), heads{q: 4, kv: 4, dim: 16}, both, nil)
		})
		x := n.cross(n.embed(), memory, heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{})
		cache := len(n.G.Caches) - 1
		q := n.reshape(n.linear(n.rms(x), 32), 2, 16)
		a := n.must(n.AttentionShared(q, graph.AttentionAttr{Cache: cache, Scale: 0.25}))
		x = n.add(x, n.linear(n.reshape(a, 32), width))
		return n.head(n.attend(x, heads{q: 2, kv: 2, dim: 8}, graph.AttentionAttr{}, nil))
	}},
	{name: "source/keys of the encoder's own layers", has: []program.Kind{program.KindPut, program.KindElementwise}, build: func(n *net) *graph.Node {
		var early *graph.Node
		memory := n.encoder(func() *graph.Node {
			x := n.embed()
			for n.Layer = 0; n.Layer < 3; n.Layer++ {
				x = n.attend(x, heads{q: 4, kv: 4, dim: 16 - 4*n.Layer}, both, nil)
				if n.Layer == 0 {
					early = x
				}
			}
			n.Layer--
			return n.binary("mul", x, n.unary("sigmoid", x))
		})
		x := n.embed()
		for _, m := range []*graph.Node{early, memory} {
			x = n.cross(n.attend(x, heads{q: 4, kv: 4, dim: 8}, graph.AttentionAttr{}, nil), m, heads{q: 4, kv: 4, dim: 8}, graph.AttentionAttr{})
			n.Layer++
		}
		n.Layer--
		return n.head(x)
	}},
	{name: "source/blocks", has: []program.Kind{program.KindOp, program.KindPut}, build: func(n *net) *graph.Node {
		memory := n.encoder(func() *graph.Node {
			n.Layer = 0
			x := n.embed()
			h := n.rms(x)
			side := n.rms(n.must(n.Add(graph.OpBlockSum, &graph.BlockSumAttr{Size: 4}, nil, h)))
			k, v := n.matrix(quant.F32, 32, width), n.matrix(quant.F32, 24, width)
			product := func(y *graph.Node, w *graph.Weight, d int) *graph.Node {
				return n.reshape(n.must(n.Linear(y, w, nil)), 2, d)
			}
			a := n.must(n.Add(graph.OpBlockAttn, &graph.BlockAttnAttr{Size: 4, Window: 3, Scale: 0.2, Heads: 4, KVHeads: 2, Farthest: 30,
				Relative: n.vector(0, 8, 4), Side: n.vector(0, 6, 4)}, nil,
				n.reshape(n.linear(h, 64), 4, 16), product(h, k, 16), product(h, v, 12), product(side, k, 16), product(side, v, 12)))
			return n.add(x, n.linear(n.reshape(a, 48), width))
		})
		return n.head(n.cross(n.attend(n.embed(), heads{q: 2, kv: 2, dim: 16}, graph.AttentionAttr{}, nil), memory, heads{q: 4, kv: 4, dim: 16}, graph.AttentionAttr{}))
	}},
}
