package graph

import (
	"fmt"
	"slices"
)

// Tensor is a stored tensor under its name in the file; shape is kept, not copied.
func Tensor(name string, shape []int) *Weight {
	return &Weight{Op: WTensor, Name: name, Shape: shape}
}

// ConcatWeights joins along axis.
func ConcatWeights(axis int, args ...*Weight) (*Weight, error) {
	return checked(&Weight{Op: WConcat, Args: args, Axis: axis})
}

// StackWeights makes a new leading dimension of equal shapes.
func StackWeights(args ...*Weight) (*Weight, error) { return checked(&Weight{Op: WStack, Args: args}) }

// StackTensors stacks stored tensors of one shape, as thousands of experts are:
// an expression of one piece. names is kept, not copied.
func StackTensors(names []string, shape []int) (*Weight, error) {
	return checked(&Weight{Op: WStack, Names: names, Shape: append([]int{len(names)}, shape...)})
}

// SliceWeight takes from ≤ i < to by step along axis.
func SliceWeight(w *Weight, axis, from, to, step int) (*Weight, error) {
	return checked(&Weight{Op: WSlice, Args: []*Weight{w}, Axis: axis, From: from, To: to, Step: step})
}

// ReshapeWeight keeps the values.
func ReshapeWeight(w *Weight, shape []int) (*Weight, error) {
	return checked(&Weight{Op: WReshape, Args: []*Weight{w}, Shape: slices.Clone(shape)})
}

// TransposeWeight orders the axes by perm.
func TransposeWeight(w *Weight, perm []int) (*Weight, error) {
	return checked(&Weight{Op: WTranspose, Args: []*Weight{w}, Perm: perm})
}

// PermuteWeight reorders the indices of an axis; perm is kept, not copied.
func PermuteWeight(w *Weight, axis int, perm []int) (*Weight, error) {
	return checked(&Weight{Op: WPermute, Args: []*Weight{w}, Axis: axis, Perm: perm})
}

// AffineWeight is a·w + b.
func AffineWeight(w *Weight, a, b float64) (*Weight, error) {
	return checked(&Weight{Op: WAffine, Args: []*Weight{w}, A: a, B: b})
}

// MapFuncs are the functions of WMap.
var MapFuncs = map[string]string{
	"exp": "eʷ", "neg_exp": "−eʷ", "softplus": "ln(1+eʷ)", "neg": "−w", "tanh": "tanh w", "inv": "1/w", "decoded": "w",
	"bits_0": "bits 0–1 of w, less 1", "bits_2": "bits 2–3 of w, less 1", "bits_4": "bits 4–5 of w, less 1", "bits_6": "bits 6–7 of w, less 1",
	"exp2_127": "2^(w−127)", "log": "ln w", "log_neg": "ln −w", "atanh": "artanh w", "softplus_inv": "ln(eʷ−1)",
}

// MapWeight applies a function of MapFuncs.
func MapWeight(w *Weight, f string) (*Weight, error) {
	return checked(&Weight{Op: WMap, Args: []*Weight{w}, F: f})
}

// MXFP4Weight joins blocks u8 [.., n, 16] and scales u8 [.., n] to [.., 32n].
func MXFP4Weight(blocks, scales *Weight) (*Weight, error) {
	return checked(&Weight{Op: WMXFP4, Args: []*Weight{blocks, scales}})
}

// ScaleWeight multiplies blocks of rows × cols of w [.., R, C] by the factors
// [.., ⌈R/rows⌉, ⌈C/cols⌉].
func ScaleWeight(w, factors *Weight, rows, cols int) (*Weight, error) {
	return checked(&Weight{Op: WScale, Args: []*Weight{w, factors}, Block: []int{rows, cols}})
}

// RowNormsWeight is the length of each row of w [.., n]: [..].
func RowNormsWeight(w *Weight) (*Weight, error) {
	return checked(&Weight{Op: WRowNorms, Args: []*Weight{w}})
}

func checked(w *Weight) (*Weight, error) {
	shape, err := weightShape(w)
	if err != nil {
		return nil, err
	}
	w.Shape = shape
	return w, nil
}

