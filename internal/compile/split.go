package compile

import (
	"slices"

	"github.com/inferflow/inferflow/internal/graph"
)

// splitLinears rewrites a linear whose result is only ever cut along its
// output into one linear a cut, over the rows of the weight: fused q, k, v or
// gate and up become separate operands that later passes group again. The
// graph given is not changed: the result is a copy, other says whether it differs.
func splitLinears(g *graph.Graph, uses [][]int) (out *graph.Graph, other bool) {
	ng := *g
	ng.Nodes = append([]*graph.Node{}, g.Nodes...)
	for i, n := range g.Nodes {
		a, ok := n.Attr.(*graph.LinearAttr)
		if n.Op != graph.OpLinear || !ok || len(n.Shape) != 1 || !onlyCut(g, n, uses[i]) {
			continue
		}
		for _, u := range uses[i] {
			s := g.Nodes[u]
			cut := s.Attr.(*graph.SliceAttr)
			m := *s
			m.Op, m.In = graph.OpLinear, n.In
			m.Attr = &graph.LinearAttr{W: cutRows(a.W, cut), B: cutRows(a.B, cut)}
			ng.Nodes[u], other = &m, true
		}
	}
	return &ng, other
}

func onlyCut(g *graph.Graph, n *graph.Node, users []int) bool {
	for _, u := range users {
		s := g.Nodes[u]
		if s.Op != graph.OpSlice || len(s.Shape) != 1 || s.In[0] != n.ID {
			return false
		}
	}
	return len(users) > 0
}

func cutRows(w *graph.Weight, a *graph.SliceAttr) *graph.Weight {
	if w == nil {
		return nil
	}
	shape := append([]int{}, w.Shape...)
	shape[0] = (a.To - a.From + a.Step - 1) / a.Step
	return &graph.Weight{Op: graph.WSlice, Args: []*graph.Weight{w}, Shape: shape, Axis: 0, From: a.From, To: a.To, Step: a.Step, Line: w.Line}
}

// addBiases rewrites the sum of a linear without a bias and a stored vector of
// its width as a linear with that bias: the same sum in the same order. The
// graph is a copy already.
func addBiases(g *graph.Graph, uses [][]int) (out *graph.Graph, other bool) {
	for _, n := range g.Nodes {
		a, ok := n.Attr.(*graph.BinaryAttr)
		if n.Op != graph.OpBinary || !ok || a.F != "add" || len(n.Shape) != 1 {
			continue
		}
		for _, p := range [][2]int{{n.In[0], n.In[1]}, {n.In[1], n.In[0]}} {
			product, vector := g.Nodes[strip(g, p[0])], g.Nodes[strip(g, p[1])]
			l, isLinear := product.Attr.(*graph.LinearAttr)
			v, isParam := vector.Attr.(*graph.ParamAttr)
			if !isLinear || !isParam || l.B != nil || len(uses[product.ID]) != 1 || !plainLinear(product, g) || !slices.Equal(v.W.Shape, n.Shape) || l.W.Shape[0] != n.Shape[0] {
				continue
			}
			m := *n
			m.Op, m.In, m.Attr = graph.OpLinear, product.In, &graph.LinearAttr{W: l.W, B: v.W}
			g.Nodes[n.ID], other = &m, true
			break
		}
	}
	return g, other
}
