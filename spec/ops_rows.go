package spec

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docTokens = `tokens()
The token's id, as a number. Shape []. Arithmetic, less and where work on it, as on any value; embed takes it, and whole numbers that are computed from it, as an index. In an encoder(c) it is
the source's. Ids up to 16777216 are exact, and so must be what is computed from them: floor(x / m) * m and the like.
`

func doTokens(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(name, args, kwargs); err != nil {
		return nil, err
	}
	return &value{t: t, node: t.b.Tokens()}, nil
}

const docPositions = `positions(offset=0, pad=None)
The token's absolute position in its sequence, as a number. Shape [].
- offset: is added; embed("wpe", index=positions(2)) is a learned table with two rows in front.
- pad: the id of a token that takes no place: the position is the number of other tokens before it, plus offset; where the token itself is
  pad, offset − 1.
`

func doPositions(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := &graph.PositionsAttr{Memory: t.b.Memory}
	pad := starlark.Value(starlark.None)
	if err := starlark.UnpackArgs(name, args, kwargs, "offset?", &a.Offset, "pad?", &pad); err != nil {
		return nil, err
	}
	if pad != starlark.None {
		n, err := starlark.AsInt32(pad)
		if err != nil {
			return nil, fmt.Errorf("positions: pad is the id of a token, or None: %w", err)
		}
		a.Count, a.Pad = true, n
	}
	return t.made(t.b.Add(graph.OpPositions, a, nil))
}

const docEmbed = `embed(table, index=tokens(), guard=0, tied="", before=None)
Row index of a table [rows, …]. Shape: the table's without its first axis.
- table: the name of a tensor (.weight is appended if need be), or a weight.
- index: the value that chooses the row, shape []: tokens(), positions(), or arithmetic on them whose outcome is a whole number.
- guard: an index at or beyond it reads row 0 (0: none is).
- tied: the tensor that serves where table is not stored.
- before: rows [n, …] (a name or a weight) that stand before each text and run through all layers as tokens do: learned registers, meta tokens, prefixes. They take positions 0 … n−1 and
room in the context, the text begins at n; tokens() gives the numbers of rows of table and on for them, and no logits are asked of them.
Errors: before= in an encoder, or where other tables of tokens lack it. A table with fewer than two axes; an index that is not one number a row. When the model runs: an index that is no whole number, or outside the table.
`

func doEmbed(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var table starlark.Value
	var index *value
	var guard int
	var tied string
	var before starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "table", &table, "index?", &index, "guard?", &guard, "tied?", &tied, "before?", &before); err != nil {
		return nil, err
	}
	w, err := t.operand(table, tied)
	if err != nil {
		return nil, err
	}
	if index == nil {
		index = &value{t: t, node: t.b.Tokens()}
	}
	var lead *weightValue
	if !isNone(before) {
		if lead, err = t.named(before); err != nil {
			return nil, fmt.Errorf("embed: before: %w", err)
		}
	}
	if w.w == nil || index.node == nil || lead != nil && lead.w == nil {
		return &value{t: t}, nil
	}
	t.b.Name = baseName(w.name)
	if lead != nil {
		return t.made(t.b.EmbedLed(index.node, w.w, lead.w, guard))
	}
	return t.made(t.b.Embed(index.node, w.w, guard))
}

// operand is a weight given by name or as an expression. tied names another
// tensor that serves where the first is not stored.
func (t *tracer) operand(v starlark.Value, tied string) (*weightValue, error) {
	switch v := v.(type) {
	case *weightValue:
		return v, nil
	case starlark.String:
		if tied != "" {
			w, err := t.weight(string(v))
			if w != nil || err != nil {
				return w, err
			}
			if w, err = t.weight(tied); w != nil || err != nil {
				return w, err
			}
		}
		return t.need(string(v))
	}
	return nil, fmt.Errorf("expected the name of a tensor or a weight, got %s", v.Type())
}

const docLinear = `linear(x, weight, bias=None, tied="", transposed=False)
x·Wᵀ + b over the last axis: [.., in] gives [.., out] with W [out, in], as torch.nn.Linear. The result bears the name of the weight: "spec trace" compares it
with the output of the module of that name.
- x: a value [.., in].
- weight: the name of a tensor (NAME reads NAME.weight, else NAME), or a weight.
- bias: None takes NAME.bias if it is stored, True demands it, False complains of one; or the name of a tensor, or a weight.
- tied: the tensor that serves where weight is not stored; a stored one wins. linear(x, "lm_head", tied = "model.embed_tokens").
- transposed: the weight is stored as [in, out], as GPT-2's Conv1D does.
Errors: a weight whose columns are not the width of x, a bias that is not [out].
`

