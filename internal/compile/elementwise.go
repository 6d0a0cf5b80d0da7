package compile

import (
	"slices"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// maxCode bounds a fused chain, so that its registers stay in the first cache.
const maxCode = 24

// elementwise takes a tree of simple operations whose inner values have one user.
func (c *cover) elementwise(root *graph.Node) bool {
	if !simple(root) || root.Rows == graph.RowsConst {
		return false
	}
	e := &elementwise{c: c, root: root, step: &program.Elementwise{Width: root.Width(), Out: c.bufs[root.ID], Code: c.code[:0]}}
	if _, ok := e.value(root.ID, root.Shape, true); !ok {
		return false
	}
	for i, id := range e.loads {
		e.step.Code[i].Buf = c.input(root, id)
	}
	c.code, e.step.Code = e.step.Code, slices.Clone(e.step.Code)
	c.push(root, program.KindElementwise, e.nodes, e.step)
	return true
}

func simple(n *graph.Node) bool {
	return n.Op == graph.OpUnary || n.Op == graph.OpBinary || n.Op == graph.OpWhere
}

type elementwise struct {
	c     *cover
	root  *graph.Node
	step  *program.Elementwise
	nodes []int
	loads map[int]int // instruction → node
	regs  int
	ops   int // an instruction each, at the end
}

func (e *elementwise) add(in program.Instr) (int, bool) {
	in.Dst = e.regs
	e.regs++
	e.step.Code = append(e.step.Code, in)
	return in.Dst, len(e.step.Code) <= maxCode
}

// value emits code for node id, which is spread over shape, and returns its
// register. A value as wide as the root keeps its order under another shape.
func (e *elementwise) value(id int, shape []int, top bool) (int, bool) {
	orig := e.c.g.Nodes[id]
	n := e.c.node(id)
	reshaped := n.ID != orig.ID && !same(orig.Shape, n.Shape)
	if !top && (reshaped && n.Width() != e.root.Width() || !simple(n) || !e.c.single(e.root, n.ID)) {
		return e.load(orig, n, shape)
	}
	if reshaped {
		shape = n.Shape
	}
	if e.ops++; e.ops > maxCode { // now, and not at the bottom of a long chain
		return 0, false
	}
	e.nodes = append(e.nodes, n.ID)
	var args [3]int
	for i, in := range n.In {
		r, ok := e.value(in, shape, false)
		if !ok {
			return 0, false
		}
		args[i] = r
	}
	in := program.Instr{Args: len(n.In), A: args[0], B: args[1], C: args[2]}
	switch a := n.Attr.(type) {
	case *graph.UnaryAttr:
		in.Op, in.P, in.Q = a.F, a.A, a.B
	case *graph.BinaryAttr:
		in.Op = a.F
	default:
		in.Op = "where"
	}
	return e.add(in)
}

// load reads a value with broadcast over shape.
func (e *elementwise) load(orig, n *graph.Node, shape []int) (int, bool) {
	if k, ok := n.Attr.(*graph.ConstAttr); ok && len(k.Values) == 1 {
		return e.add(program.Instr{Op: "const", P: k.Values[0]})
	}
	div, mod, ok := spread(orig.Shape, shape)
	if !ok {
		return 0, false
	}
	if e.loads == nil {
		e.loads = map[int]int{}
	}
	from, at, through := e.c.source(n.ID)
	e.loads[len(e.step.Code)] = from
	e.nodes = append(e.nodes, through...)
	return e.add(program.Instr{Op: "load", Div: div, Mod: mod, At: at})
}

// spread finds div and mod with which value i of shape out reads value
// (i / div) mod mod of shape in, if its dimensions of one allow that.
func spread(in, out []int) (div, mod int, ok bool) {
	if len(in) > len(out) {
		return 0, 0, false
	}
	div, mod = 1, graph.Product(in)
	i, o := len(in)-1, len(out)-1
	for ; i >= 0 && in[i] == 1 && mod > 1; i, o = i-1, o-1 {
		div *= out[o]
	}
	for ; i >= 0 && in[i] == out[o]; i, o = i-1, o-1 {
	}
	for ; i >= 0; i-- {
		if in[i] != 1 {
			return 0, 0, false
		}
	}
	return div, max(1, mod), true
}

func same(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
