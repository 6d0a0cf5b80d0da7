package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docHeads = `heads(x, d)
Cuts the last axis into heads: [.., n·d] gives [.., n, d].
- x: a value.
- d: the width of a head.
Errors: a width that d does not divide.
`

func doHeads(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var a struct {
		x *value
		d int
	}
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &a.x, "d", &a.d); err != nil {
		return nil, err
	}
	x, d := a.x, a.d
	if x.node == nil {
		return x, nil
	}
	s := x.node.Shape
	if len(s) == 0 || d < 1 || s[len(s)-1]%d != 0 {
		return t.made(nil, fmt.Errorf("heads: %v does not divide into heads of %d", s, d))
	}
	shape := append(append([]int(nil), s[:len(s)-1]...), s[len(s)-1]/d, d)
	return t.made(t.b.Reshape(x.node, shape))
}

const docMerge = `merge(x)
All axes as one: [n, d] gives [n·d].
- x: a value.
`

func doMerge(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x); err != nil {
		return nil, err
	}
	if x.node == nil {
		return x, nil
	}
	return t.made(t.b.Reshape(x.node, []int{x.node.Width()}))
}

const docReshape = `reshape(x, shape)
The same values in another shape, the last axis fastest.
- x: a value or a weight.
- shape: a number or a list; one entry may be -1.
Errors: a shape of another count of values.
`

func doReshape(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var shape intList
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "shape", &shape); err != nil {
		return nil, err
	}
	if w, ok := x.(*weightValue); ok {
		return w.reshape(shape)
	}
	v, err := asValue(x)
	if err != nil || v.node == nil {
		return v, err
	}
	return t.made(t.b.Reshape(v.node, shape))
}

func asValue(x starlark.Value) (*value, error) {
	v, ok := x.(*value)
	if !ok {
		return nil, fmt.Errorf("expected a value, got %s", x.Type())
	}
	return v, nil
}

const docTranspose = `transpose(x, axes=None)
Other order of the axes of a row: axis i of the result is axis axes[i] of x.
- x: a value or a weight.
- axes: a list; None: the last two change places.
`

func doTranspose(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var axes intList
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "axes?", &axes); err != nil {
		return nil, err
	}
	perm := func(n int) []int {
		if axes != nil {
			return axes
		}
		p := make([]int, n)
		for i := range p {
			p[i] = i
		}
		if n >= 2 {
			p[n-1], p[n-2] = n-2, n-1
		}
		return p
	}
	if w, ok := x.(*weightValue); ok {
		return w.derive(name, false, func(x *graph.Weight) (*graph.Weight, error) { return graph.TransposeWeight(x, perm(len(x.Shape))) })
	}
	v, err := asValue(x)
	if err != nil || v.node == nil {
		return v, err
	}
	return t.made(t.b.Add(graph.OpTranspose, &graph.TransposeAttr{Perm: perm(len(v.node.Shape))}, nil, v.node))
}

const docSlice = `slice(x, from=0, to=None, step=1, axis=-1)
The range from ≤ i < to of one axis, every step-th. All but x are best given by position (from is a word of Starlark): slice(x, 0, 64).
- x: a value or a weight.
- from: first index; by name it is from_.
- to: index behind the last; None: to the end.
- step: 1 or more; slice(w, 1, step = 2) takes every second.
- axis: negative counts from the end.
Errors: a range outside the axis.
`

func doSlice(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	from, step, axis := 0, 1, -1
	to := starlark.Value(starlark.None)
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "from_?", &from, "to?", &to, "step?", &step, "axis?", &axis); err != nil {
		return nil, err
	}
	bounds := func(shape []int) (ax, end int, err error) {
		ax = axis
		if ax < 0 {
			ax += len(shape)
		}
		if ax < 0 || ax >= len(shape) {
			return 0, 0, fmt.Errorf("slice: %v has no axis %d", shape, axis)
		}
		if to == starlark.None {
			return ax, shape[ax], nil
		}
		end, err = starlark.AsInt32(to)
		return ax, end, err
	}
	if w, ok := x.(*weightValue); ok {
		return w.slice(bounds, from, step)
	}
	v, err := asValue(x)
	if err != nil || v.node == nil {
		return v, err
	}
	ax, end, err := bounds(v.node.Shape)
	if err != nil {
		return t.made(nil, err)
	}
	return t.made(t.b.Slice(v.node, ax, from, end, step))
}

