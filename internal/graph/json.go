package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// ErrFormat marks JSON that is no graph.
var ErrFormat = errors.New("graph: not a graph")

// graphJSON is the form of a graph as text. Weights stand in a table and are
// named by their number, so that what two nodes share stays shared; arguments
// of an expression stand before it. A number that is not finite is a string.
type graphJSON struct {
	Weights []json.RawMessage `json:"weights"`
	Nodes   []nodeJSON        `json:"nodes"`
	Ropes   []json.RawMessage `json:"ropes,omitempty"`
	Caches  []Cache           `json:"caches,omitempty"`
	Layers  int               `json:"layers"`
	Outputs []Output          `json:"outputs"`
	Named   []Output          `json:"named,omitempty"`
	Vocab   int               `json:"vocab"`
}

type nodeJSON struct {
	Op    Op              `json:"op"`
	Shape []int           `json:"shape"`
	Rows  Rows            `json:"rows,omitempty"`
	In    []int           `json:"in,omitempty"`
	Attr  json.RawMessage `json:"attr,omitempty"`
	Layer int             `json:"layer"`
	Name  string          `json:"name,omitempty"`
	Line  *Line           `json:"line,omitempty"`
	Stack []Line          `json:"stack,omitempty"`
}

// Encode writes a graph as JSON.
func Encode(g *Graph) ([]byte, error) {
	e := &encoder{weights: map[*Weight]int{}}
	out := graphJSON{Caches: g.Caches, Layers: g.Layers, Outputs: g.Outputs, Named: g.Named, Vocab: g.Vocab}
	for _, n := range g.Nodes {
		nj := nodeJSON{Op: n.Op, Shape: n.Shape, Rows: n.Rows, In: n.In, Layer: n.Layer, Name: n.Name, Stack: n.Stack}
		if n.Line.Line > 0 {
			line := n.Line
			nj.Line = &line
		}
		if n.Attr != nil {
			raw, err := e.fields(reflect.ValueOf(n.Attr).Elem())
			if err != nil {
				return nil, fmt.Errorf("graph: encode: node %d: %w", n.ID, err)
			}
			nj.Attr = raw
		}
		out.Nodes = append(out.Nodes, nj)
	}
	for _, t := range g.Ropes {
		raw, err := e.fields(reflect.ValueOf(t).Elem())
		if err != nil {
			return nil, fmt.Errorf("graph: encode: rope table: %w", err)
		}
		out.Ropes = append(out.Ropes, raw)
	}
	out.Weights = e.table
	return json.Marshal(out)
}

type encoder struct {
	weights map[*Weight]int
	table   []json.RawMessage
}

// weight gives a weight its number, arguments first.
func (e *encoder) weight(w *Weight) (int, error) {
	if i, ok := e.weights[w]; ok {
		return i, nil
	}
	raw, err := e.fields(reflect.ValueOf(w).Elem())
	if err != nil {
		return 0, err
	}
	e.table = append(e.table, raw)
	e.weights[w] = len(e.table) - 1
	return len(e.table) - 1, nil
}

// fields writes the fields of a struct that are not zero.
func (e *encoder) fields(v reflect.Value) (json.RawMessage, error) {
	m := map[string]any{}
	for i := 0; i < v.NumField(); i++ {
		f := v.Field(i)
		if f.IsZero() {
			continue
		}
		x, err := e.value(f)
		if err != nil {
			return nil, err
		}
		m[v.Type().Field(i).Name] = x
	}
	return json.Marshal(m)
}

func (e *encoder) value(f reflect.Value) (any, error) {
	switch x := f.Interface().(type) {
	case *Weight:
		return e.weight(x)
	case []*Weight:
		list := make([]int, len(x))
		for i, w := range x {
			n, err := e.weight(w)
			if err != nil {
				return nil, err
			}
			list[i] = n
		}
		return list, nil
	case float64:
		return finite(x), nil
	case []float64:
		list := make([]any, len(x))
		for i, n := range x {
			list[i] = finite(n)
		}
		return list, nil
	}
	return f.Interface(), nil
}

