package activations

import (
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
)

// point is a place where a value of the graph can be held against one of the
// reference's.
type point struct {
	name  string // of the reference's value
	call  int    // of its module, from 1
	node  int    // whose value it is, behind any reshapes
	asked int    // the node whose name it is: the same, or one that reads it
	pick  []int  // the reference's columns that it has; nil: all
}

// points lists them in the order in which the graph computes: outputs of
// named nodes, their inputs, outputs of layers, and the graph's own.
func points(g *graph.Graph) []point {
	var list []point
	calls := map[string]int{}
	parts := map[string]*graph.Node{}
	for _, n := range g.Nodes {
		name := nameOf(n)
		if name == "" {
			continue
		}
		pick := columns(n)
		if first := parts[name]; pick == nil || first == nil || !sameCall(first, n) {
			calls[name]++
			parts[name] = n
		}
		if len(n.In) > 0 && n.Op != graph.OpEmbed {
			list = append(list, point{name + ":in", calls[name], source(g, n.In[0]), n.ID, nil})
		}
		list = append(list, point{name, calls[name], n.ID, n.ID, pick})
	}
	for _, o := range append(slices.Clone(g.Named), g.Outputs...) {
		list = append(list, point{o.Name, 1, source(g, o.Node), o.Node, nil})
	}
	list = append(list, layerOutputs(g)...)
	slices.SortStableFunc(list, func(a, b point) int { return a.node - b.node })
	return list
}

// sameCall says that two nodes are parts of one module's output: rows of one
// weight, of one input.
func sameCall(a, b *graph.Node) bool { return len(a.In) > 0 && len(b.In) > 0 && a.In[0] == b.In[0] }

// nameOf is the name of the module whose output the node is.
func nameOf(n *graph.Node) string {
	if n.Op == graph.OpParam {
		return ""
	}
	if n.Name != "" {
		return n.Name
	}
	a, ok := n.Attr.(*graph.ExpertsAttr)
	if !ok {
		return ""
	}
	names := a.Up.Tensors(nil)
	if len(names) == 0 {
		return ""
	}
	parts := strings.Split(names[0], ".")
	for i, p := range parts {
		if _, err := strconv.Atoi(p); err == nil && i > 0 && strings.HasPrefix(parts[i-1], "experts") {
			return strings.Join(parts[:i], ".")
		}
	}
	return strings.Join(parts[:len(parts)-1], ".")
}

// source is the node behind reshapes, which change no value.
func source(g *graph.Graph, id int) int {
	for g.Nodes[id].Op == graph.OpReshape {
		id = g.Nodes[id].In[0]
	}
	return id
}

// columns are the outputs of the whole module that a linear over rows of its
// weight gives; nil where it gives all.
func columns(n *graph.Node) []int {
	a, ok := n.Attr.(*graph.LinearAttr)
	if !ok || a.W.Op != graph.WSlice || a.W.Axis != 0 {
		return nil
	}
	cols := make([]int, a.W.Shape[0])
	for i := range cols {
		cols[i] = i
	}
	for w := a.W; w.Op == graph.WSlice && w.Axis == 0; w = w.Args[0] {
		for i, c := range cols {
			cols[i] = w.From + c*w.Step
		}
	}
	return cols
}

// layerOutputs names the value that a layer hands on after what the names in
// it have in common, as "model.layers.3".
func layerOutputs(g *graph.Graph) []point {
	last := make([]int, g.Layers) // the node that later layers read, −1: several
	names := make([][]string, g.Layers)
	for _, n := range g.Nodes {
		if l := n.Layer; l >= 0 && l < g.Layers {
			if name := nameOf(n); name != "" {
				names[l] = append(names[l], name)
			}
		}
		for _, id := range n.In {
			from := source(g, id)
			l := g.Nodes[from].Layer
			if l < 0 || l >= g.Layers || n.Layer <= l {
				continue
			}
			if last[l] != 0 && last[l] != from {
				from = -1
			}
			last[l] = from
		}
	}
	var list []point
	for l, from := range last {
		if prefix := commonPrefix(names[l]); from > 0 && prefix != "" {
			list = append(list, point{prefix, 1, from, from, nil})
		}
	}
	return list
}

// commonPrefix is the dotted beginning that ends in a number and that all names share.
func commonPrefix(names []string) string {
	if len(names) < 2 {
		return ""
	}
	common := strings.Split(names[0], ".")
	for _, n := range names[1:] {
		parts := strings.Split(n, ".")
		k := 0
		for k < len(common) && k < len(parts) && common[k] == parts[k] {
			k++
		}
		common = common[:k]
	}
	for k := len(common); k > 0; k-- {
		if _, err := strconv.Atoi(common[k-1]); err == nil {
			return strings.Join(common[:k], ".")
		}
	}
	return ""
}
