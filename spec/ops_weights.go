package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

const docTensor = `tensor(name, optional=False, shape=None)
A stored tensor, as a weight. It has .shape.
- name: the reference's name, .weight may be left out.
- optional: None where it is not stored, in place of a problem.
- shape: what it must be. A conversion needs it of a tensor that only one of the two formats has.
`

// doTensor finds a stored tensor by its name, or with .weight appended.
func doTensor(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var a struct {
		n    string
		may  bool
		dims starlark.Value
	}
	var shape intList
	err := starlark.UnpackArgs(name, args, kwargs, "name", &a.n, "optional?", &a.may, "shape?", &a.dims)
	if err == nil && !isNone(a.dims) {
		err = shape.Unpack(a.dims)
	}
	if err != nil {
		return nil, err
	}
	n, may := a.n, a.may
	w, err := t.tensor(n)
	if w == nil && err == nil && !may {
		w, err = t.supplied(n, shape)
	}
	if w != nil && w.w != nil && shape != nil && !slices.Equal(w.w.Shape, shape) {
		t.complainOf(ProblemShape, n, "%v is %v, expected %v", w.w, w.w.Shape, []int(shape))
		return &weightValue{t: t, name: n}, nil
	}
	switch {
	case err != nil:
		return nil, err
	case w != nil:
		return w, nil
	case may:
		return starlark.None, nil
	}
	return t.missing(n), nil
}

const docStored = `stored(name)
Whether a tensor is stored: True or False. It does not count as read.
- name: the reference's name, .weight may be left out.
`

// doStored says whether a tensor exists; it does not count as used.
func doStored(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var n string
	if err := starlark.UnpackArgs(name, args, kwargs, "name", &n); err != nil {
		return nil, err
	}
	for _, full := range []string{n, n + ".weight"} {
		for _, c := range t.names.candidates(full) {
			if _, ok := t.files.Tensor(c); ok && !t.filled[c] {
				return starlark.True, nil
			}
		}
	}
	return starlark.False, nil
}

const docRows = `rows(w, from, to, step=1)
Rows from ≤ i < to of a weight; any storage type.
- w: a weight.
- from: first row; by name it is from_.
- to: row behind the last.
- step: every step-th row.
`

// doRows takes rows from ≤ i < to by step of a weight [rows, …].
func doRows(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var a struct {
		w              *weightValue
		from, to, step int
	}
	a.step = 1
	if err := starlark.UnpackArgs(name, args, kwargs, "w", &a.w, "from_", &a.from, "to", &a.to, "step?", &a.step); err != nil {
		return nil, err
	}
	return a.w.slice(func([]int) (int, int, error) { return 0, a.to, nil }, a.from, a.step)
}

func (w *weightValue) slice(bounds func([]int) (axis, to int, err error), from, step int) (starlark.Value, error) {
	if w.w == nil {
		return w, nil
	}
	axis, to, err := bounds(w.w.Shape)
	if err != nil {
		w.t.complain("%v", err)
		return &weightValue{t: w.t, name: w.name, typ: w.typ}, nil
	}
	key := sliceKey{w.w, axis, from, to, step}
	if known := w.t.slices[key]; known != nil {
		return known, nil
	}
	rowsOnly := axis < len(w.w.Shape)-1
	s, err := w.derive("slice", rowsOnly, func(x *graph.Weight) (*graph.Weight, error) { return graph.SliceWeight(x, axis, from, to, step) })
	if err == nil && s.w != nil {
		w.t.slices[key] = s
	}
	return s, err
}

// sliceKey tells slices of weights apart. Layers that run several times ask for
// the same ones: a device packs an expression once.
type sliceKey struct {
	w                    *graph.Weight
	axis, from, to, step int
}

func (w *weightValue) reshape(shape []int) (starlark.Value, error) {
	shape = append([]int(nil), shape...)
	if w.w == nil {
		return w, nil
	}
	p, free := 1, -1
	for i, d := range shape {
		if d == -1 {
			free = i
		} else {
			p *= d
		}
	}
	total := graph.Product(w.w.Shape)
	if free >= 0 && p > 0 && total%p == 0 {
		shape[free] = total / p
	}
	rowsOnly := len(shape) > 0 && shape[len(shape)-1] == w.w.Cols()
	return w.derive("reshape", rowsOnly, func(x *graph.Weight) (*graph.Weight, error) { return graph.ReshapeWeight(x, shape) })
}

const docPermute = `permute(w, order, axis=0)
Index i of the axis is index order[i] of the stored weight.
- w: a weight.
- order: a list with every index of the axis once.
- axis: any but the last keeps any storage type.
`

// doPermute orders the indices of an axis of a weight.
func doPermute(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var w *weightValue
	var order intList
	axis := 0
	if err := starlark.UnpackArgs(name, args, kwargs, "w", &w, "order", &order, "axis?", &axis); err != nil {
		return nil, err
	}
	if w.w == nil {
		return w, nil
	}
	rowsOnly := axis < len(w.w.Shape)-1
	return w.derive(name, rowsOnly, func(x *graph.Weight) (*graph.Weight, error) { return graph.PermuteWeight(x, axis, order) })
}

