package compile

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// heads takes what makes vectors of heads from other values: cuts and joins,
// a matrix a head, norms of a head, rotation. It is asked after the steps that
// do more at once.
func (c *cover) heads(root *graph.Node) bool {
	if root.Rows == graph.RowsConst || c.domain[root.ID] && root.Op == graph.OpRope {
		return false
	}
	h := &headsCover{c: c, root: root, step: &program.Heads{Heads: headCount(root), Out: c.bufs[root.ID]}}
	switch a := root.Attr.(type) {
	case *graph.ConcatAttr:
		h.step.Heads = graph.Product(root.Shape[:a.Axis])
		h.nodes = append(h.nodes, root.ID)
		for _, id := range root.In {
			h.part(c.node(id), c.g.Nodes[id].Width()/h.step.Heads)
		}
	case *graph.SliceAttr:
		if a.Step != 1 {
			return false
		}
		h.step.Heads = graph.Product(root.Shape[:a.Axis])
		h.part(root, root.Width()/h.step.Heads)
	case *graph.DotAttr:
		if c.node(root.In[1]).Rows != graph.RowsConst || len(root.Shape) != 2 {
			return false
		}
		h.part(root, root.Width()/h.step.Heads)
	case *graph.HeadLinearAttr, *graph.RopeAttr:
		h.part(root, root.Width()/h.step.Heads)
	case *graph.NormAttr:
		if a.Groups > 1 || a.Kind == graph.L2 {
			return false
		}
		h.part(root, root.Width()/h.step.Heads)
	default:
		return false
	}
	if len(h.step.Parts) == 0 {
		return false
	}
	c.push(root, program.KindHeads, h.nodes, h.step)
	return true
}

// index takes the choice of positions.
func (c *cover) index(n *graph.Node) bool {
	a, ok := n.Attr.(*graph.IndexAttr)
	if n.Op != graph.OpIndex || !ok {
		return false
	}
	step := &program.Index{Q: c.input(n, n.In[0]), K: c.input(n, n.In[1]), W: c.input(n, n.In[2]), Out: c.bufs[n.ID], Attr: a}
	c.push(n, program.KindIndex, []int{n.ID}, step)
	return true
}

// headCount is the number of vectors along the last axis.
func headCount(n *graph.Node) int {
	if len(n.Shape) == 0 || n.Shape[len(n.Shape)-1] == 0 {
		return 1
	}
	return n.Width() / n.Shape[len(n.Shape)-1]
}

type headsCover struct {
	c     *cover
	root  *graph.Node
	step  *program.Heads
	nodes []int
}

// part walks down from n, dim values of each head, as far as the step goes:
// rotation, scale, norm, matrix, cut. What it ends at is read.
func (h *headsCover) part(n *graph.Node, dim int) {
	p := program.HeadPart{Dim: dim, Width: dim, Stride: dim, M: program.None}
	if dim == 0 {
		return
	}
	for stage := 0; ; n = h.c.node(n.In[0]) {
		next := h.stage(n, &p)
		if next <= stage || n != h.root && !h.c.single(h.root, n.ID) {
			break
		}
		stage = next
		h.nodes = append(h.nodes, n.ID)
		switch a := n.Attr.(type) {
		case *graph.RopeAttr:
			p.Rope = a
		case *graph.UnaryAttr:
			p.Scale = a.A
		case *graph.NormAttr:
			p.Norm = a
		case *graph.HeadLinearAttr:
			p.W, p.Width, p.Stride = a.W, a.W.Shape[2], a.W.Shape[2]
		case *graph.DotAttr:
			d := h.c.g.Nodes[n.In[0]].Shape[1]
			p.M, p.Width, p.Stride = h.c.want(n.In[1]), d, d
		case *graph.SliceAttr:
			in := h.c.g.Nodes[n.In[0]]
			inner := graph.Product(in.Shape[a.Axis+1:])
			p.From, p.Stride = a.From*inner, in.Shape[a.Axis]*inner
		}
	}
	p.In = h.c.input(h.root, n.ID)
	h.step.Parts = append(h.step.Parts, p)
}

// stage says which of the things that a part may do in turn, outermost first,
// node n is; 0 where the part can only read it.
func (h *headsCover) stage(n *graph.Node, p *program.HeadPart) int {
	last := 0
	if len(n.Shape) > 0 {
		last = n.Shape[len(n.Shape)-1]
	}
	switch a := n.Attr.(type) {
	case *graph.RopeAttr:
		if last == p.Dim {
			return 1
		}
	case *graph.UnaryAttr:
		if a.F == "scale" && a.A != 0 && n != h.root {
			return 2
		}
	case *graph.NormAttr:
		if last == p.Dim && a.Groups <= 1 && a.Kind != graph.L2 {
			return 3
		}
	case *graph.HeadLinearAttr:
		if n.Shape[0] == h.step.Heads {
			return 4
		}
	case *graph.DotAttr:
		if len(n.Shape) == 2 && n.Shape[0] == h.step.Heads && h.c.node(n.In[1]).Rows == graph.RowsConst {
			return 4
		}
	case *graph.SliceAttr:
		if a.Step == 1 && graph.Product(n.Shape[:a.Axis]) == h.step.Heads {
			return 5
		}
	}
	return 0
}
