package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
)

// solver finds the tensors that expressions of the other binding read, from
// what these must be equal to.
type solver struct {
	values map[string]*graph.Weight
	pieces map[string][]piece // by place
	order  []*graph.Weight    // with pieces
	// twofold says that some tensor would have to be two things at once.
	twofold bool
}

func newSolver() *solver {
	return &solver{values: map[string]*graph.Weight{}, pieces: map[string][]piece{}}
}

// place tells expressions apart that are made anew for each use.
func place(x *graph.Weight) string { return fmt.Sprint(x, x.Shape, x.Axis, x.Perm) }

// piece is a known part of an expression.
type piece struct {
	axis, from, to, step int
	v                    *graph.Weight
}

// set makes e equal to v.
func (s *solver) set(e, v *graph.Weight) (err error) {
	x := func() *graph.Weight { return e.Args[0] }
	next := func(w *graph.Weight, err error) error {
		if err != nil {
			return err
		}
		return s.set(x(), w)
	}
	switch e.Op {
	case graph.WTensor:
		if was := s.values[e.Name]; was != nil {
			s.twofold = s.twofold || place(was) != place(v)
			return nil
		}
		if !slices.Equal(e.Shape, v.Shape) {
			if v, err = graph.ReshapeWeight(v, e.Shape); err != nil {
				return fmt.Errorf("spec: %w: %s: %s: %w", ErrRebind, e.Line, e.Name, err)
			}
		}
		s.values[e.Name] = v
		return err
	case graph.WConst:
		return nil
	case graph.WPermute:
		inverse, ok := inverted(e.Perm)
		if !ok {
			break
		}
		return next(graph.PermuteWeight(v, e.Axis, inverse))
	case graph.WTranspose:
		inverse, _ := inverted(e.Perm)
		return next(graph.TransposeWeight(v, inverse))
	case graph.WReshape:
		return next(graph.ReshapeWeight(v, x().Shape))
	case graph.WAffine:
		if e.A == 0 { // a constant, as above
			return nil
		}
		return next(graph.AffineWeight(v, 1/e.A, -e.B/e.A))
	case graph.WMap:
		inverse, ok := inverseMaps[e.F]
		if !ok {
			break
		}
		return next(graph.MapWeight(v, inverse))
	case graph.WSlice:
		if s.pieces[place(x())] == nil {
			s.order = append(s.order, x())
		}
		s.pieces[place(x())] = append(s.pieces[place(x())], piece{e.Axis, e.From, e.To, e.Step, v})
		return nil
	case graph.WConcat, graph.WStack:
		return s.split(e, v)
	}
	if args, same := v.Parts(), v.Op == e.Op && v.F == e.F && v.Axis == e.Axis; same && len(args) == len(e.Parts()) && len(args) > 0 { // the same of both
		for i, a := range e.Parts() {
			if err := s.set(a, args[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("spec: %w: %s: %v cannot be undone", ErrRebind, e.Line, e)
}

// inverseMaps undo the functions of weights.
var inverseMaps = map[string]string{"exp": "log", "neg_exp": "log_neg", "neg": "neg", "inv": "inv", "tanh": "atanh", "softplus": "softplus_inv", "decoded": "decoded",
	"log": "exp", "log_neg": "neg_exp", "atanh": "tanh", "softplus_inv": "softplus"}

func inverted(perm []int) ([]int, bool) {
	out := make([]int, len(perm))
	for i := range out {
		out[i] = -1
	}
	for i, p := range perm {
		if out[p] >= 0 {
			return nil, false
		}
		out[p] = i
	}
	return out, true
}

// split makes the parts of a concatenation or stack equal to those of v.
func (s *solver) split(e, v *graph.Weight) error {
	at := 0
	for _, a := range e.Parts() {
		n, axis := 1, 0
		if e.Op == graph.WConcat {
			n, axis = a.Shape[e.Axis], e.Axis
		}
		part, err := part(v, axis, at, at+n)
		if err == nil && e.Op == graph.WStack {
			part, err = graph.ReshapeWeight(part, a.Shape)
		}
		if err == nil {
			err = s.set(a, part)
		}
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// part is a slice, of the argument itself where a stack or concatenation has just that.
func part(v *graph.Weight, axis, from, to int) (*graph.Weight, error) {
	if v.Op == graph.WStack && axis == 0 && to == from+1 {
		x := v.Parts()[from]
		return graph.ReshapeWeight(x, append([]int{1}, x.Shape...))
	}
	return graph.SliceWeight(v, axis, from, to, 1)
}

// join puts pieces together until none is left.
func (s *solver) join() error {
	for len(s.order) > 0 {
		x := s.order[0]
		s.order = s.order[1:]
		v, err := whole(x, s.pieces[place(x)])
		if err == nil {
			err = s.set(x, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whole is the whole of x, of which pieces are known.
func whole(x *graph.Weight, pieces []piece) (*graph.Weight, error) {
	axis := pieces[0].axis
	n := x.Shape[axis]
	place := make([]int, n)
	for i := range place {
		place[i] = -1
	}
	var parts []*graph.Weight
	at, ordered := 0, true
	for _, p := range pieces {
		if p.axis != axis {
			return nil, fmt.Errorf("spec: %w: %s: %v is cut along two axes", ErrRebind, x.Line, x)
		}
		if place[p.from] >= 0 { // read twice
			continue
		}
		for i, k := p.from, 0; i < p.to; i, k = i+p.step, k+1 {
			place[i] = at + k
			ordered = ordered && i == at+k
		}
		parts = append(parts, p.v)
		at += p.v.Shape[axis]
	}
	if i := slices.Index(place, -1); i >= 0 {
		return nil, fmt.Errorf("spec: %w: %s: nothing says what index %d of axis %d of %v is", ErrRebind, x.Line, i, axis, x)
	}
	v, err := graph.ConcatWeights(axis, parts...)
	if err != nil || ordered && at == n {
		return v, err
	}
	return graph.PermuteWeight(v, axis, place)
}

// solve compares the two traces and finds every tensor of the other binding.
func (r *rebinder) solve(to *tracer) error {
	s := newSolver()
	c := &comparison{pair: func(a, b *graph.Weight, _ graph.Line) error { return s.set(b, a) }, known: r.numbersIn}
	if err := c.graphs(r.from.b.G, to.b.G); err != nil {
		return err
	}
	if len(c.heads) > 0 {
		return fmt.Errorf("spec: %w: nothing gives %s there", ErrRebind, strings.Join(c.heads, ", "))
	}
	if err := s.join(); err != nil {
		return err
	}
	if len(c.other) > 0 {
		return fmt.Errorf("spec: %w: it reads %s otherwise there", ErrRebind, inWords(c.other))
	}
	r.result.Tensors, r.result.Aside = nil, nil
	for name, v := range r.factors {
		s.values[name] = v
	}
	used := to.usedNames()
	for _, name := range r.to.order {
		v, ok := s.values[name]
		switch {
		case ok && r.aside[name]:
			r.result.Aside = append(r.result.Aside, ReboundTensor{name, v})
		case ok:
			r.result.Tensors = append(r.result.Tensors, ReboundTensor{name, v})
		case used[name]:
			return fmt.Errorf("spec: %w: nothing says what %s is", ErrRebind, name)
		}
	}
	return nil
}
