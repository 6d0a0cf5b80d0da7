package graph

import (
	"fmt"
	"math"
	"slices"
)

// LoopAttr is any recurrence: a few operations that are computed for one token
// after the other, from the states that the token before left. In: the first
// States inputs are the states before the first token, the same for all texts;
// the others are values of the token, or constants. Body counts its values from
// 0: the states, the other inputs in their order, then a value for each step.
// Out are the States new states and then the result. The state of a sequence is
// all states, one after the other.
type LoopAttr struct {
	Cache  int
	States int
	Body   []LoopStep
	Out    []int
}

// LoopStep is an operation of LoopAttr.Body: one of loopOps, on earlier values.
// The other fields are those of the operation's attributes.
type LoopStep struct {
	Op                   Op
	In                   []int
	Shape                []int
	F                    string    `json:",omitempty"`
	A, B                 float64   `json:",omitempty"`
	Axis, From, To, Step int       `json:",omitempty"`
	Perm                 []int     `json:",omitempty"`
	Values               []float64 `json:",omitempty"`
}

// maxLoop bounds the operations of a loop and their values together.
const (
	maxLoop       = 1 << 12
	maxLoopValues = 1 << 28
)

// ArgAttr is an input of a loop inside its body.
type ArgAttr struct{ Index int }

// attr makes the attributes of the operation; ok is false for one that may not
// stand in a loop.
func (s *LoopStep) attr() (attr any, ok bool) {
	switch s.Op {
	case OpWhere, OpSoftmax, OpReshape, OpGather, OpOrder:
		return nil, true
	case OpUnary:
		return &UnaryAttr{F: s.F, A: s.A, B: s.B}, true
	case OpBinary:
		return &BinaryAttr{F: s.F}, true
	case OpReduce:
		return &ReduceAttr{F: s.F}, true
	case OpNorm:
		return &NormAttr{Kind: NormKind(s.F), Eps: s.A, Groups: s.Axis}, true
	case OpTranspose:
		return &TransposeAttr{Perm: s.Perm}, true
	case OpSlice:
		return &SliceAttr{Axis: s.Axis, From: s.From, To: s.To, Step: s.Step}, true
	case OpConcat:
		return &ConcatAttr{Axis: s.Axis}, true
	case OpDot:
		return &DotAttr{}, true
	case OpConst:
		return &ConstAttr{Values: s.Values}, true
	}
	return nil, false
}

// stepOf is the operation of a node of a body, but for its inputs.
func stepOf(n *Node) LoopStep {
	s := LoopStep{Op: n.Op, Shape: n.Shape}
	switch a := n.Attr.(type) {
	case *UnaryAttr:
		s.F, s.A, s.B = a.F, a.A, a.B
	case *BinaryAttr:
		s.F = a.F
	case *ReduceAttr:
		s.F = a.F
	case *NormAttr:
		s.F, s.A, s.Axis = string(a.Kind), a.Eps, a.Groups
	case *TransposeAttr:
		s.Perm = a.Perm
	case *SliceAttr:
		s.Axis, s.From, s.To, s.Step = a.Axis, a.From, a.To, a.Step
	case *ConcatAttr:
		s.Axis = a.Axis
	case *ConstAttr:
		s.Values = a.Values
	}
	return s
}

// Graph is the body as a graph of its own, whose first nodes are the inputs of
// those shapes. Every shape is computed anew.
func (a *LoopAttr) Graph(in []*Node) (*Graph, error) {
	g := &Graph{}
	for i, x := range in {
		g.Nodes = append(g.Nodes, &Node{ID: i, Op: OpArg, Shape: x.Shape, Attr: &ArgAttr{i}})
	}
	values, work := 0.0, 0.0
	for i := range a.Body {
		s := &a.Body[i]
		n := &Node{ID: len(g.Nodes), Op: s.Op, In: s.In, Shape: s.Shape}
		attr, ok := s.attr()
		if !ok {
			return nil, notInLoop(s.Op, nil)
		}
		n.Attr = attr
		var from []*Node
		for _, id := range s.In {
			if id < 0 || id >= n.ID {
				return nil, fmt.Errorf("recur: value %d of operation %d is no earlier one", id, i)
			}
			from = append(from, g.Nodes[id])
		}
		for _, v := range append(slices.Clone(s.Values), s.A, s.B) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("recur: %s: the number %v; those of a step are finite (in place of an open end of clamp, say maximum or minimum)", Written(s.Op, attr), v)
			}
		}
		if err := checkSize(s.Shape); err != nil {
			return nil, err
		}
		shape, _, err := infer(g, s.Op, attr, s.Shape, from)
		if err != nil {
			return nil, fmt.Errorf("recur: %w", err)
		}
		if !slices.Equal(shape, s.Shape) {
			return nil, fmt.Errorf("recur: %s: states the shape %v, computes %v", Written(s.Op, attr), s.Shape, shape)
		}
		if values += float64(n.Width()); values > maxLoopValues {
			return nil, fmt.Errorf("recur: a step makes more than %d values", maxLoopValues)
		}
		work += products(n, from)
		if err := tooMuchWork("recur", work); err != nil {
			return nil, err
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g, nil
}