// finite is the number, or its name where JSON has none for it.
func finite(x float64) any {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return x
}

// Decode reads a graph that Encode wrote. It trusts nothing: the result has
// passed Validate. Errors wrap ErrFormat.
func Decode(data []byte) (*Graph, error) {
	var in graphJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	d := &decoder{}
	g := &Graph{Caches: in.Caches, Layers: in.Layers, Outputs: in.Outputs, Named: in.Named, Vocab: in.Vocab}
	for i, raw := range in.Weights {
		w := &Weight{}
		if err := d.fields(raw, reflect.ValueOf(w).Elem()); err != nil {
			return nil, fmt.Errorf("%w: weight %d: %w", ErrFormat, i, err)
		}
		d.weights = append(d.weights, w)
	}
	for i, raw := range in.Ropes {
		t := &RopeTable{}
		if err := d.fields(raw, reflect.ValueOf(t).Elem()); err != nil {
			return nil, fmt.Errorf("%w: rope table %d: %w", ErrFormat, i, err)
		}
		g.Ropes = append(g.Ropes, t)
	}
	for i, nj := range in.Nodes {
		n, err := d.node(i, nj)
		if err != nil {
			return nil, fmt.Errorf("%w: node %d: %w", ErrFormat, i, err)
		}
		g.Nodes = append(g.Nodes, n)
	}
	if err := Validate(g); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return g, nil
}

type decoder struct{ weights []*Weight }

func (d *decoder) node(id int, nj nodeJSON) (*Node, error) {
	n := &Node{ID: id, Op: nj.Op, Shape: nj.Shape, Rows: nj.Rows, In: nj.In, Layer: nj.Layer, Name: nj.Name, Stack: nj.Stack}
	if n.Shape == nil {
		n.Shape = []int{}
	}
	if nj.Line != nil {
		n.Line = *nj.Line
	}
	empty, ok := newAttr[nj.Op]
	if !ok {
		if nj.Attr != nil {
			return nil, fmt.Errorf("%s has no attributes", nj.Op)
		}
		return n, nil
	}
	n.Attr = empty()
	if nj.Attr == nil {
		return n, nil
	}
	return n, d.fields(nj.Attr, reflect.ValueOf(n.Attr).Elem())
}

// fields reads a struct; unknown names are refused.
func (d *decoder) fields(raw json.RawMessage, v reflect.Value) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	for name, raw := range m {
		f := v.FieldByName(name)
		if !f.IsValid() {
			return fmt.Errorf("%s has no field %q", v.Type().Name(), name)
		}
		if err := d.value(raw, f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (d *decoder) value(raw json.RawMessage, f reflect.Value) error {
	switch f.Interface().(type) {
	case *Weight:
		var i int
		if err := json.Unmarshal(raw, &i); err != nil {
			return err
		}
		return d.weight(i, f)
	case []*Weight:
		var list []int
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		f.Set(reflect.MakeSlice(f.Type(), len(list), len(list)))
		for j, i := range list {
			if err := d.weight(i, f.Index(j)); err != nil {
				return err
			}
		}
		return nil
	case float64:
		x, err := readNumber(raw)
		f.SetFloat(x)
		return err
	case []float64:
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		f.Set(reflect.MakeSlice(f.Type(), len(list), len(list)))
		for j, r := range list {
			x, err := readNumber(r)
			if err != nil {
				return err
			}
			f.Index(j).SetFloat(x)
		}
		return nil
	}
	return json.Unmarshal(raw, f.Addr().Interface())
}

func (d *decoder) weight(i int, f reflect.Value) error {
	if i < 0 || i >= len(d.weights) {
		return fmt.Errorf("weight %d stands not before its user", i)
	}
	f.Set(reflect.ValueOf(d.weights[i]))
	return nil
}

func readNumber(raw json.RawMessage) (float64, error) {
	s := string(bytes.Trim(raw, `"`))
	return strconv.ParseFloat(s, 64)
}
