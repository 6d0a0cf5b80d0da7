package spec

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/inferflow/inferflow/internal/graph"
)

// value is a symbolic tensor: a node of the graph. A value without a node is
// the outcome of an operation that a reported problem kept from being made; it
// swallows all that is done with it.
type value struct {
	t    *tracer
	node *graph.Node
}

var (
	_ starlark.HasBinary = (*value)(nil)
	_ starlark.HasUnary  = (*value)(nil)
	_ starlark.HasAttrs  = (*value)(nil)
)

func (v *value) Type() string          { return "value" }
func (v *value) Freeze()               {}
func (v *value) Hash() (uint32, error) { return 0, fmt.Errorf("a value cannot be a key") }

func (v *value) String() string {
	if v.node == nil {
		return "value(unknown)"
	}
	return fmt.Sprintf("value(%s %s)", graph.Written(v.node.Op, v.node.Attr), shapeText(v.node.Shape))
}

func shapeText(s []int) string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Attr gives shape (a tuple) and width (the values a row).
func (v *value) Attr(name string) (starlark.Value, error) {
	switch name {
	case "shape":
		if v.node == nil {
			return starlark.Tuple{}, nil
		}
		return ints(v.node.Shape), nil
	case "width":
		if v.node == nil {
			return starlark.MakeInt(1), nil
		}
		return starlark.MakeInt(v.node.Width()), nil
	}
	return nil, nil
}

func (v *value) AttrNames() []string { return []string{"shape", "width"} }

func ints(s []int) starlark.Tuple {
	t := make(starlark.Tuple, len(s))
	for i, d := range s {
		t[i] = starlark.MakeInt(d)
	}
	return t
}

// Unary gives −x and +x.
func (v *value) Unary(op syntax.Token) (starlark.Value, error) {
	switch op {
	case syntax.MINUS:
		return v.t.unary("neg", v, 0, 0)
	case syntax.PLUS:
		return v, nil
	}
	return nil, nil
}

var binaryOps = map[syntax.Token]string{syntax.PLUS: "add", syntax.MINUS: "sub", syntax.STAR: "mul", syntax.SLASH: "div"}

// Binary gives + − * / between values, and between a value and a number or a stored tensor.
func (v *value) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	f, ok := binaryOps[op]
	if !ok {
		return nil, nil
	}
	switch y := y.(type) {
	case *value:
		return v.t.binary(f, v, y) // side is left: the right operand is asked only if the left is no value
	case *weightValue:
		p := v.t.param(y)
		if side == starlark.Left {
			return v.t.binary(f, v, p)
		}
		return v.t.binary(f, p, v)
	}
	n, ok := starlark.AsFloat(y)
	if !ok {
		return nil, nil
	}
	return v.withNumber(f, n, side == starlark.Left)
}

// withNumber is v∘n, or n∘v when left is false.
func (v *value) withNumber(f string, n float64, left bool) (starlark.Value, error) {
	switch {
	case f == "add":
		return v.t.unary("add", v, n, 0)
	case f == "mul":
		return v.t.unary("scale", v, n, 0)
	case f == "sub" && left:
		return v.t.unary("add", v, -n, 0)
	case f == "div" && left:
		if n == 0 {
			return nil, fmt.Errorf("division of a value by zero")
		}
		return v.t.unary("scale", v, 1/n, 0)
	case f == "sub":
		m, err := v.t.unary("neg", v, 0, 0)
		if err != nil {
			return nil, err
		}
		return v.t.unary("add", m, n, 0)
	}
	m, err := v.t.unary("pow", v, -1, 0)
	if err != nil {
		return nil, err
	}
	return v.t.unary("scale", m, n, 0)
}

// made wraps a new node, or records why there is none. Shapes that do not fit
// are problems, told with all others at the end.
func (t *tracer) made(n *graph.Node, err error) (*value, error) {
	if err != nil {
		t.complainOf(ProblemShape, "", "%v", err)
		return &value{t: t}, nil
	}
	if n.ID >= maxNodes {
		return nil, fmt.Errorf("the graph has more than %d operations", maxNodes)
	}
	if len(t.room) == 0 {
		t.room = make([]value, 256)
	}
	v := &t.room[0]
	t.room = t.room[1:]
	v.t, v.node = t, n
	return v, nil
}

func (t *tracer) unary(f string, x *value, a, b float64) (*value, error) {
	if x.node == nil {
		return x, nil
	}
	return t.made(t.b.Unary(f, x.node, a, b))
}

func (t *tracer) binary(f string, x, y *value) (*value, error) {
	if x.node == nil {
		return y, nil // a problem is reported; the stream goes on, so that others are found
	}
	if y.node == nil {
		return x, nil
	}
	return t.made(t.b.Binary(f, x.node, y.node))
}

// param makes a stored tensor a value.
func (t *tracer) param(w *weightValue) *value {
	if w.w == nil {
		return &value{t: t}
	}
	t.b.Name = baseName(w.name)
	v, _ := t.made(t.b.Param(w.w))
	return v
}
