package graph

import (
	"fmt"
	"slices"
)

// Validate recomputes every shape and checks every reference, as a graph must
// stand before anything runs it. It is what a graph from another process has to pass.
func Validate(g *Graph) error {
	c := &checker{g: g, sizes: map[*Weight]int{}}
	if err := c.tables(); err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	for i, n := range g.Nodes {
		if n == nil || n.ID != i {
			return fmt.Errorf("graph: node %d has another id", i)
		}
		if err := c.node(n); err != nil {
			return fmt.Errorf("graph: node %d (%s): %w", i, n.Line, err)
		}
	}
	if err := checkLead(g); err != nil {
		return err
	}
	if len(g.Outputs) == 0 {
		return fmt.Errorf("graph: there is no output")
	}
	for _, o := range g.Outputs {
		if o.Node < 0 || o.Node >= len(g.Nodes) {
			return fmt.Errorf("graph: output %q is node %d, which does not exist", o.Name, o.Node)
		}
	}
	for _, o := range g.Named {
		if o.Node < 0 || o.Node >= len(g.Nodes) {
			return fmt.Errorf("graph: the value %q is node %d, which does not exist", o.Name, o.Node)
		}
	}
	return nil
}

// Limits of a graph: far beyond any model, and small enough that no sum of
// sizes overflows and no expression takes forever to walk.
const (
	maxValues   = 1 << 40 // of one row or weight
	maxExprSize = 1 << 16 // operations of one weight expression, shared ones counted each time
	maxExprs    = 1 << 24 // of all expressions together
)

type checker struct {
	g     *Graph
	sizes map[*Weight]int // checked expressions
	total int

	in      []*Node   // of the node at hand
	weights []*Weight // as well

	work, values float64 // of what is the same for all tokens
	token        float64 // products of a token that no weight bounds
}

func (c *checker) node(n *Node) error {
	g := c.g
	in := slices.Grow(c.in[:0], len(n.In))[:len(n.In)]
	c.in = in
	for j, id := range n.In {
		if id < 0 || id >= n.ID {
			return fmt.Errorf("input %d is no earlier node", id)
		}
		in[j] = g.Nodes[id]
	}
	if n.Layer < -1 || n.Layer > g.Layers {
		return fmt.Errorf("layer %d lies outside −1 … %d", n.Layer, g.Layers)
	}
	if err := checkSize(n.Shape); err != nil {
		return err
	}
	c.weights = appendWeights(c.weights[:0], n.Attr)
	for _, w := range c.weights {
		if err := c.weight(w); err != nil {
			return err
		}
	}
	shape, rows, err := infer(g, n.Op, n.Attr, n.Shape, in)
	if err != nil {
		return err
	}
	if !slices.Equal(shape, n.Shape) || rows != n.Rows {
		return fmt.Errorf("%s: states the shape %v, computes %v", Written(n.Op, n.Attr), n.Shape, shape)
	}
	if n.Rows != RowsConst {
		return c.ofToken(n, in)
	}
	return c.fixed(n, in)
}

// checkSize refuses negative dimensions and absurd products.
func checkSize(shape []int) error {
	p := 1
	for _, d := range shape {
		if d < 0 || d > maxValues || p > maxValues {
			return fmt.Errorf("the shape %v is no size", shape)
		}
		if d > 0 && p > maxValues/d {
			return fmt.Errorf("the shape %v is too large", shape)
		}
		p *= d
	}
	return nil
}

func (c *checker) tables() error {
	g := c.g
	if g.Layers < 0 || g.Vocab < 0 {
		return fmt.Errorf("%d layers, %d rows of the vocabulary", g.Layers, g.Vocab)
	}
	for i, t := range g.Ropes {
		if t == nil || t.Dim < 2 || t.Dim%2 != 0 || len(t.Freq) != t.Dim/2 || t.LongFreq != nil && len(t.LongFreq) != t.Dim/2 {
			return fmt.Errorf("rope table %d: the frequencies do not fit its dimension", i)
		}
		for _, w := range []*Weight{t.Divisors, t.LongDiv} {
			if err := expect("rope table: divisors", w, t.Dim/2); err != nil {
				return err
			}
			if err := c.weight(w); err != nil {
				return err
			}
		}
	}
	for i, c := range g.Caches {
		if c.Heads < 0 || c.KeyDim < 0 || c.ValueDim < 0 || c.Window < 0 || c.First < 0 || c.Size < 0 || c.Layer < -1 || c.Layer > g.Layers {
			return fmt.Errorf("cache %d: a size is negative", i)
		}
	}
	return nil
}

// weight checks an expression of an attribute and counts it.
func (c *checker) weight(w *Weight) error {
	if w == nil {
		return nil
	}
	n, err := c.expr(w)
	if c.total += n; err == nil && c.total > maxExprs {
		err = fmt.Errorf("the weight expressions are too many")
	}
	return err
}

// expr recomputes the shapes of an expression, innermost first, and returns
// its size.
func (c *checker) expr(w *Weight) (int, error) {
	if w.Op == WTensor && len(w.Args)+len(w.Names) == 0 {
		return 1, checkSize(w.Shape) // leaves are many: not worth remembering
	}
	if n, ok := c.sizes[w]; ok {
		return n, nil
	}
	size := 1 + len(w.Names)
	for _, a := range w.Args {
		if a == nil {
			return 0, fmt.Errorf("weight %s: an argument is missing", w.Op)
		}
		n, err := c.expr(a)
		if err != nil {
			return 0, err
		}
		if size += n; size > maxExprSize {
			return 0, fmt.Errorf("weight %s: the expression has more than %d operations", w.Op, maxExprSize)
		}
	}
	if err := checkSize(w.Shape); err != nil {
		return 0, fmt.Errorf("weight %s: %w", w.Op, err)
	}
	shape, err := weightShape(w)
	if err != nil {
		return 0, err
	}
	if !slices.Equal(shape, w.Shape) {
		return 0, fmt.Errorf("weight %s: states the shape %v, computes %v", w.Op, w.Shape, shape)
	}
	c.sizes[w] = size
	return size, nil
}

// AttrWeights lists the weights of an operation's attributes, none of them nil.
func AttrWeights(attr any) []*Weight { return appendWeights(nil, attr) }

func appendWeights(list []*Weight, attr any) []*Weight {
	add := func(ws ...*Weight) {
		for _, w := range ws {
			if w != nil {
				list = append(list, w)
			}
		}
	}
	switch a := attr.(type) {
	case *EmbedAttr:
		add(a.Table, a.Lead)
	case *ParamAttr:
		add(a.W)
	case *LinearAttr:
		add(a.W, a.B)
	case *NormAttr:
		add(a.W, a.B)
	case *AttentionAttr:
		add(a.Sinks, a.Relative)
	case *BlockAttnAttr:
		add(a.Relative, a.Side)
	case *RouteAttr:
		add(a.Bias, a.PerExpert)
	case *ExpertsAttr:
		add(a.Gate, a.Up, a.Down, a.GateBias, a.UpBias, a.DownBias)
	case *HeadLinearAttr:
		add(a.W)
	case *ExpertLinearAttr:
		add(a.W)
	case *ConvAttr:
		add(a.W, a.B)
	}
	return list
}
