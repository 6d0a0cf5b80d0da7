package cpu

import (
	"math"

	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/vec"
)

// kernels are the elementwise functions that have a vector kernel.
var kernels = map[string]func(dst, x []float32){
	"silu": vec.SiLU, "gelu": vec.GELUErf, "gelu_tanh": vec.GELUTanh, "relu": vec.ReLU, "relu2": vec.ReLU2,
	"sigmoid": vec.Sigmoid, "tanh": vec.Tanh, "exp": vec.Exp,
}

// gates are the activations that have a kernel with the product fused.
var gates = map[string]func(dst, gate, up []float32){
	"silu": vec.SiLUMul, "gelu": vec.GELUErfMul, "gelu_tanh": vec.GELUTanhMul,
}

// unaryKernel returns dst = f(x); functions without a kernel run the reference.
func unaryKernel(a *graph.UnaryAttr) (func(dst, x []float32), error) {
	if k, ok := kernels[a.F]; ok {
		return k, nil
	}
	p := float32(a.A)
	switch a.F {
	case "scale":
		return func(dst, x []float32) { vec.Scale(dst, x, p) }, nil
	case "softcap":
		return func(dst, x []float32) { vec.Softcap(dst, x, p) }, nil
	}
	f, err := ref.Unary(a)
	if err != nil {
		return nil, err
	}
	return func(dst, x []float32) {
		for i, v := range x {
			dst[i] = float32(f(float64(v)))
		}
	}, nil
}

func activation(a *graph.UnaryAttr) (func(x []float32), error) {
	k, err := unaryKernel(a)
	if err != nil {
		return nil, err
	}
	return func(x []float32) { k(x, x) }, nil
}

// gating returns dst = f(gate) ⊙ up; dst may be either of them, gate is spent.
func gating(a *graph.UnaryAttr) (func(dst, gate, up []float32), error) {
	if g, ok := gates[a.F]; ok {
		return g, nil
	}
	k, err := unaryKernel(a)
	if err != nil {
		return nil, err
	}
	return func(dst, gate, up []float32) {
		k(gate, gate)
		vec.Mul(dst, gate, up)
	}, nil
}

// norm is a decoded norm over rows of any width.
type norm struct {
	kind        graph.NormKind
	w, b        []float32
	eps, offset float32
}

func (l *loader) makeNorm(a *graph.NormAttr) (*norm, error) {
	if a == nil {
		return nil, nil
	}
	n := &norm{kind: a.Kind, eps: float32(a.Eps), offset: float32(a.Offset)}
	var err error
	if n.w, err = l.vector(a.W); err != nil {
		return nil, err
	}
	if n.w != nil && a.Kind == graph.Layer && a.Offset != 0 {
		n.w = append([]float32{}, n.w...)
		for i := range n.w {
			n.w[i] += n.offset
		}
	}
	n.b, err = l.vector(a.B)
	return n, err
}

// row normalises x into dst; weights longer than x (one set a head) start at 0.
func (n *norm) row(dst, x []float32) { n.part(dst, x, 0) }

// part normalises x, which stands at value `at` of the norm's weights.
func (n *norm) part(dst, x []float32, at int) {
	w, b := n.w, n.b
	if w != nil {
		w = w[at%len(w) : at%len(w)+len(x)]
	}
	if b != nil {
		b = b[at%len(b) : at%len(b)+len(x)]
	}
	if n.kind == graph.RMS {
		vec.RMSNorm(dst, x, w, n.eps, n.offset)
		if b != nil {
			vec.Add(dst, dst, b)
		}
		return
	}
	if n.kind == graph.Layer {
		vec.LayerNorm(dst, x, w, b, n.eps)
		return
	}
	vec.Scale(dst, x, float32(1/math.Sqrt(float64(vec.SumSquares(x)+n.eps))))
	for i := range w {
		dst[i] *= n.offset + w[i]
	}
	if b != nil {
		vec.Add(dst, dst, b)
	}
}