func inferLoop(g *Graph, a *LoopAttr, in []*Node) ([]int, error) {
	if a.States < 1 || a.States > len(in) || len(a.Out) != a.States+1 || len(a.Body) > maxLoop {
		return nil, fmt.Errorf("recur: %d states, %d outputs and %d inputs do not fit each other, or %d operations are more than %d", a.States, len(a.Out), len(in), len(a.Body), maxLoop)
	}
	body, err := a.Graph(in)
	if err != nil {
		return nil, err
	}
	size := 0
	for i, id := range a.Out {
		if id < 0 || id >= len(body.Nodes) {
			return nil, fmt.Errorf("recur: output %d is no value of the step", i)
		}
		if i == a.States {
			break
		}
		switch s := in[i]; {
		case s.Rows != RowsConst:
			return nil, fmt.Errorf("recur: state %d begins with a value of the token; it must be the same for all tokens: const or param", i)
		case !slices.Equal(body.Nodes[id].Shape, s.Shape):
			return nil, fmt.Errorf("recur: state %d is %v and becomes %v", i, s.Shape, body.Nodes[id].Shape)
		}
		size += in[i].Width()
	}
	if size > maxValues {
		return nil, fmt.Errorf("recur: states of %d values are too many", size)
	}
	return body.Nodes[a.Out[a.States]].Shape, state(g, "recur", a.Cache, size)
}

func notInLoop(op Op, attr any) error {
	return fmt.Errorf("recur: %s cannot stand in a step: arithmetic, functions, dot, linear, head_linear, norms, reductions, softmax, where, order, gather and shapes can", Written(op, attr))
}

// loopScope is where a builder stands while it traces the step of a recurrence.
type loopScope struct {
	outer *Builder
	args  map[*Node]*Node // what the step reads of the graph around it
	list  []*Node         // the same, in order
}

// InLoop says that the step of a recurrence is traced.
func (b *Builder) InLoop() bool { return b.loop != nil }

// Loop runs step once, with a builder that collects its operations and with the
// states, which begin as start says. What step reads of values around it becomes
// an input. It returns the new states and the result.
func (b *Builder) Loop(start []*Node, step func(in *Builder, states []*Node) (out []*Node, err error)) (*Node, error) {
	if b.loop != nil {
		return nil, fmt.Errorf("recur: a step cannot hold a recurrence")
	}
	in := &Builder{G: &Graph{}, Layer: b.Layer, At: b.At, loop: &loopScope{outer: b, args: map[*Node]*Node{}}}
	b.looped = true
	var states []*Node
	size := 0
	for i, s := range start {
		n := &Node{ID: i, Op: OpArg, Shape: s.Shape, Attr: &ArgAttr{i}, Rows: RowsToken}
		in.G.Nodes, in.loop.list = append(in.G.Nodes, n), append(in.loop.list, s)
		states = append(states, n)
		size += s.Width()
	}
	out, err := step(in, states)
	if err != nil {
		return nil, err
	}
	a := &LoopAttr{States: len(start)}
	for i := range out {
		if out[i], err = in.inside(out[i]); err != nil {
			return nil, err
		}
	}
	at := in.loop.numbers(in.G)
	for _, n := range in.G.Nodes {
		if n.Op == OpArg {
			continue
		}
		s := stepOf(n)
		for _, id := range n.In {
			s.In = append(s.In, at[id])
		}
		a.Body = append(a.Body, s)
	}
	for _, n := range out {
		a.Out = append(a.Out, at[n.ID])
	}
	a.Cache = b.keep(size)
	return b.stateful(OpLoop, a, a.Cache, in.loop.list...)
}

