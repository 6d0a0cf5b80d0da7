package compile

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// embed takes a table read by token id or position, and a scale that follows it.
func (c *cover) embed(n *graph.Node) bool {
	e, scale, nodes := n, 1.0, []int{n.ID}
	if a, ok := n.Attr.(*graph.UnaryAttr); ok && a.F == "scale" {
		e, scale = c.node(n.In[0]), a.A
		if !c.single(n, e.ID) {
			return false
		}
		nodes = append(nodes, e.ID)
	}
	if e.Op != graph.OpEmbed || c.domain[n.ID] {
		return false
	}
	a, index := e.Attr.(*graph.EmbedAttr), c.node(e.In[0])
	at, byPosition := index.Attr.(*graph.PositionsAttr)
	if e.Width() != a.Table.Cols() || index.Op != graph.OpTokens && index.Op != graph.OpTypes && !byPosition {
		return false
	}
	step := &program.Embed{Table: a.Table, Guard: a.Guard, Lead: a.Lead, Scale: scale, Out: c.bufs[n.ID], At: at, Types: index.Op == graph.OpTypes}
	if byPosition || step.Types {
		nodes = append(nodes, index.ID)
	}
	c.push(n, program.KindEmbed, nodes, step)
	return true
}

// preNorm returns the value that a fused norm reads and the norm, or id itself.
// The norm may open several steps: each computes it again.
func (c *cover) preNorm(root *graph.Node, id int) (int, *graph.NormAttr, []int) {
	n := c.node(id)
	a, ok := n.Attr.(*graph.NormAttr)
	if n.Op != graph.OpNorm || !ok || !wholeRow(c.g, n, a) || c.need[n.ID] && c.domain[n.ID] == c.domain[root.ID] {
		return n.ID, nil, nil // a value that is made in any case is read
	}
	return c.strip(n.In[0]), a, []int{n.ID}
}

// wholeRow says that the norm is over all of a row's values.
func wholeRow(g *graph.Graph, n *graph.Node, a *graph.NormAttr) bool {
	return n.Shape[len(n.Shape)-1] == n.Width() && a.Groups <= 1 && (a.W == nil || a.W.Cols() == n.Width()) && a.Kind != graph.L2
}

// tail is what follows a product: collected from the root downwards.
type tail struct {
	epi   program.Epilogue
	nodes []int
	inner *graph.Node // the product itself
	resid int         // node id of the residual, −1
}

// tail walks from root down to a product through residual, softcap, scale and
// activation, as far as each has a single user.
func (c *cover) tail(root *graph.Node, product func(*graph.Node) bool) (tail, bool) {
	t := tail{resid: -1, inner: root}
	t.epi.Residual = program.None
	n := root
	down := func(id int) {
		t.nodes = append(t.nodes, n.ID)
		n = c.node(id)
	}
	if r, branch, ok := c.residual(n); ok {
		t.resid = r
		down(branch)
	}
	if a, ok := unaryOf(n, "softcap"); ok && c.single(root, c.strip(n.In[0])) {
		t.epi.Softcap = a.A
		down(n.In[0])
	}
	if a, ok := unaryOf(n, "scale"); ok && a.A != 0 && c.single(root, c.strip(n.In[0])) {
		t.epi.Scale = a.A
		down(n.In[0])
	}
	if a, ok := n.Attr.(*graph.UnaryAttr); ok && n.Op == graph.OpUnary && c.single(root, c.strip(n.In[0])) {
		t.epi.Act = a
		down(n.In[0])
	}
	t.inner = n
	t.nodes = append(t.nodes, n.ID)
	return t, product(n)
}

func unaryOf(n *graph.Node, f string) (*graph.UnaryAttr, bool) {
	a, ok := n.Attr.(*graph.UnaryAttr)
	return a, ok && n.Op == graph.OpUnary && a.F == f
}

// residual splits x + branch. Of two candidates the later node is the branch.
func (c *cover) residual(n *graph.Node) (resid, branch int, ok bool) {
	a, isBin := n.Attr.(*graph.BinaryAttr)
	if n.Op != graph.OpBinary || !isBin || a.F != "add" {
		return 0, 0, false
	}
	x, y := c.strip(n.In[0]), c.strip(n.In[1])
	if x == y || c.g.Nodes[x].Rows == graph.RowsConst || c.g.Nodes[y].Rows == graph.RowsConst || !c.allWide(n, x, y) {
		return 0, 0, false
	}
	for _, p := range [][2]int{{max(x, y), min(x, y)}, {min(x, y), max(x, y)}} {
		if c.single(n, p[0]) && c.productLike(c.g.Nodes[p[0]]) {
			return p[1], p[0], true
		}
	}
	return 0, 0, false
}

