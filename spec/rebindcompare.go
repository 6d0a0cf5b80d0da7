package spec

import (
	"fmt"
	"math"
	"reflect"
	"slices"

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
	if told, err := c.told(x, y); told {
		return err
	}
	if x.Op != y.Op || !slices.Equal(x.In, y.In) {
		return fmt.Errorf("spec: %w: %s computes by different steps in the two formats", ErrRebind, x.Line)
	}
	return c.values(reflect.ValueOf(x.Attr), reflect.ValueOf(y.Attr), x.Line, string(x.Op))
}

// told compares a tensor with numbers that the other format has among its
// settings; false where the steps are others.
func (c *comparison) told(x, y *graph.Node) (bool, error) {
	param, ok1 := x.Attr.(*graph.ParamAttr)
	numbers, ok2 := y.Attr.(*graph.ConstAttr)
	if !ok1 || !ok2 || c.known == nil {
		return false, nil
	}
	have := c.known(param.W)
	if len(have) != len(numbers.Values) || len(have) == 0 {
		return false, nil
	}
	for i, v := range have {
		if math.Abs(v-numbers.Values[i]) > 1e-6*math.Abs(v) {
			return true, fmt.Errorf("spec: %w: %s: %v has other numbers in the two formats", ErrRebind, x.Line, param.W)
		}
	}
	return true, nil
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