const docSplit = `split(x, sizes, axis=-1)
A list of consecutive parts of one axis: q, k, v = split(x, [4096, 1024, 1024]).
- x: a value.
- sizes: a list of sizes that add up to the axis.
- axis: negative counts from the end.
Errors: sizes that do not add up.
`

// doSplit cuts an axis into parts of the given sizes.
func doSplit(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var sizes intList
	axis := -1
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "sizes", &sizes, "axis?", &axis); err != nil {
		return nil, err
	}
	parts := make([]starlark.Value, len(sizes))
	at, total := 0, 0
	for _, n := range sizes {
		total += n
	}
	if x.node != nil {
		s := x.node.Shape
		if ax := axis; ax >= -len(s) && ax < len(s) {
			if ax < 0 {
				ax += len(s)
			}
			if s[ax] != total {
				t.complain("split: the parts %v do not add up to axis %d of %v", []int(sizes), ax, s)
				x = &value{t: t}
			}
		}
	}
	for i, n := range sizes {
		if x.node == nil {
			parts[i] = x
			continue
		}
		v, err := t.made(t.b.Slice(x.node, axis, at, at+n, 1))
		if err != nil {
			return nil, err
		}
		parts[i] = v
		at += n
	}
	return starlark.NewList(parts), nil
}

const docConcat = `concat(parts, axis=-1)
Joins along one axis.
- parts: a list of values, or of weights, equal in all other axes.
- axis: negative counts from the end.
Errors: parts that differ in another axis; values and weights mixed (param(w) makes a value).
`

func doConcat(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list starlark.Iterable
	axis := -1
	if err := starlark.UnpackArgs(name, args, kwargs, "parts", &list, "axis?", &axis); err != nil {
		return nil, err
	}
	var nodes []*graph.Node
	var weights []*weightValue
	unknown := false
	i := list.Iterate()
	defer i.Done()
	for item := starlark.Value(nil); i.Next(&item); {
		switch x := item.(type) {
		case *value:
			nodes = append(nodes, x.node)
			unknown = unknown || x.node == nil
		case *weightValue:
			weights = append(weights, x)
		default:
			return nil, fmt.Errorf("concat: expected values or weights, got %s", item.Type())
		}
	}
	switch {
	case len(nodes) > 0 && len(weights) > 0:
		return nil, fmt.Errorf("concat: values and weights do not mix; make param(weight) a value first")
	case len(weights) > 0:
		return t.concatWeights(weights, axis)
	case unknown:
		return &value{t: t}, nil
	}
	return t.made(t.b.Concat(axis, nodes...))
}

const docGather = `gather(x, index)
x[.., index[.., j]] for each j: x [.., n] by index [.., k] gives [.., k], the axes before being the same.
- x: a value [n], or [.., n].
- index: a value of whole numbers; order gives such.
Errors: other axes. When the model runs: an index outside 0 … n − 1.
`

const docOrder = `order(x)
The places of the numbers along the last axis, the largest number's first (argsort); of equal ones the earlier first. The shape of x. So gather(x, order(x)) sorts, slice(order(x), 0, 1) is the
place of the largest (argmax), slice(order(x), 0, k) are those of the k largest (topk), and gather(x, slice(order(x), k - 1, k)) is the k-th largest number, for a threshold.
- x: a value [.., n].
Errors: a value without axes.
`

func doOrder(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x); err != nil {
		return nil, err
	}
	return t.apply(graph.OpOrder, nil, x)
}

func doGather(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, index *value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "index", &index); err != nil {
		return nil, err
	}
	return t.apply(graph.OpGather, nil, x, index)
}

// apply adds an operation unless one of its inputs is unknown.
func (t *tracer) apply(op graph.Op, attr any, in ...*value) (starlark.Value, error) {
	nodes := make([]*graph.Node, len(in))
	for i, v := range in {
		if v.node == nil {
			return &value{t: t}, nil
		}
		nodes[i] = v.node
	}
	return t.made(t.b.Add(op, attr, nil, nodes...))
}