// weightShape computes the shape of an expression from those of its arguments.
func weightShape(w *Weight) ([]int, error) {
	if len(w.Names) > 0 {
		if w.Op != WStack || len(w.Args) > 0 || len(w.Shape) == 0 || w.Shape[0] != len(w.Names) {
			return nil, fmt.Errorf("weight %s: %d named tensors do not make %v", w.Op, len(w.Names), w.Shape)
		}
		return w.Shape, nil
	}
	if n, ok := weightArity[w.Op]; !ok || n >= 0 && len(w.Args) != n || n < 0 && len(w.Args) == 0 {
		return nil, fmt.Errorf("weight %s: takes another number of arguments than %d", w.Op, len(w.Args))
	}
	if slices.Contains(w.Args, nil) {
		return nil, fmt.Errorf("weight %s: an argument is missing", w.Op)
	}
	switch w.Op {
	case WTensor:
		return w.Shape, nil
	case WConst:
		if len(w.Data) != Product(w.Shape) {
			return nil, fmt.Errorf("weight const: %d numbers do not fill %v", len(w.Data), w.Shape)
		}
		return w.Shape, nil
	case WConcat:
		shapes := make([][]int, len(w.Args))
		for i, a := range w.Args {
			shapes[i] = a.Shape
		}
		return joined(shapes, w.Axis)
	case WStack:
		for _, a := range w.Args[1:] {
			if !slices.Equal(a.Shape, w.Args[0].Shape) {
				return nil, fmt.Errorf("stack: %v of %v and %v of %v differ", w.Args[0].Shape, w.Args[0], a.Shape, a)
			}
		}
		return append([]int{len(w.Args)}, w.Args[0].Shape...), nil
	case WSlice:
		return sliced(w.Args[0].Shape, w.Axis, w.From, w.To, w.Step)
	case WReshape:
		if Product(w.Shape) != Product(w.Args[0].Shape) {
			return nil, fmt.Errorf("reshape: %v of %v does not fill %v", w.Args[0].Shape, w.Args[0], w.Shape)
		}
		return w.Shape, nil
	case WTranspose:
		return permuted(w.Args[0].Shape, w.Perm)
	case WPermute:
		return w.Args[0].Shape, checkPermute(w)
	case WMap:
		if _, ok := MapFuncs[w.F]; !ok {
			return nil, fmt.Errorf("weight map: no function %q", w.F)
		}
	case WRowNorms:
		if s := w.Args[0].Shape; len(s) > 1 {
			return s[:len(s)-1], nil
		}
		return nil, fmt.Errorf("row_norms: takes a matrix, got %v of %v", w.Args[0].Shape, w.Args[0])
	case WMXFP4:
		return mxfp4Shape(w.Args[0].Shape, w.Args[1].Shape)
	case WScale:
		return w.Args[0].Shape, checkScale(w.Args[0].Shape, w.Args[1].Shape, w.Block)
	}
	return w.Args[0].Shape, nil
}

var weightArity = map[WeightOp]int{
	WTensor: 0, WConst: 0, WConcat: -1, WStack: -1, WSlice: 1, WReshape: 1, WTranspose: 1, WPermute: 1, WAffine: 1, WMap: 1, WMXFP4: 2, WScale: 2, WRowNorms: 1,
}

func checkPermute(w *Weight) error {
	s := w.Args[0].Shape
	if w.Axis < 0 || w.Axis >= len(s) || s[w.Axis] != len(w.Perm) {
		return fmt.Errorf("permute: %d indices do not order axis %d of %v of %v", len(w.Perm), w.Axis, s, w.Args[0])
	}
	for _, p := range w.Perm {
		if p < 0 || p >= len(w.Perm) {
			return fmt.Errorf("permute: index %d lies outside axis %d of %v", p, w.Axis, s)
		}
	}
	return nil
}

func mxfp4Shape(blocks, scales []int) ([]int, error) {
	n := len(blocks)
	if n < 2 || blocks[n-1] != 16 || !slices.Equal(blocks[:n-1], scales) {
		return nil, fmt.Errorf("mxfp4: blocks are [.., n, 16] and scales [.., n], got %v and %v", blocks, scales)
	}
	s := slices.Clone(scales)
	s[len(s)-1] *= 32
	return s, nil
}

func checkScale(w, factors, block []int) error {
	n := len(w)
	ok := n >= 2 && len(factors) == n && len(block) == 2 && block[0] > 0 && block[1] > 0 && slices.Equal(w[:n-2], factors[:n-2])
	for i := 0; ok && i < 2; i++ {
		ok = (w[n-2+i]+block[i]-1)/block[i] == factors[n-2+i]
	}
	if !ok {
		return fmt.Errorf("scale: factors %v in blocks of %v do not cover %v", factors, block, w)
	}
	return nil
}
