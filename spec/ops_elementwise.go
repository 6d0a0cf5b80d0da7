package spec

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// docUnary documents a function of one value by its formula.
func docUnary(name string) string {
	return name + "(x)\n" + graph.UnaryFuncs[name] + ", elementwise.\n- x: a value of any shape.\n"
}

// doUnary is a function of one value without parameters.
func doUnary(f string) builtinFunc {
	return func(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var x *value
		if f == "abs" && len(args) == 1 { // of numbers it is Starlark's own
			if _, ok := args[0].(*value); !ok {
				return starlark.Call(t.thread, starlark.Universe["abs"], args, kwargs)
			}
		}
		if err := starlark.UnpackArgs(name, args, kwargs, "x", &x); err != nil {
			return nil, err
		}
		return t.unary(f, x, 0, 0)
	}
}

const docClamp = `clamp(x, lo, hi)
min(max(x, lo), hi), elementwise.
- x: a value.
- lo, hi: numbers; math.inf and -math.inf for an open end.
`

func doClamp(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var lo, hi number
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "lo", &lo, "hi", &hi); err != nil {
		return nil, err
	}
	return t.unary("clamp", x, float64(lo), float64(hi))
}

const docSoftcap = `softcap(x, cap)
cap · tanh(x / cap), elementwise.
- x: a value.
- cap: a finite number above 0; None or 0 changes nothing.
`

// doSoftcap is cap·tanh(x/cap); None or 0 caps nothing.
func doSoftcap(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	limit := starlark.Value(starlark.None)
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "cap", &limit); err != nil {
		return nil, err
	}
	c, err := capOf("softcap", limit)
	if err != nil || c == 0 {
		return x, err
	}
	return t.unary("softcap", x, c, 0)
}

// optional reads a number, None as 0.
func optional(what string, v starlark.Value) (float64, error) {
	if v == nil || v == starlark.None {
		return 0, nil
	}
	f, ok := starlark.AsFloat(v)
	if !ok {
		return 0, fmt.Errorf("%s: got %s, want a number or None", what, v.Type())
	}
	return f, nil
}

// capOf reads what tanh is stretched to, None and 0 as none. Below 0 and beyond
// float32 it would mean nothing.
func capOf(what string, v starlark.Value) (float64, error) {
	c, err := optional(what, v)
	if err != nil || c == 0 {
		return 0, err
	}
	if f := float32(c); !(f > 0) || math.IsInf(float64(f), 0) || math.IsInf(float64(1/f), 0) {
		return 0, fmt.Errorf("%s: got %s, want a finite number above 0, or None or 0 for none", what, cut(v.String()))
	}
	return c, nil
}

// optionalInt reads an int, None as 0.
func optionalInt(what string, v starlark.Value) (int, error) {
	if v == nil || v == starlark.None {
		return 0, nil
	}
	i, err := starlark.AsInt32(v)
	if err != nil || i < 0 {
		return 0, fmt.Errorf("%s: got %s, want a whole number from 0 to 2147483647, or None", what, cut(v.String()))
	}
	return i, nil
}

const docPower = `power(x, p)
x to the power p, elementwise.
- x: a value.
- p: a number.
`

func doPower(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var p number
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "p", &p); err != nil {
		return nil, err
	}
	return t.unary("pow", x, float64(p), 0)
}

const docElu = `elu(x, alpha=1)
x where x > 0, else alpha · (eˣ − 1), elementwise.
- x: a value.
- alpha: a number.
`

func doElu(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	alpha := number(1)
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "alpha?", &alpha); err != nil {
		return nil, err
	}
	return t.unary("elu", x, float64(alpha), 0)
}

// doBinary is a function of two values, or of a value and a number.
func doBinary(f string) builtinFunc {
	return func(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var x, y starlark.Value
		if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "y", &y); err != nil {
			return nil, err
		}
		a, err := t.valueOf(x)
		if err != nil {
			return nil, err
		}
		b, err := t.valueOf(y)
		if err != nil {
			return nil, err
		}
		return t.binary(f, a, b)
	}
}

// valueOf makes a number or a weight a value.
func (t *tracer) valueOf(x starlark.Value) (*value, error) {
	switch x := x.(type) {
	case *value:
		return x, nil
	case *weightValue:
		return t.param(x), nil
	}
	f, ok := starlark.AsFloat(x)
	if !ok {
		return nil, fmt.Errorf("expected a value, a weight or a number, got %s", x.Type())
	}
	return t.made(t.b.Const([]float64{f}, []int{}))
}

const docWhere = `where(cond, x, y)
x where cond is not 0, else y, elementwise with broadcast.
- cond, x, y: values, weights or numbers; less(a, b) makes a condition.
`

func doWhere(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var c, x, y starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "cond", &c, "x", &x, "y", &y); err != nil {
		return nil, err
	}
	in := make([]*value, 3)
	for i, v := range []starlark.Value{c, x, y} {
		var err error
		if in[i], err = t.valueOf(v); err != nil {
			return nil, err
		}
	}
	return t.apply(graph.OpWhere, nil, in...)
}

func docReduce(name, what string) string {
	return name + "(x)\n" + what + " over the last axis, which becomes 1: [.., d] gives [.., 1].\n- x: a value [.., d].\n"
}

func doReduce(f string) builtinFunc {
	return func(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var x *value
		if err := starlark.UnpackArgs(name, args, kwargs, "x", &x); err != nil {
			return nil, err
		}
		return t.apply(graph.OpReduce, &graph.ReduceAttr{F: f}, x)
	}
}

const docBalance = `doubly_stochastic(x, rounds, eps)
Square matrices whose rows and columns sum to 1 (Sinkhorn and Knopp 1967): softmax of each row, plus eps; then the columns are divided by their sums, and in each further round the rows and the
columns. Hyper-connections mix their streams so (Xie et al. 2026). Shape as x.
- x: a value [.., n, n].
- rounds: how often; the first divides the columns alone.
- eps: is added to every sum.
Errors: matrices that are not square.
`

func doBalance(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var a graph.BalanceAttr
	var eps number
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "rounds", &a.Rounds, "eps", &eps); err != nil {
		return nil, err
	}
	a.Eps = float64(eps)
	return t.apply(graph.OpBalance, &a, x)
}

const docSoftmax = `softmax(x)
eˣ / Σeˣ over the last axis.
- x: a value [.., d].
`

func doSoftmax(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x); err != nil {
		return nil, err
	}
	return t.apply(graph.OpSoftmax, nil, x)
}