const docUnpermute = `unpermute(w, d)
The rows of query or key weights (or biases) that a converter put into interleaved rotary order, in half order again: of each head, stored row 2j is row j, stored row 2j + 1 is row j + d/2.
What llama.cpp's converter does to the families whose rows it permutes.
- w: a weight [heads·d, …].
- d: the width of a head.
Errors: rows that d does not divide.
`

// doUnpermute undoes the reordering of query and key rows from half-split to
// interleaved rotary pairs: of each head of d rows, stored row 2j is row j,
// stored row 2j+1 is row j+d/2.
// Source: llama.cpp, convert_hf_to_gguf.py, permute.
func doUnpermute(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var w *weightValue
	var d int
	if err := starlark.UnpackArgs(name, args, kwargs, "w", &w, "d", &d); err != nil {
		return nil, err
	}
	if w.w == nil {
		return w, nil
	}
	if len(w.w.Shape) == 0 || d < 2 || d%2 != 0 || w.w.Shape[0]%d != 0 {
		t.complain("unpermute: %v of %v does not divide into heads of %d", w.w.Shape, w.w, d)
		return &weightValue{t: t, name: w.name, typ: w.typ}, nil
	}
	key := [2]int{w.w.Shape[0] / d, d}
	perm, ok := t.perms[key]
	if !ok { // one list serves all tensors of a size
		perm = unpermuted(key[0], d)
		t.perms[key] = perm
	}
	return w.derive(name, len(w.w.Shape) > 1, func(x *graph.Weight) (*graph.Weight, error) { return graph.PermuteWeight(x, 0, perm) })
}

func unpermuted(heads, d int) []int {
	perm := make([]int, heads*d)
	for i := range perm {
		h, j := i/d, i%d
		if j < d/2 {
			perm[i] = h*d + 2*j
		} else {
			perm[i] = h*d + 2*(j-d/2) + 1
		}
	}
	return perm
}

const docMinusOne = `minus_one(w)
w − 1, at load: undoes a norm weight that is stored as 1 + w.
- w: a weight of a plain type (F32, F16, BF16).
`

// doMinusOne is the change that undoes a stored 1+w.
func doMinusOne(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var w *weightValue
	if err := starlark.UnpackArgs(name, args, kwargs, "w", &w); err != nil {
		return nil, err
	}
	return w.affine(1, -1)
}

const docWeightMap = `neg_exp(w)
−eʷ, at load.
- w: a weight of a plain type (F32, F16, BF16).
`

// doWeightMap applies a function to the values of a weight at load.
func doWeightMap(f string) builtinFunc {
	return func(_ *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var w *weightValue
		if err := starlark.UnpackArgs(name, args, kwargs, "w", &w); err != nil {
			return nil, err
		}
		return w.derive(name, false, func(x *graph.Weight) (*graph.Weight, error) { return graph.MapWeight(x, f) })
	}
}

const docRowNorms = `row_norms(w)
The length of each row, √Σw², at load: [.., n] gives [..]. A head whose rows are normalised is linear(x, w) / param(row_norms(w)).
- w: a weight of any type, or its name.
Errors: a vector.
`

// doRowNorms is the length of each row of a weight, of any stored type.
func doRowNorms(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var weight starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "w", &weight); err != nil {
		return nil, err
	}
	w, err := t.named(weight)
	if err != nil {
		return nil, err
	}
	w, err = w.derive(name, true, graph.RowNormsWeight)
	if err != nil {
		return nil, err
	}
	w.typ = quant.F32
	return w, nil
}

// exprs are the expressions of a list of weights; ok is false if one is unknown.
func exprs(list []*weightValue) (ws []*graph.Weight, ok bool) {
	for _, w := range list {
		if w.w == nil {
			return nil, false
		}
		ws = append(ws, w.w)
	}
	return ws, true
}

func (t *tracer) concatWeights(list []*weightValue, axis int) (starlark.Value, error) {
	ws, ok := exprs(list)
	if !ok {
		return &weightValue{t: t, name: list[0].name}, nil
	}
	if axis < 0 {
		axis += len(ws[0].Shape)
	}
	return list[0].derive("concat", axis < len(ws[0].Shape)-1, func(*graph.Weight) (*graph.Weight, error) { return graph.ConcatWeights(axis, ws...) })
}

const docStack = `stack(parts)
Weights of one shape and type as one with a new first axis.
- parts: a list of weights or names.
`

func doStack(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list starlark.Iterable
	if err := starlark.UnpackArgs(name, args, kwargs, "parts", &list); err != nil {
		return nil, err
	}
	var parts []*weightValue
	i := list.Iterate()
	defer i.Done()
	for item := starlark.Value(nil); i.Next(&item); {
		w, err := t.named(item)
		if err != nil {
			return nil, fmt.Errorf("stack: %w", err)
		}
		parts = append(parts, w)
	}
	return t.stackWeights(parts)
}

