package graph

import "fmt"

// PoolAttr says how the rows of a sequence become one: How is a name of PoolFuncs.
type PoolAttr struct{ How string }

// PoolFuncs are the ways to summarise the rows x₁ … xₙ of a sequence.
var PoolFuncs = map[string]string{
	"cls": "x₁", "last": "xₙ", "mean": "Σx / n", "max": "the largest of each component", "mean_sqrt": "Σx / √n", "weighted": "Σ t·xₜ / Σ t",
}

func inferPool(a *PoolAttr, x *Node) ([]int, error) {
	if _, ok := PoolFuncs[a.How]; !ok {
		return nil, fmt.Errorf("pool: no way %q; there are cls, last, mean, max, mean_sqrt, weighted", a.How)
	}
	if x.Rows == RowsConst {
		return nil, fmt.Errorf("pool: the value is the same for all tokens")
	}
	return x.Shape, nil
}

// Whole says that a sequence cannot be computed in parts: some row that an
// output needs sees later rows (attention with the full mask, pooling, a shift from ahead, reversed rows).
func Whole(g *Graph) bool {
	live := g.Live()
	for i, n := range g.Nodes {
		if !live[i] {
			continue
		}
		if n.Rows == RowsMemory {
			continue // a source is whole in any case
		}
		if a, ok := n.Attr.(*AttentionAttr); ok && a.Mask == MaskFull && !a.Cross || n.Op == OpPool || n.Op == OpReverse {
			return true
		}
		if a, ok := n.Attr.(*ConvAttr); ok && a.Shift < 0 {
			return true
		}
	}
	return false
}

// Pooled marks the nodes that hold one row for a whole sequence, given for each
// of its tokens alike: what pool makes, and what is computed of that and of
// what is the same for all tokens.
func (g *Graph) Pooled() []bool {
	pooled := make([]bool, len(g.Nodes))
	for i, n := range g.Nodes {
		pooled[i] = n.Op == OpPool
		if n.Op == OpPool || seesOthers(n) {
			continue
		}
		for _, in := range n.In {
			if g.Nodes[in].Rows == RowsConst {
				continue
			}
			if pooled[i] = pooled[in]; !pooled[i] {
				break
			}
		}
	}
	return pooled
}

// seesOthers says that an operation looks at other tokens than its own, through
// a cache: of equal rows it makes rows that differ.
func seesOthers(n *Node) bool {
	_, ok := CacheOf(n)
	return ok
}

// Live marks the nodes that some output depends on. A reader of a shared cache
// depends on the node that fills it.
func (g *Graph) Live() []bool {
	live, read := make([]bool, len(g.Nodes)), map[int]bool{}
	for _, o := range g.Outputs {
		live[o.Node] = true
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		a, ok := g.Nodes[i].Attr.(*AttentionAttr)
		live[i] = live[i] || ok && !a.Shared && read[a.Cache]
		if ok && live[i] {
			read[a.Cache] = true
		}
		if live[i] {
			for _, in := range g.Nodes[i].In {
				live[in] = true
			}
		}
	}
	return live
}

// Select is the graph with the output of that name alone; the nodes are shared
// and keep their ids. ok is false where there is no such output.
func Select(g *Graph, name string) (s *Graph, ok bool) {
	for _, o := range g.Outputs {
		if o.Name == name {
			c := *g
			c.Outputs = []Output{o}
			return &c, true
		}
	}
	return nil, false
}
