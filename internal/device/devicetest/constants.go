package devicetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// testConstants gives every operation a constant in each input, and in all of
// them: the device must say what it says where the constant is a value of each
// token, however the tokens come.
func (d Device) testConstants(t *testing.T) {
	seen := map[string]bool{}
	for i, c := range slices.Concat(constantPlain, constantKept, constantLater) {
		for _, set := range sets(len(c.in)) {
			t.Run(fmt.Sprintf("%s/%b", c.name, set), func(t *testing.T) { d.testConstant(t, c, uint64(i), set, seen) })
		}
	}
	for _, c := range sourceConstants {
		for _, set := range sets(c.inputs) {
			t.Run(fmt.Sprintf("source/%s/%b", c.name, set), func(t *testing.T) { d.testSourceConstant(t, c, set) })
		}
	}
	t.Run("all operations", func(t *testing.T) { everyInput(t, seen) })
}

// sets are those of one input and of all; of up to three inputs every one.
func sets(n int) (out []int) {
	for set := 1; n <= 3 && set < 1<<n; set++ {
		out = append(out, set)
	}
	if n <= 3 {
		return out
	}
	for i := range n {
		out = append(out, 1<<i)
	}
	return append(out, 1<<n-1)
}

func (d Device) testConstant(t *testing.T, c constantCase, seed uint64, set int, seen map[string]bool) {
	n, y, err := c.net(t, seed, set, false)
	if c.takes != nil && !c.takes(set) {
		if err == nil {
			t.Fatal("this was traced, though it cannot be computed")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	note(n.G, seen)
	other, _, err := c.net(t, seed, set, true)
	if err != nil && c.takes == nil {
		t.Fatal(err)
	} // else constants alone are possible: there is no other to compare
	d.hold(t, n, other)
	if y.Rows == graph.RowsConst { // it may be all that is wanted
		n.finish(y)
		n.ref, n.said = nil, nil
		d.hold(t, n, nil)
	}
}

// hold compares a net on the device with its reference and, bit by bit, with that
// of another one; then the promises of bits.
func (d Device) hold(t *testing.T, n, other *net) {
	t.Helper()
	if other != nil {
		sameReference(t, n, other)
	}
	const tol = 2e-5
	fused := d.open(t, n, compile.Options{})
	want := fused.agree(t, n, tol)
	if whole := graph.Whole(n.G); whole {
		fused.alone(t, want, 0)
		d.cutAt(t, n, want, atOnce)
	} else {
		fused.sameBits(t, n, want)
		d.cutAt(t, n, want, mixed)
	}
	d.open(t, n, compile.Options{NoFusion: true}).agree(t, n, tol)
}

// cutAt runs the program in two stages, wherever it can be cut.
func (d Device) cutAt(t *testing.T, n *net, want rows, steps [][]part) {
	t.Helper()
	for l := 1; l < n.G.Layers; l++ {
		p, err := compile.Fuse(n.G, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := program.Cut(p, l); err != nil {
			if !errors.Is(err, program.ErrCut) {
				t.Error(err)
			}
			continue
		}
		m, s := d.open(t, n, compile.Options{}, l), newTable()
		for _, parts := range steps {
			m.same(t, s, parts, want, fmt.Sprintf("cut before layer %d", l))
		}
	}
}

// sameReference holds the reference of a net against that of another.
func sameReference(t *testing.T, n, other *net) {
	t.Helper()
	steps := mixed
	if graph.Whole(n.G) {
		steps = atOnce
	}
	s := newTable()
	for i, parts := range steps {
		b, _, err := s.batch(parts)
		if err != nil {
			t.Fatal(err)
		}
		got := n.reference(t, i, b)
		for k, w := range other.reference(t, i, b) {
			if err := equal(fmt.Sprintf("the reference, with a constant in place of a value of each token: batch %d, row %d", i, k), got[k], w); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// net is two layers of the operation, with those constants, each made before
// both; spread makes them values of each token instead. y is the second result.
func (c constantCase) net(t *testing.T, seed uint64, set int, spread bool) (n *net, y *graph.Node, err error) {
	n = newNet(t, seed)
	n.Layer = 0
	x := n.embed()
	in := make([]*graph.Node, len(c.in))
	for i, shape := range c.in {
		if set>>i&1 == 0 {
			in[i] = n.reshape(n.linear(x, graph.Product(shape)), shape...)
			continue
		}
		if in[i] = n.constant(shape); spread {
			in[i] = n.spread(in[i], false)
		}
	}
	first, err := c.build(n, in)
	if err != nil {
		return nil, nil, err
	}
	x = n.add(x, n.linear(n.flat(first), width))
	n.Layer = 1
	x = n.attend(x, heads{q: 2, kv: 1, dim: 16}, graph.AttentionAttr{}, nil) // all rows of the first layer are needed
	if y, err = c.build(n, in); err != nil {
		return nil, nil, err
	}
	x = n.add(x, n.linear(n.flat(y), width))
	n.finish(n.head(n.add(x, n.linear(n.flat(first), width))))
	return n, y, nil
}

// constant is a product of constants.
func (n *net) constant(shape []int) *graph.Node {
	p := func() *graph.Node {
		return n.must(n.Param(n.store(quant.F32, n.floats(graph.Product(shape), 0.3, 1), append([]int{1}, shape...)...)))
	}
	return n.reshape(n.binary("mul", p(), n.unary("tanh", p())), shape...)
}

// spread makes a constant a value of each token, or of each of a source's.
func (n *net) spread(x *graph.Node, memory bool) *graph.Node {
	at := n.must(n.Add(graph.OpPositions, &graph.PositionsAttr{Memory: memory}, nil))
	return n.add(x, n.unary("scale", at, 0))
}

// note remembers which inputs of which operations are constants.
func note(g *graph.Graph, seen map[string]bool) {
	for _, n := range g.Nodes {
		for i, id := range n.In {
			if g.Nodes[id].Rows == graph.RowsConst {
				seen[fmt.Sprintf("%s/%d", n.Op, i)] = true
			}
		}
	}
}

// everyInput fails where an operation was never given a constant that it takes.
func everyInput(t *testing.T, seen map[string]bool) {
	refused := map[string]bool{"pool/0": true, "attention_stored/0": true, "block_sum/0": true, "reverse/0": true}
	for i := range 5 {
		refused[fmt.Sprintf("%s/%d", graph.OpBlockAttn, i)] = true
	}
	for op, inputs := range graph.Ops() {
		for i := range max(inputs, -inputs) { // of those with any number, the first
			if at := fmt.Sprintf("%s/%d", op, i); !seen[at] && !refused[at] {
				t.Errorf("no case gives %s a constant", at)
			}
		}
	}
}
