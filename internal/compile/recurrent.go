package compile

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// recurrent takes an operation with a state: a convolution with the activation
// after it, a scan, a linear attention, or a delta rule with what makes its q and k unit vectors.
// Parts of wider values are read where they lie.
func (c *cover) recurrent(root *graph.Node) bool {
	n, act := root, (*graph.UnaryAttr)(nil)
	if a, ok := n.Attr.(*graph.UnaryAttr); ok && n.Op == graph.OpUnary && c.node(n.In[0]).Op == graph.OpConv1D && c.single(root, c.strip(n.In[0])) {
		n, act = c.node(n.In[0]), a
	}
	switch a := n.Attr.(type) {
	case *graph.ConvAttr:
		nodes := []int{n.ID}
		if act != nil {
			nodes = []int{root.ID, n.ID}
		}
		in, more := c.view(root, n.In[0])
		s := &program.Conv1D{In: in, Kernel: program.None, Attr: a, Act: act, Out: c.bufs[root.ID]}
		c.push(root, program.KindConv1D, append(nodes, more...), s)
		if a.Taps > 0 {
			s.Kernel = c.want(n.In[1])
		}
	case *graph.ScanAttr:
		b := c.g.Nodes[n.In[1]].Shape
		c.pushRecurrent(n, &program.Recurrent{Scan: a, Groups: b[0], Size: b[1], PerChannel: len(c.g.Nodes[n.In[4]].Shape) == 2})
	case *graph.DeltaAttr:
		q := c.g.Nodes[n.In[0]].Shape
		c.pushRecurrent(n, &program.Recurrent{Delta: a, Groups: q[0], Size: q[1], PerChannel: len(c.g.Nodes[n.In[3]].Shape) == 2})
	case *graph.LinearAttentionAttr:
		c.linearAttention(n, a)
	default:
		return false
	}
	return true
}

func (c *cover) linearAttention(n *graph.Node, a *graph.LinearAttentionAttr) {
	_, _, q, _, _, u := a.Inputs()
	wide := func(i int) bool { return i >= 0 && len(c.g.Nodes[n.In[i]].Shape) == 2 }
	r := &program.Recurrent{Linear: a, Groups: 1, Size: 1, PerChannel: wide(1), BonusPerChannel: wide(u)}
	if a.Keys {
		k := c.g.Nodes[n.In[q]].Shape
		r.Groups, r.Size = k[0], k[1]
	}
	c.pushRecurrent(n, r)
}

func (c *cover) pushRecurrent(n *graph.Node, r *program.Recurrent) {
	nodes := []int{n.ID}
	r.Heads, r.Width, r.Out = n.Shape[0], n.Shape[1], c.bufs[n.ID]
	for i, id := range n.In {
		if r.Delta != nil && i < 2 {
			var more []int
			r.Unit[i], id, more = c.unit(n, id, r.Size)
			nodes = append(nodes, more...)
		}
		v, more := c.view(n, id)
		r.In, nodes = append(r.In, v), append(nodes, more...)
	}
	c.push(n, program.KindRecurrent, nodes, r)
}

// unit walks down through a scale and a norm to length one over parts of size
// values, as far as nobody else reads them.
func (c *cover) unit(root *graph.Node, id, size int) (u program.Unit, in int, nodes []int) {
	n := c.node(id)
	if a, ok := unaryOf(n, "scale"); ok && a.A != 0 && c.single(root, n.ID) {
		u.Scale = a.A
		nodes = append(nodes, n.ID)
		id, n = n.In[0], c.node(n.In[0])
	}
	a, ok := n.Attr.(*graph.NormAttr)
	if ok && n.Op == graph.OpNorm && a.Kind == graph.L2 && a.Groups <= 1 && a.W == nil && a.B == nil && n.Shape[len(n.Shape)-1] == size && c.single(root, n.ID) {
		u.Norm, u.Eps = true, a.Eps
		nodes = append(nodes, n.ID)
		id = n.In[0]
	}
	return u, id, nodes
}

// view is the value as a run of a row that some step writes: slices that keep
// their values side by side are looked through.
func (c *cover) view(root *graph.Node, id int) (program.View, []int) {
	from, at, nodes := c.source(id)
	return program.View{Buf: c.input(root, from), At: at, Width: c.g.Nodes[id].Width()}, nodes
}

// source is the value that holds id as a run of its row, from value at on; nodes
// are the slices between them. One that another step needs is a value of its own.
func (c *cover) source(id int) (from, at int, nodes []int) {
	id = c.strip(id)
	for !c.need[id] {
		a, ok := c.g.Nodes[id].Attr.(*graph.SliceAttr)
		if !ok {
			break
		}
		shape := c.g.Nodes[c.g.Nodes[id].In[0]].Shape
		if a.Step != 1 || graph.Product(shape[:a.Axis]) != 1 {
			break
		}
		nodes = append(nodes, id)
		at += a.From * graph.Product(shape[a.Axis+1:])
		id = c.strip(c.g.Nodes[id].In[0])
	}
	return id, at, nodes
}
