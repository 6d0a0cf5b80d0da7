package ref

import (
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/graph"
)

// Unary returns the function of an elementwise operation in float64.
func Unary(a *graph.UnaryAttr) (func(float64) float64, error) {
	A, B := a.A, a.B
	switch a.F {
	case "scale":
		return func(x float64) float64 { return A * x }, nil
	case "add":
		return func(x float64) float64 { return x + A }, nil
	case "pow":
		return func(x float64) float64 { return math.Pow(x, A) }, nil
	case "clamp":
		return func(x float64) float64 { return math.Min(math.Max(x, A), B) }, nil
	case "softcap":
		return func(x float64) float64 { return A * math.Tanh(x/A) }, nil
	case "elu":
		return func(x float64) float64 {
			if x > 0 {
				return x
			}
			return A * math.Expm1(x)
		}, nil
	}
	if f, ok := plain[a.F]; ok {
		return f, nil
	}
	return nil, fmt.Errorf("unknown elementwise function %q", a.F)
}

var plain = map[string]func(float64) float64{
	"neg": func(x float64) float64 { return -x }, "abs": math.Abs, "exp": math.Exp, "log": math.Log, "log1p": math.Log1p,
	"expm1": math.Expm1, "sqrt": math.Sqrt, "rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"square": func(x float64) float64 { return x * x }, "floor": math.Floor, "round": math.RoundToEven, "sigmoid": sigmoid, "tanh": math.Tanh,
	"softplus":   softplus,
	"relu":       func(x float64) float64 { return math.Max(x, 0) },
	"relu2":      func(x float64) float64 { r := math.Max(x, 0); return r * r },
	"silu":       func(x float64) float64 { return x * sigmoid(x) },
	"gelu":       func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) },
	"gelu_tanh":  geluTanh,
	"gelu_quick": func(x float64) float64 { return x * sigmoid(1.702*x) },
	"sin":        math.Sin, "cos": math.Cos,
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x float64) float64 {
	if x > 20 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

func geluTanh(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func unary(a *graph.UnaryAttr, x, out *Value) error {
	f, err := Unary(a)
	if err != nil {
		return err
	}
	for i, v := range x.Data {
		out.Data[i] = float32(f(float64(v)))
	}
	return nil
}

// Binary returns the function of an elementwise operation of two values.
func Binary(name string) (func(x, y float64) float64, error) {
	f, ok := map[string]func(x, y float64) float64{
		"add": func(x, y float64) float64 { return x + y },
		"sub": func(x, y float64) float64 { return x - y },
		"mul": func(x, y float64) float64 { return x * y },
		"div": func(x, y float64) float64 { return x / y },
		"max": math.Max, "min": math.Min, "pow": math.Pow,
		"less": func(x, y float64) float64 {
			if x < y {
				return 1
			}
			return 0
		},
	}[name]
	if !ok {
		return nil, fmt.Errorf("unknown operation %q of two values", name)
	}
	return f, nil
}

// indexer maps a flat index of shape out to one of shape in, where in's
// dimensions of size one (or missing leading ones) repeat.
func indexer(in, out []int) []int {
	n := graph.Product(out)
	idx := make([]int, n)
	st := make([]int, len(out))
	s := 1
	for i := len(in) - 1; i >= 0; i-- {
		o := len(out) - len(in) + i
		if in[i] > 1 {
			st[o] = s
		}
		s *= in[i]
	}
	for i := range idx {
		r, k := i, 0
		for d := len(out) - 1; d >= 0; d-- {
			k += r % out[d] * st[d]
			r /= out[d]
		}
		idx[i] = k
	}
	return idx
}

func (m *Machine) broadcast(n *graph.Node, in []*Value, out *Value) error {
	maps := make([][]int, len(in))
	for i, id := range n.In {
		maps[i] = indexer(m.Graph.Nodes[id].Shape, n.Shape)
	}
	f, err := pickFunc(n)
	if err != nil {
		return err
	}
	args := make([]float64, len(in))
	for t := 0; t < out.Rows; t++ {
		y := out.Row(t)
		for i := range y {
			for k, v := range in {
				args[k] = float64(v.Row(t)[maps[k][i]])
			}
			y[i] = float32(f(args))
		}
	}
	return nil
}

func pickFunc(n *graph.Node) (func([]float64) float64, error) {
	if n.Op == graph.OpWhere {
		return func(a []float64) float64 {
			if a[0] != 0 {
				return a[1]
			}
			return a[2]
		}, nil
	}
	f, err := Binary(n.Attr.(*graph.BinaryAttr).F)
	return func(a []float64) float64 { return f(a[0], a[1]) }, err
}
