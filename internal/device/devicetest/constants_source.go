package devicetest

import (
	"testing"

	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

// given picks input i, of that shape: a constant, or a product of x.
type given func(i int, x *graph.Node, shape ...int) *graph.Node

// sourceConstant is an operation of an encoder, or of what reads its memory.
type sourceConstant struct {
	name    string
	inputs  int
	encodes bool
	build   func(n *net, x, memory *graph.Node, in given) *graph.Node
}

var sourceConstants = []sourceConstant{
	{name: "attention", inputs: 3, encodes: true, build: func(n *net, x, _ *graph.Node, in given) *graph.Node {
		return n.must(n.Attention(in(0, x, 4, 16), in(1, x, 2, 16), in(2, x, 2, 16), full))
	}},
	{name: "rope", inputs: 1, encodes: true, build: func(n *net, x, _ *graph.Node, in given) *graph.Node {
		return n.rope(in(0, x, 4, 16), graph.RopeAttr{Table: n.table(16)})
	}},
	{name: "experts", inputs: 2, encodes: true, build: func(n *net, x, _ *graph.Node, in given) *graph.Node {
		return n.mixture(in(0, x, width), in(1, x, width), quant.F32, nil)
	}},
	{name: "cross attention", inputs: 3, build: func(n *net, x, memory *graph.Node, in given) *graph.Node {
		return n.must(n.Attention(in(0, x, 4, 16), in(1, memory, 2, 16), in(2, memory, 2, 16), causal))
	}},
	{name: "cross attention, shared", inputs: 4, build: func(n *net, x, memory *graph.Node, in given) *graph.Node {
		a := n.must(n.Attention(in(0, x, 4, 16), in(1, memory, 2, 16), in(2, memory, 2, 16), causal))
		read := causal
		read.Cache = a.Attr.(*graph.AttentionAttr).Cache
		return n.add(a, n.must(n.AttentionShared(in(3, x, 4, 16), read)))
	}},
}

func (d Device) testSourceConstant(t *testing.T, c sourceConstant, set int) {
	var said []rows
	for _, spread := range []bool{false, true} {
		n := newNet(t, 5)
		c.finish(n, set, spread)
		m := d.open(t, n, compile.Options{})
		got := m.agree(t, n, 2e-5)
		if !graph.Whole(n.G) {
			m.sameBits(t, n, got)
		}
		d.open(t, n, compile.Options{NoFusion: true}).agree(t, n, 2e-5)
		said = append(said, got)
	}
	for at, want := range said[1] {
		if err := near("a constant in place of a value of each token", [][]float32{said[0][at]}, [][]float32{want}, 2e-5); err != nil {
			t.Fatal(at, err)
		}
	}
}

// finish builds an encoder and a decoder with the operation in one of them.
func (c sourceConstant) finish(n *net, set int, spread bool) {
	in := func(i int, x *graph.Node, shape ...int) *graph.Node {
		if set>>i&1 == 0 {
			return n.reshape(n.linear(x, graph.Product(shape)), shape...)
		}
		y := n.constant(shape)
		if spread {
			y = n.spread(y, x.Rows == graph.RowsMemory)
		}
		return y
	}
	n.Layer = 0
	memory := n.encoder(func() *graph.Node {
		x := n.embed()
		if c.encodes {
			x = n.add(x, n.linear(n.flat(c.build(n, x, nil, in)), width))
		}
		return n.rms(x)
	})
	x := n.embed()
	if c.encodes {
		x = n.cross(x, memory, heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{})
	} else {
		x = n.add(x, n.linear(n.flat(c.build(n, x, memory, in)), width))
	}
	n.finish(n.head(x))
}