func (t *tracer) stackWeights(parts []*weightValue) (starlark.Value, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("stack: nothing to stack")
	}
	ws, ok := exprs(parts)
	if !ok {
		return &weightValue{t: t, name: parts[0].name}, nil
	}
	for _, p := range parts {
		if p.typ != parts[0].typ {
			t.complain("stack: %v is %s, %v is %s", parts[0].w, parts[0].typ, p.w, p.typ)
			return &weightValue{t: t, name: parts[0].name}, nil
		}
	}
	return parts[0].derive("stack", true, func(*graph.Weight) (*graph.Weight, error) { return graph.StackWeights(ws...) })
}

const docStacked = `stacked(pattern, n)
One weight [n, …] of tensors that are numbered by {e}: "model.layers.0.mlp.experts.{e}.up_proj". Where the file holds them as one already (under a GGUF name without
{e}), that one.
- pattern: a name with {e}.
- n: how many there are.
Errors: missing tensors by name; a stored stack of another size; types that differ.
`

// doStacked is the tensor [n, …] of numbered tensors: stored one by one, or
// already stacked under a name without {e}.
func doStacked(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var pattern string
	var n int
	if err := starlark.UnpackArgs(name, args, kwargs, "pattern", &pattern, "n", &n); err != nil {
		return nil, err
	}
	if n < 1 || n > maxNodes || !strings.Contains(pattern, "{e}") {
		return nil, fmt.Errorf("stacked: takes a name with {e} and the number of tensors, got %q and %d", pattern, n)
	}
	v, err := t.stacked(pattern, n)
	if w, ok := v.(*weightValue); ok && err == nil {
		t.asked.tensor(pattern, n, w)
	}
	return v, err
}

func (t *tracer) stacked(pattern string, n int) (starlark.Value, error) {
	t.asked.pause()
	defer t.asked.goOn()
	if t.asked != nil && t.asked.supply != nil {
		t.asked.supply(t, pattern, n)
	}
	for _, p := range []string{pattern, pattern + ".weight"} {
		for _, c := range t.names.candidates(p) {
			if _, ok := t.files.Tensor(c); !ok || strings.Contains(c, "{e}") {
				continue
			}
			w, err := t.lookup(p)
			if err == nil && w != nil && w.w != nil && (len(w.w.Shape) == 0 || w.w.Shape[0] != n) {
				t.complain("stacked: %v holds %v, expected %d first", w.w, w.w.Shape, n)
				w = &weightValue{t: t, name: p}
			}
			return w, err
		}
	}
	if w, err := t.stackPlain(pattern, n); w != nil || err != nil {
		return w, err
	}
	return t.stackNumbered(pattern, n)
}

// stackPlain stacks tensors that differ in one number of their stored names and
// whose values nothing changes, as thousands of experts do, with few
// allocations; nil where some do not.
func (t *tracer) stackPlain(pattern string, n int) (*weightValue, error) {
	if t.names.entries.literal || t.names.aliases.literal {
		return nil, nil // a name of its own for one of them, perhaps
	}
	key, _ := generalise(pattern)
	if t.changes[key] != nil || t.changes[key+".weight"] != nil {
		return nil, nil
	}
	for _, name := range []string{pattern + ".weight", pattern} {
		for _, c := range t.names.candidates(name) {
			before, after, ok := strings.Cut(c, "{e}")
			if !ok {
				continue
			}
			if _, ok := t.files.Tensor(before + "0" + after); ok {
				return t.stackSeries(before, after, n)
			}
		}
	}
	return nil, nil
}

// stackNumbered stacks n tensors stored one by one.
func (t *tracer) stackNumbered(pattern string, n int) (starlark.Value, error) {
	parts := make([]*weightValue, n)
	before, after, _ := strings.Cut(pattern, "{e}")
	for e := range parts {
		if t.full() {
			return nil, fmt.Errorf("stacked: too many problems")
		}
		full := before + strconv.Itoa(e) + after
		w, err := t.find(full + ".weight")
		if w == nil && err == nil {
			w, err = t.find(full)
		}
		if err != nil {
			return nil, err
		}
		if w == nil {
			w = t.missing(full + ".weight")
		}
		parts[e] = w
	}
	return t.stackWeights(parts)
}

const docMXFP4 = `mxfp4(blocks, scales)
Blocks and scales that are stored as bytes, as one weight of type MXFP4.
- blocks: a tensor of bytes [.., blocks, 16], or its name.
- scales: a tensor of bytes [.., blocks], or its name.
`

// doMXFP4 joins blocks and scales stored as bytes to one MXFP4 tensor.
func doMXFP4(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var blocks, scales starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "blocks", &blocks, "scales", &scales); err != nil {
		return nil, err
	}
	b, err := t.named(blocks)
	if err != nil {
		return nil, err
	}
	s, err := t.named(scales)
	if err != nil {
		return nil, err
	}
	if b.w == nil || s.w == nil {
		return &weightValue{t: t, name: b.name}, nil
	}
	w, err := b.derive(name, true, func(x *graph.Weight) (*graph.Weight, error) { return graph.MXFP4Weight(x, s.w) })
	if w != nil {
		w.typ = quant.MXFP4
	}
	return w, err
}
