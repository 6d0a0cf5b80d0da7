package compile

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// moe takes router, choice and experts with what stands before and after.
func (c *cover) moe(root *graph.Node) bool {
	t, ok := c.tail(root, func(n *graph.Node) bool { return n.Op == graph.OpExperts })
	if !ok || t.epi.Act != nil || t.epi.Softcap != 0 {
		return false
	}
	x, route := t.inner.In[0], c.node(t.inner.In[1])
	if !c.single(root, route.ID) {
		return false
	}
	router := c.node(route.In[0])
	if !plainLinear(router, c.g) || !c.single(root, router.ID) {
		return false
	}
	m := &program.MoE{Router: router.Attr.(*graph.LinearAttr), Route: route.Attr.(*graph.RouteAttr),
		Experts: t.inner.Attr.(*graph.ExpertsAttr), Epi: t.epi, Out: c.bufs[root.ID], RouterIn: program.None}
	nodes := append(t.nodes, route.ID, router.ID)
	in := c.strip(x)
	if c.strip(router.In[0]) == in {
		var more []int
		in, m.PreNorm, more = c.preNorm(root, x)
		nodes = append(nodes, more...)
	} else {
		m.RouterIn = c.input(root, router.In[0])
	}
	m.In = c.input(root, in)
	if t.resid >= 0 {
		m.Epi.Residual = c.input(root, t.resid)
	}
	c.push(root, program.KindMoE, nodes, m)
	return true
}
