package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// activations gives the operation of each name that config.json files use.
// Source: transformers, activations.py (ACT2FN).
var activations = map[string]string{
	"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_fast": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
	"gelu_python_tanh": "gelu_tanh", "gelu_accurate": "gelu_tanh", "gelu_tanh": "gelu_tanh", "quick_gelu": "gelu_quick", "gelu_quick": "gelu_quick",
	"silu": "silu", "swish": "silu", "relu": "relu", "relu2": "relu2", "relu_squared": "relu2", "tanh": "tanh", "sigmoid": "sigmoid",
}

func activationOf(name string) (string, error) {
	f, ok := activations[name]
	if !ok {
		return "", fmt.Errorf("activation: no function %s here; known are %s", shown(name), strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	return f, nil
}

const docActivation = `activation(name, x)
The function that config.json names, elementwise: silu and swish; gelu and gelu_python (exact); gelu_new, gelu_fast, gelu_pytorch_tanh, gelu_python_tanh, gelu_accurate and
gelu_tanh (the tanh form); quick_gelu and gelu_quick; relu; relu2 and relu_squared; tanh; sigmoid; and, slower, mish,
hardswish, leaky_relu (0.01), relu6, gelu_10 (cut at ±10), sqrtsoftplus and linear.
- name: one of the names above.
- x: a value.
Errors: another name.
`

// doActivation applies the function that config.json names.
func doActivation(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var f string
	if err := starlark.UnpackArgs(name, args, kwargs, "name", &f, "x", &x); err != nil {
		return nil, err
	}
	if compose, ok := composedActivations[f]; ok {
		return compose(t, x)
	}
	f, err := activationOf(f)
	if err != nil {
		return nil, err
	}
	return t.unary(f, x, 0, 0)
}

func docBinary(name, formula string) string {
	return name + "(x, y)\n" + formula + ", elementwise; trailing axes that are equal or 1 fit, as in NumPy.\n- x, y: values, weights or numbers.\n"
}

// composedActivations are the rarer functions, of several operations each.
// Source: transformers, activations.py; torch.nn.
var composedActivations = map[string]func(t *tracer, x *value) (*value, error){
	"linear": func(_ *tracer, x *value) (*value, error) { return x, nil },
	"relu6":  func(t *tracer, x *value) (*value, error) { return t.unary("clamp", x, 0, 6) },
	"gelu_10": func(t *tracer, x *value) (*value, error) {
		return t.chain(x, step{"gelu", 0, 0}, step{"clamp", -10, 10})
	},
	"sqrtsoftplus": func(t *tracer, x *value) (*value, error) {
		return t.chain(x, step{"softplus", 0, 0}, step{"sqrt", 0, 0})
	},
	"mish": func(t *tracer, x *value) (*value, error) {
		return t.gatedBy(x, step{"softplus", 0, 0}, step{"tanh", 0, 0})
	},
	"hardswish": func(t *tracer, x *value) (*value, error) {
		return t.gatedBy(x, step{"add", 3, 0}, step{"clamp", 0, 6}, step{"scale", 1.0 / 6, 0})
	},
	"leaky_relu": func(t *tracer, x *value) (*value, error) {
		y, err := t.unary("scale", x, 0.01, 0)
		if err != nil {
			return nil, err
		}
		return t.binary("max", x, y)
	},
}

// step is one operation of a composed activation.
type step struct {
	f    string
	a, b float64
}

// chain applies the steps one after the other.
func (t *tracer) chain(x *value, steps ...step) (*value, error) {
	var err error
	for _, s := range steps {
		if x, err = t.unary(s.f, x, s.a, s.b); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// gatedBy is x times the chain of x.
func (t *tracer) gatedBy(x *value, steps ...step) (*value, error) {
	y, err := t.chain(x, steps...)
	if err != nil {
		return nil, err
	}
	return t.binary("mul", x, y)
}