func doLinear(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var a struct { // in one piece: it is on the heap, once for each of thousands of linears
		x            *value
		weight, bias starlark.Value
		tied         string
		transposed   bool
	}
	a.bias = starlark.None
	err := starlark.UnpackArgs(name, args, kwargs, "x", &a.x, "weight", &a.weight, "bias?", &a.bias, "tied?", &a.tied, "transposed?", &a.transposed)
	if err != nil {
		return nil, err
	}
	w, err := t.operand(a.weight, a.tied)
	if err != nil {
		return nil, err
	}
	if a.transposed {
		w, err = w.derive("transpose", false, func(x *graph.Weight) (*graph.Weight, error) { return graph.TransposeWeight(x, []int{1, 0}) })
		if err != nil {
			return nil, err
		}
	}
	b, err := t.bias(a.weight, a.bias)
	if err != nil {
		return nil, err
	}
	if a.x.node == nil || w.w == nil {
		return &value{t: t}, nil
	}
	var bw *graph.Weight
	if b != nil {
		bw = b.w
	}
	t.b.Name = baseName(w.name)
	if n, ok := starlark.AsString(a.weight); ok {
		t.b.Name = n // not that of a tied tensor
	}
	return t.made(t.b.Linear(a.x.node, w.w, bw))
}

// bias finds the bias of a linear: given as a weight or name; True demands a
// stored one, False refuses it, None takes it if stored.
func (t *tracer) bias(weight, bias starlark.Value) (*weightValue, error) {
	name, named := starlark.AsString(weight)
	switch b := bias.(type) {
	case *weightValue:
		return b, nil
	case starlark.String:
		return t.named(b)
	case starlark.Bool:
		if !named && !bool(b) {
			return nil, nil
		}
		if !named {
			return nil, fmt.Errorf("linear: bias of an unnamed weight is a weight or a name")
		}
		w, err := t.lookup(name + ".bias")
		if err != nil {
			return nil, err
		}
		if bool(b) && w == nil {
			return t.missing(name + ".bias"), nil
		}
		if !bool(b) && w != nil {
			t.complain("%s.bias is stored, but the specification says that there is none", name)
			return nil, nil
		}
		return w, nil
	case starlark.NoneType:
		if named {
			return t.lookup(name + ".bias")
		}
		return nil, nil
	}
	return nil, fmt.Errorf("linear: bias is True, False, None, a name or a weight, got %s", bias.Type())
}

const docParam = `param(weight)
A stored tensor as a value that is the same for every token. Shape: the tensor's.
- weight: the name of a tensor as it is stored (with or without .weight), or a weight. It is read whole as float32: meant for vectors and small tables.
`

func doParam(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var weight starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "weight", &weight); err != nil {
		return nil, err
	}
	w, err := t.named(weight)
	if err != nil {
		return nil, err
	}
	return t.param(w), nil
}

// named is a weight, or a tensor under its name as it stands.
func (t *tracer) named(v starlark.Value) (*weightValue, error) {
	s, ok := starlark.AsString(v)
	if !ok {
		return t.operand(v, "")
	}
	w, err := t.tensor(s)
	if w == nil && err == nil {
		w = t.missing(s)
	}
	return w, err
}

const docConst = `const(numbers, shape=[len(numbers)])
Numbers of the specification as a value that is the same for every token.
- numbers: a list of numbers.
- shape: a number or a list; its product must be the count of the numbers. const([3], shape = []) is a lone number, [].
`

func doConst(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var numbers starlark.Iterable
	var shape intList
	if err := starlark.UnpackArgs(name, args, kwargs, "numbers", &numbers, "shape?", &shape); err != nil {
		return nil, err
	}
	var values []float64
	i := numbers.Iterate()
	defer i.Done()
	for item := starlark.Value(nil); i.Next(&item); {
		f, ok := starlark.AsFloat(item)
		if !ok {
			return nil, fmt.Errorf("const: expected numbers, got %s", item.Type())
		}
		values = append(values, f)
	}
	if shape == nil {
		shape = intList{len(values)}
	}
	return t.made(t.b.Const(values, shape))
}