// numbers are the body's values by node: inputs, then operations.
func (l *loopScope) numbers(g *Graph) []int {
	at, next := make([]int, len(g.Nodes)), len(l.list)
	for i, n := range g.Nodes {
		if a, ok := n.Attr.(*ArgAttr); ok {
			at[i] = a.Index
			continue
		}
		at[i] = next
		next++
	}
	return at
}

// owns says whether a node is of this builder's graph.
func (b *Builder) owns(n *Node) bool { return n.ID < len(b.G.Nodes) && b.G.Nodes[n.ID] == n }

// inside is a node as the step sees it: one of the graph around it is an input.
func (b *Builder) inside(n *Node) (*Node, error) {
	l := b.loop
	switch {
	case b.owns(n):
		return n, nil
	case l.args[n] != nil:
		return l.args[n], nil
	case !l.outer.owns(n):
		return nil, fmt.Errorf("recur: a value of another step is used")
	case n.Op == OpRoute:
		return nil, notInLoop(n.Op, n.Attr)
	}
	x := &Node{ID: len(b.G.Nodes), Op: OpArg, Shape: n.Shape, Rows: n.Rows, Attr: &ArgAttr{len(l.list)}}
	if x.Rows == RowsMemory {
		x.Rows = RowsToken
	}
	b.G.Nodes, l.list, l.args[n] = append(b.G.Nodes, x), append(l.list, n), x
	return x, nil
}

// addInLoop is Add inside a step: what belongs to the graph around it is made
// there, and stored weights become values.
func (b *Builder) addInLoop(op Op, attr any, want []int, in []*Node) (*Node, error) {
	switch a := attr.(type) {
	case *ParamAttr, *TokensAttr, *PositionsAttr:
		n, err := b.loop.outer.Add(op, attr, want)
		if err != nil {
			return nil, err
		}
		return b.inside(n)
	case *LinearAttr:
		return b.linearInLoop(a.W, a.B, in[0])
	case *HeadLinearAttr:
		return b.linearInLoop(a.W, nil, in[0])
	case *NormAttr:
		if a.W != nil || a.B != nil {
			return b.normInLoop(a, in[0])
		}
	}
	s := LoopStep{Op: op}
	if _, ok := s.attr(); !ok {
		return nil, notInLoop(op, attr)
	}
	own := make([]*Node, len(in))
	var err error
	for i, x := range in {
		if own[i], err = b.inside(x); err != nil {
			return nil, err
		}
	}
	return b.add(op, attr, want, own)
}

// linearInLoop is a product with stored matrices, as values.
func (b *Builder) linearInLoop(w, bias *Weight, x *Node) (*Node, error) {
	m, err := b.Param(w)
	if err != nil {
		return nil, err
	}
	y, err := b.Add(OpDot, &DotAttr{}, nil, x, m)
	if err != nil || bias == nil {
		return y, err
	}
	return b.withWeight("add", y, bias)
}

// normInLoop is a norm whose factor and bias are values.
func (b *Builder) normInLoop(a *NormAttr, x *Node) (*Node, error) {
	plain := *a
	plain.W, plain.B, plain.Offset = nil, nil, 0
	y, err := b.Norm(x, plain)
	if err != nil {
		return nil, err
	}
	if a.W != nil {
		w, err := b.Param(a.W)
		if err == nil && a.Offset != 0 {
			w, err = b.Unary("add", w, a.Offset, 0)
		}
		if err != nil {
			return nil, err
		}
		if y, err = b.Binary("mul", y, w); err != nil {
			return nil, err
		}
	}
	if a.B == nil {
		return y, nil
	}
	return b.withWeight("add", y, a.B)
}

func (b *Builder) withWeight(f string, x *Node, w *Weight) (*Node, error) {
	p, err := b.Param(w)
	if err != nil {
		return nil, err
	}
	return b.Binary(f, x, p)
}
