package graph

import (
	"fmt"
	"slices"
)

// Validate recomputes every shape and checks every reference, as a graph must
// stand before anything runs it. It is what a graph from another process has to pass.
func Validate(g *Graph) error {
	if err := validateTables(g); err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	for i, n := range g.Nodes {
		if n == nil || n.ID != i {
			return fmt.Errorf("graph: node %d has another id", i)
		}
		if err := validateNode(g, n); err != nil {
			return fmt.Errorf("graph: node %d (%s): %w", i, n.Line, err)
		}
	}
	if len(g.Outputs) == 0 {
		return fmt.Errorf("graph: there is no output")
	}
	for _, o := range g.Outputs {
		if o.Node < 0 || o.Node >= len(g.Nodes) {
			return fmt.Errorf("graph: output %q is node %d, which does not exist", o.Name, o.Node)
		}
	}
	return nil
}

func validateNode(g *Graph, n *Node) error {
	in := make([]*Node, len(n.In))
	for j, id := range n.In {
		if id < 0 || id >= n.ID {
			return fmt.Errorf("input %d is no earlier node", id)
		}
		in[j] = g.Nodes[id]
	}
	if n.Layer < -1 || n.Layer > g.Layers {
		return fmt.Errorf("layer %d lies outside −1 … %d", n.Layer, g.Layers)
	}
	for _, w := range AttrWeights(n.Attr) {
		if err := validateWeight(w); err != nil {
			return err
		}
	}
	shape, rows, err := infer(g, n.Op, n.Attr, n.Shape, in)
	if err != nil {
		return err
	}
	if !slices.Equal(shape, n.Shape) || rows != n.Rows {
		return fmt.Errorf("%s: states the shape %v, computes %v", n.Op, n.Shape, shape)
	}
	return nil
}

func validateTables(g *Graph) error {
	for i, t := range g.Ropes {
		if t == nil || t.Dim < 2 || t.Dim%2 != 0 || len(t.Freq) != t.Dim/2 || t.LongFreq != nil && len(t.LongFreq) != t.Dim/2 {
			return fmt.Errorf("rope table %d: the frequencies do not fit its dimension", i)
		}
		for _, w := range []*Weight{t.Divisors, t.LongDiv} {
			if err := expect("rope table: divisors", w, t.Dim/2); err != nil {
				return err
			}
			if err := validateWeight(w); err != nil {
				return err
			}
		}
	}
	for i, c := range g.Caches {
		if c.Heads < 0 || c.KeyDim < 0 || c.ValueDim < 0 || c.Window < 0 || c.Size < 0 || c.Layer < -1 || c.Layer > g.Layers {
			return fmt.Errorf("cache %d: a size is negative", i)
		}
	}
	return nil
}

// validateWeight recomputes the shapes of an expression, innermost first.
func validateWeight(w *Weight) error {
	if w == nil {
		return nil
	}
	for _, a := range w.Args {
		if a == nil {
			return fmt.Errorf("weight %s: an argument is missing", w.Op)
		}
		if err := validateWeight(a); err != nil {
			return err
		}
	}
	shape, err := weightShape(w)
	if err != nil {
		return err
	}
	if !slices.Equal(shape, w.Shape) {
		return fmt.Errorf("weight %v: states the shape %v, computes %v", w, w.Shape, shape)
	}
	for _, d := range shape {
		if d < 0 {
			return fmt.Errorf("weight %v: the shape %v is negative", w, shape)
		}
	}
	return nil
}

// AttrWeights lists the weights of an operation's attributes, none of them nil.
func AttrWeights(attr any) []*Weight {
	var list []*Weight
	add := func(ws ...*Weight) {
		for _, w := range ws {
			if w != nil {
				list = append(list, w)
			}
		}
	}
	switch a := attr.(type) {
	case *EmbedAttr:
		add(a.Table)
	case *ParamAttr:
		add(a.W)
	case *LinearAttr:
		add(a.W, a.B)
	case *NormAttr:
		add(a.W, a.B)
	case *AttentionAttr:
		add(a.Sinks)
	case *RouteAttr:
		add(a.Bias, a.PerExpert)
	case *ExpertsAttr:
		add(a.Gate, a.Up, a.Down, a.GateBias, a.UpBias, a.DownBias)
	}
	return list
}
