package spec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
)

// eachWeight calls f for every weight that the nodes and tables of a graph hold.
func eachWeight(g *graph.Graph, f func(*graph.Weight)) {
	c := &comparison{pair: func(a, _ *graph.Weight, _ graph.Line) error { f(a); return nil }}
	_ = c.graphs(g, g)
}

// comparison walks two graphs of the same form side by side.
type comparison struct {
	twofold bool // set by pair: a tensor of the second would have to be two of the first
	pair    func(a, b *graph.Weight, line graph.Line) error
	known   func(w *graph.Weight) []float64 // the numbers of a small tensor, nil where they are not known; may be nil
	other   []string                        // attributes that differ, each once
	heads   []string                        // outputs of the first that the second, which is its beginning, lacks
}

func (c *comparison) graphs(a, b *graph.Graph) error {
	nodes := a.Nodes
	if heads, ok := beginning(a, b); ok {
		c.heads, nodes = heads, nodes[:len(b.Nodes)]
	}
	for i, x := range nodes {
		if i >= len(b.Nodes) {
			return fmt.Errorf("spec: %w: %s computes by different steps in the two formats", ErrRebind, x.Line)
		}
		if err := c.nodes(x, b.Nodes[i]); err != nil {
			return err
		}
	}
	if len(b.Nodes) > len(a.Nodes) {
		return fmt.Errorf("spec: %w: %s computes by different steps in the two formats", ErrRebind, b.Nodes[len(a.Nodes)].Line)
	}
	for i, x := range a.Ropes {
		if i < len(b.Ropes) {
			c.ropes(x, b.Ropes[i])
		}
	}
	return nil
}

// nodes compares two steps. Numbers that one format has among its settings may
// be a tensor of the other.
func (c *comparison) nodes(x, y *graph.Node) error {
	numbers, ok1 := x.Attr.(*graph.ConstAttr)
	param, ok2 := y.Attr.(*graph.ParamAttr)
	if ok1 && ok2 && graph.Product(x.Shape) == graph.Product(y.Shape) {
		return c.pair(&graph.Weight{Op: graph.WConst, Shape: x.Shape, Data: numbers.Values}, param.W, x.Line)
	}
	if x.Op != y.Op || !slices.Equal(x.In, y.In) {
		return fmt.Errorf("spec: %w: %s computes by different steps in the two formats", ErrRebind, x.Line)
	}
	return c.values(reflect.ValueOf(x.Attr), reflect.ValueOf(y.Attr), x.Line, string(x.Op))
}

// beginning says that b is where a starts, with fewer outputs, and which it
// lacks: an encoder without the heads that the other format has no names for.
func beginning(a, b *graph.Graph) (lacks []string, ok bool) {
	if len(b.Nodes) >= len(a.Nodes) || len(b.Outputs) == 0 {
		return nil, false
	}
	for _, o := range b.Outputs {
		if !slices.Contains(a.Outputs, o) {
			return nil, false
		}
	}
	for _, o := range a.Outputs {
		if !slices.Contains(b.Outputs, o) {
			lacks = append(lacks, o.Name)
		}
	}
	return lacks, len(lacks) > 0
}

// ropes compares the frequencies that come out of two tables.
func (c *comparison) ropes(a, b *graph.RopeTable) {
	if b.Divisors != nil || a.Divisors != nil { // stored as tensors, made of the other's own numbers
		x, y := c.divided(a), c.divided(b)
		if x == nil || y == nil {
			x, y = &graph.RopeTable{Dim: a.Dim, Factor: a.Factor}, &graph.RopeTable{Dim: b.Dim, Factor: b.Factor}
		}
		a, b = x, y
	}
	if err := c.values(reflect.ValueOf(*a), reflect.ValueOf(*b), graph.Line{}, "rope_table"); err != nil {
		c.differ("rope_table")
	}
}

// stillDivisor is what stands for a frequency of 0 among divisors, and above.
const stillDivisor = 1e29

// divided is a table with its divisors in its frequencies; nil where they are not known.
func (c *comparison) divided(t *graph.RopeTable) *graph.RopeTable {
	out := *t
	divide := func(freq []float64, by *graph.Weight) []float64 {
		if by == nil {
			return freq
		}
		var list []float64
		if c.known != nil {
			list = c.known(by)
		}
		if len(list) != len(freq) {
			return nil
		}
		scaled := make([]float64, len(freq))
		for i, f := range freq {
			if list[i] < stillDivisor {
				scaled[i] = f / list[i]
			}
		}
		return scaled
	}
	long := t.LongDiv
	if long == nil && t.LongFreq != nil {
		long = t.Divisors
	}
	out.Freq, out.LongFreq = divide(t.Freq, t.Divisors), divide(t.LongFreq, long)
	if out.Freq == nil || t.LongFreq != nil && out.LongFreq == nil {
		return nil
	}
	out.Divisors, out.LongDiv = nil, nil
	if slices.Equal(out.Freq, out.LongFreq) { // one list under two names
		out.Kind, out.LongFreq, out.Original = "", nil, 0
	}
	return &out
}

func (c *comparison) differ(what string) {
	if !slices.Contains(c.other, what) {
		c.other = append(c.other, what)
	}
}

var weightType = reflect.TypeOf((*graph.Weight)(nil))

// values compares two attributes field by field, and hands on their weights.
func (c *comparison) values(a, b reflect.Value, line graph.Line, what string) error {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		c.differ(what)
		return nil
	}
	if !a.IsValid() {
		return nil
	}
	switch {
	case a.Type() == weightType:
		x, y := a.Interface().(*graph.Weight), b.Interface().(*graph.Weight)
		if (x == nil) != (y == nil) {
			return fmt.Errorf("spec: %w: %s: %s has a weight in one format only", ErrRebind, line, what)
		}
		if x == nil {
			return nil
		}
		return c.pair(x, y, line)
	case a.Kind() == reflect.Pointer || a.Kind() == reflect.Interface:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				c.differ(what)
			}
			return nil
		}
		return c.values(a.Elem(), b.Elem(), line, what)
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			if !a.Type().Field(i).IsExported() {
				continue
			}
			if err := c.values(a.Field(i), b.Field(i), line, what+"."+a.Type().Field(i).Name); err != nil {
				return err
			}
		}
		return nil
	case a.Kind() == reflect.Slice:
		if a.Len() != b.Len() {
			c.differ(what)
			return nil
		}
		for i := range a.Len() {
			if err := c.values(a.Index(i), b.Index(i), line, what); err != nil {
				return err
			}
		}
		return nil
	case a.Kind() == reflect.Float64:
		if x, y := a.Float(), b.Float(); x != y && !(math.Abs(x-y) <= 1e-6*math.Abs(x)) { // metadata are float32
			c.differ(what)
		}
		return nil
	}
	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		c.differ(what)
	}
	return nil
}

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
	c := &comparison{pair: func(a, b *graph.Weight, _ graph.Line) error { return s.set(b, a) }, known: r.factorsOf}
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
		return fmt.Errorf("spec: %w: it reads %v otherwise there", ErrRebind, c.other)
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
