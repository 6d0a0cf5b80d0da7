package spec

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

// weightValue is a stored tensor or an expression over such, evaluated at
// load. Like a value it may be unknown (w is nil) after a reported problem.
type weightValue struct {
	t    *tracer
	w    *graph.Weight
	name string     // the reference's name of the (first) tensor
	typ  quant.Type // storage type
}

var (
	_ starlark.HasBinary = (*weightValue)(nil)
	_ starlark.HasUnary  = (*weightValue)(nil)
	_ starlark.HasAttrs  = (*weightValue)(nil)
)

func (w *weightValue) Type() string          { return "weight" }
func (w *weightValue) Freeze()               {}
func (w *weightValue) Truth() starlark.Bool  { return true }
func (w *weightValue) Hash() (uint32, error) { return 0, fmt.Errorf("a weight cannot be a key") }

func (w *weightValue) String() string {
	if w.w == nil {
		return "weight(" + w.name + ", unknown)"
	}
	return fmt.Sprintf("weight(%v %s)", w.w, shapeText(w.w.Shape))
}

// Attr gives shape (a tuple).
func (w *weightValue) Attr(name string) (starlark.Value, error) {
	if name != "shape" {
		return nil, nil
	}
	if w.w == nil {
		return starlark.Tuple{}, nil
	}
	return ints(w.w.Shape), nil
}

func (w *weightValue) AttrNames() []string { return []string{"shape"} }

// Binary gives w·n, w/n, w+n, w−n, n·w, n+w, n−w at load.
func (w *weightValue) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	n, ok := starlark.AsFloat(y)
	if !ok {
		return nil, nil
	}
	switch {
	case op == syntax.STAR:
		return w.affine(n, 0)
	case op == syntax.PLUS:
		return w.affine(1, n)
	case op == syntax.MINUS && side == starlark.Left:
		return w.affine(1, -n)
	case op == syntax.MINUS:
		return w.affine(-1, n)
	case op == syntax.SLASH && side == starlark.Left && n != 0:
		return w.affine(1/n, 0)
	}
	return nil, nil
}

// Unary gives −w and +w at load.
func (w *weightValue) Unary(op syntax.Token) (starlark.Value, error) {
	switch op {
	case syntax.MINUS:
		return w.affine(-1, 0)
	case syntax.PLUS:
		return w, nil
	}
	return nil, nil
}

func (w *weightValue) affine(a, b float64) (*weightValue, error) {
	return w.derive("arithmetic", false, func(x *graph.Weight) (*graph.Weight, error) { return graph.AffineWeight(x, a, b) })
}

// derive makes an expression over w. What changes columns or values is
// refused on a block type: it would have to be quantised anew.
func (w *weightValue) derive(what string, rowsOnly bool, f func(*graph.Weight) (*graph.Weight, error)) (*weightValue, error) {
	if w.w == nil {
		return w, nil
	}
	if l, ok := w.typ.Layout(); !rowsOnly && (!ok || l.Block > 1) {
		return nil, fmt.Errorf("%s: %v is stored as %s: only whole rows of a block type can be moved; branch on c.binding instead", what, w.w, w.typ)
	}
	x, err := f(w.w)
	if err != nil {
		w.t.complainOf(ProblemShape, "", "%v", err)
		return &weightValue{t: w.t, name: w.name, typ: w.typ}, nil
	}
	x.Line = w.t.line()
	return &weightValue{t: w.t, w: x, name: w.name, typ: w.typ}, nil
}

// lookup finds the tensor of a reference name without reporting its absence.
// The result is shared: the same name gives the same expression.
func (t *tracer) lookup(name string) (*weightValue, error) {
	if w, ok := t.weights[name]; ok {
		return w, nil
	}
	w, err := t.find(name)
	if w != nil {
		t.weights[name] = w
	}
	return w, err
}

// find is lookup without the memory of earlier ones.
func (t *tracer) find(name string) (*weightValue, error) {
	names := []string{name}
	if !t.names.plain() {
		names = t.names.candidates(name)
	}
	for _, c := range names {
		if w, err := t.open(name, c); w != nil || err != nil {
			t.asked.tensor(name, 0, w)
			return w, err
		}
	}
	if t.asked != nil && t.asked.supply != nil && strings.Contains(name, "experts.") {
		t.asked.supply(t, name, 0)
		if w, err := t.open(name, names[0]); w != nil || err != nil {
			return w, err
		}
	}
	for _, c := range names {
		for _, other := range []string{oldName(c), t.bareName(c)} {
			if w, err := t.open(name, other); w != nil || err != nil {
				t.asked.tensor(name, 0, w)
				return w, err
			}
		}
	}
	return nil, nil
}