// allWide says that values are as wide as n, so that n pairs them one by one:
// [8, 1] and [1, 8] are equally wide and broadcast to 64.
func (c *cover) allWide(n *graph.Node, ids ...int) bool {
	for _, id := range ids {
		if c.g.Nodes[id].Width() != n.Width() {
			return false
		}
	}
	return true
}

// productLike says whether a node ends in a product that takes a residual.
func (c *cover) productLike(n *graph.Node) bool {
	for n.Op == graph.OpUnary && len(c.uses[c.strip(n.In[0])]) == 1 {
		n = c.node(n.In[0])
	}
	return n.Op == graph.OpLinear || n.Op == graph.OpExperts || n.Op == graph.OpNorm
}

// linear takes a product with what stands before and after it.
func (c *cover) linear(root *graph.Node) bool {
	t, ok := c.tail(root, func(n *graph.Node) bool { return plainLinear(n, c.g) })
	if ok {
		a := t.inner.Attr.(*graph.LinearAttr)
		c.pushLinear(root, t, &program.Linear{W: a.W, B: a.B}, t.inner.In[0])
		return true
	}
	return c.gated(root)
}

// plainLinear: one product over the whole row, not one a head.
func plainLinear(n *graph.Node, g *graph.Graph) bool {
	a, ok := n.Attr.(*graph.LinearAttr)
	return n.Op == graph.OpLinear && ok && len(a.W.Shape) == 2 && g.Nodes[n.In[0]].Width() == a.W.Cols()
}

func (c *cover) pushLinear(root *graph.Node, t tail, l *program.Linear, x int) {
	in, norm, nodes := c.preNorm(root, x)
	l.PreNorm, l.Epi, l.Out = norm, t.epi, c.bufs[root.ID]
	l.In = c.input(root, in)
	if t.resid >= 0 {
		l.Epi.Residual = c.input(root, t.resid)
	}
	c.push(root, program.KindLinear, append(t.nodes, nodes...), l)
}

// gated takes act(gate) ⊙ up, two products of one value.
func (c *cover) gated(root *graph.Node) bool {
	a, ok := root.Attr.(*graph.BinaryAttr)
	if root.Op != graph.OpBinary || !ok || a.F != "mul" {
		return false
	}
	for _, p := range [][2]int{{root.In[0], root.In[1]}, {root.In[1], root.In[0]}} {
		act, up := c.node(p[0]), c.node(p[1])
		u, isUnary := act.Attr.(*graph.UnaryAttr)
		if act.Op != graph.OpUnary || !isUnary || !c.single(root, act.ID) || !c.single(root, up.ID) || !c.allWide(root, act.ID, up.ID) {
			continue
		}
		gate := c.node(act.In[0])
		if !c.single(root, gate.ID) || !plainLinear(gate, c.g) || !plainLinear(up, c.g) || c.strip(gate.In[0]) != c.strip(up.In[0]) {
			continue
		}
		g, w := gate.Attr.(*graph.LinearAttr), up.Attr.(*graph.LinearAttr)
		t := tail{resid: -1, nodes: []int{root.ID, act.ID, gate.ID, up.ID}, epi: program.Epilogue{Act: u, Residual: program.None}}
		c.pushLinear(root, t, &program.Linear{W: g.W, B: g.B, Up: w.W, UpB: w.B}, gate.In[0])
		return true
	}
	return false
}

// norm takes a norm over whole rows, or groups of them, or to length one, with
// a scale and a residual after it.
func (c *cover) norm(root *graph.Node) bool {
	t, ok := c.tail(root, func(n *graph.Node) bool {
		a, is := n.Attr.(*graph.NormAttr)
		return n.Op == graph.OpNorm && is && n.Rows != graph.RowsConst && (wholeRow(c.g, n, a) || a.Groups > 1 || a.Kind == graph.L2)
	})
	if !ok || t.epi.Act != nil || t.epi.Softcap != 0 {
		return false
	}
	a := t.inner.Attr.(*graph.NormAttr)
	s := &program.Norm{Norm: a, Residual: program.None, Scale: t.epi.Scale, Out: c.bufs[root.ID]}
	if part := t.inner.Shape[len(t.inner.Shape)-1] / max(1, a.Groups); part != t.inner.Width() {
		s.Part = part
	}
	s.In = c.input(root, t.inner.In[0])
	if t.resid >= 0 {
		s.Residual = c.input(root, t.resid)
	}
	c.push(root, program.KindNorm, t.nodes, s)
	return true
}