// normArgs are what all norms share.
type normArgs struct {
	x      *value
	weight starlark.Value
	eps    number
	offset number
	groups int
	bias   starlark.Value
}

// absentEps stands for an eps that was not given.
const absentEps = -math.MaxFloat64

func (t *tracer) norm(kind graph.NormKind, a normArgs) (starlark.Value, error) {
	if a.eps == absentEps {
		if n, ok := a.weight.(starlark.Float); ok {
			return nil, fmt.Errorf("%s_norm: eps is missing, and the second argument, a weight, is the number %v: %s_norm(x, eps = %v) is the norm without a weight", kind, n, kind, n)
		}
		return nil, fmt.Errorf("%s_norm: eps is missing: %s_norm(x, NAME, eps), or %s_norm(x, eps = …) without a weight", kind, kind, kind)
	}
	if !(a.eps >= 0 && a.eps <= math.MaxFloat32) {
		return nil, fmt.Errorf("%s_norm: eps%s is %g, expected a finite number of at least 0", kind, t.config.epsKey(float64(a.eps)), float64(a.eps))
	}
	attr := graph.NormAttr{Kind: kind, Eps: float64(a.eps), Offset: float64(a.offset), Groups: a.groups}
	label := ""
	if a.weight != nil && a.weight != starlark.None {
		w, err := t.operand(a.weight, "")
		if err != nil {
			return nil, err
		}
		b, err := t.bias(a.weight, a.bias)
		if err != nil {
			return nil, err
		}
		if w.w == nil {
			return &value{t: t}, nil
		}
		attr.W, label = w.w, baseName(w.name)
		if b != nil {
			attr.B = b.w
		}
	}
	if a.x.node == nil {
		return a.x, nil
	}
	t.b.Name = label
	return t.made(t.b.Norm(a.x.node, attr))
}

const docRMSNorm = `rms_norm(x, weight=None, eps, offset=0, groups=1)
x / √(mean(x²) + eps) · (offset + w) over the last axis. Shape as x. eps must be given: rms_norm(x, NAME, 1e-6).
- x: a value [.., d].
- weight: the name of a tensor or a weight, [d], or shaped as x (one for each head); None: no factor.
- eps: a number of at least 0.
- offset: is added to the weight; 1 where the reference multiplies by (1 + w).
- groups: the axis is normalised in so many equal parts.
Errors: a weight that is neither [d] nor shaped as x; an eps that is negative or not finite; NAME.bias stored (that is a layer_norm).
`

func doRMSNorm(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := normArgs{bias: starlark.False, eps: absentEps}
	err := starlark.UnpackArgs(name, args, kwargs, "x", &a.x, "weight?", &a.weight, "eps", &a.eps, "offset?", &a.offset, "groups?", &a.groups)
	if err != nil {
		return nil, err
	}
	if _, isName := a.weight.(starlark.String); !isName {
		a.bias = starlark.None
	}
	return t.norm(graph.RMS, a)
}

const docLayerNorm = `layer_norm(x, weight=None, eps, bias=None, offset=0, groups=1)
(x − mean) / √(var + eps) · (offset + w) + b over the last axis, with the population variance, as torch.nn.LayerNorm. Shape as x.
- x: a value [.., d].
- weight: the name of a tensor or a weight, [d] or shaped as x; None: no factor and no bias.
- eps: a number of at least 0.
- bias: None takes NAME.bias if it is stored, True demands it, False complains of one; or a name or weight.
- offset: is added to the weight.
- groups: the axis is normalised in so many equal parts.
Errors: as rms_norm.
`

func doLayerNorm(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := normArgs{bias: starlark.None, eps: absentEps}
	err := starlark.UnpackArgs(name, args, kwargs, "x", &a.x, "weight?", &a.weight, "eps", &a.eps, "bias?", &a.bias, "offset?", &a.offset, "groups?", &a.groups)
	if err != nil {
		return nil, err
	}
	return t.norm(graph.Layer, a)
}

const docL2Norm = `l2_norm(x, eps)
x / √(Σx² + eps) over the last axis. Shape as x. (torch.nn.functional.normalize divides by max(‖x‖, eps) instead: equal but for tiny x.)
- x: a value [.., d].
- eps: a number of at least 0.
`

func doL2Norm(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := normArgs{eps: -1}
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &a.x, "eps", &a.eps); err != nil {
		return nil, err
	}
	return t.norm(graph.L2, a)
}