// bareName is a tensor's name in files of the model alone, without a head, as
// folders of embeddings are: they lack the prefix "model.", all of them.
func (t *tracer) bareName(name string) string {
	rest, ok := strings.CutPrefix(name, "model.")
	if !ok || t.names.binding != HF {
		return name
	}
	for _, s := range t.stored {
		if strings.HasPrefix(s, "model.") {
			return name
		}
	}
	return rest
}

// oldName is how files of TensorFlow's time name the tensors of a layer norm.
func oldName(name string) string {
	base, suffix := cutSuffix(name)
	switch {
	case suffix == "" || !strings.HasSuffix(base, "LayerNorm"):
	case suffix == ".weight":
		return base + ".gamma"
	default:
		return base + ".beta"
	}
	return name
}

// open takes the stored tensor for a reference name; nil if it is not there.
func (t *tracer) open(name, stored string) (*weightValue, error) {
	v, ok := t.files.Tensor(stored)
	if !ok || t.filled[stored] {
		return nil, nil
	}
	t.used[stored] = true
	if v.Shape == nil {
		t.sketch = true
		return &weightValue{t: t, name: name}, nil
	}
	w := &weightValue{t: t, w: graph.Tensor(stored, v.Shape), name: name, typ: v.Type}
	w.w.Line = t.line()
	if t.scaledType(v.Type) {
		var err error
		if w, err = t.scale(w, stored); err != nil {
			return nil, err
		}
	}
	return t.undo(name, w)
}

// undo applies what weights(gguf=…) says of the tensor.
func (t *tracer) undo(name string, w *weightValue) (*weightValue, error) {
	if len(t.changes) == 0 {
		return w, nil
	}
	key, _ := generalise(name)
	f, ok := t.changes[key]
	if !ok {
		base, _ := cutSuffix(key)
		if f, ok = t.changes[base]; !ok {
			return w, nil
		}
	}
	args := starlark.Tuple{w}
	if fn, is := f.(*starlark.Function); is && fn.NumParams() == 2 {
		args = starlark.Tuple{w, t.config.root()}
	}
	out, err := starlark.Call(t.thread, f, args, nil)
	if err != nil {
		return nil, err
	}
	x, ok := out.(*weightValue)
	if !ok {
		return nil, fmt.Errorf("weights: the change of %s returns a %s, not a weight", name, out.Type())
	}
	return x, nil
}

// tensor finds a tensor under its name or with .weight appended; nil if there is none.
func (t *tracer) tensor(name string) (*weightValue, error) {
	w, err := t.lookup(name)
	if w == nil && err == nil {
		w, err = t.lookup(name + ".weight")
	}
	return w, err
}

// weight finds the weight of an operation: the name with .weight appended, or the name as it is.
func (t *tracer) weight(name string) (*weightValue, error) {
	w, err := t.lookup(name + ".weight")
	if w == nil && err == nil {
		w, err = t.lookup(name)
	}
	return w, err
}

// need is weight, reporting the absence.
func (t *tracer) need(name string) (*weightValue, error) {
	w, err := t.weight(name)
	if w == nil && err == nil {
		w, err = t.supplied(name+".weight", nil)
	}
	if w == nil && err == nil {
		w = t.missing(name + ".weight")
	}
	return w, err
}

// missing reports a tensor that the files lack and stands in for it.
func (t *tracer) missing(name string) *weightValue {
	seen := []string{}
	for _, c := range t.names.candidates(name) {
		if c != name && !slices.Contains(seen, namedTensor(c)) {
			seen = append(seen, namedTensor(c))
		}
	}
	if len(seen) > 0 {
		t.complainOf(ProblemMissing, name, "missing tensor %s (in the file: %s)", namedTensor(name), joinOr(seen))
	} else {
		t.complainOf(ProblemMissing, name, "missing tensor %s", namedTensor(name))
	}
	w := &weightValue{t: t, name: name}
	t.weights[name] = w
	return w
}

func joinOr(list []string) string {
	s := list[0]
	for _, x := range list[1:] {
		s += " or " + x
	}
	return s
}
