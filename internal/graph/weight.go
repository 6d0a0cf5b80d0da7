package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Weight is an expression over stored tensors, evaluated once at load. Row
// operations keep the storage type; the others need an unquantised type.
type Weight struct {
	Op    WeightOp
	Name  string // WTensor: name in the file
	Args  []*Weight
	Names []string // stack: stored tensors of one shape, in place of Args
	Shape []int
	Axis  int     // concat, slice, stack
	From  int     // slice
	To    int     // slice
	Step  int     // slice
	Perm  []int   // transpose: output dimension i is input dimension Perm[i]; permute: output index i along Axis is input index Perm[i]
	A, B  float64 // affine: A·w + B
	F     string  // map: exp, neg_exp, softplus, …
	Data  []float64
	Block []int // scale: rows and columns that share a factor
	Line  Line
}

// WeightOp names an operation on stored tensors.
type WeightOp string

const (
	WTensor    WeightOp = "tensor"
	WConcat    WeightOp = "concat"
	WStack     WeightOp = "stack"   // new leading dimension
	WSlice     WeightOp = "slice"   // along Axis
	WReshape   WeightOp = "reshape" // keeps rows when the last dimension is kept
	WTranspose WeightOp = "transpose"
	WPermute   WeightOp = "permute" // indices along Axis
	WAffine    WeightOp = "affine"
	WMap       WeightOp = "map"
	WMXFP4     WeightOp = "mxfp4" // args blocks u8 [.., n, 16], scales u8 [.., n] → [.., 32n], type MXFP4
	WScale     WeightOp = "scale" // args w [.., R, C], factors [.., ⌈R/Block0⌉, ⌈C/Block1⌉] → w · factor, float32
	WConst     WeightOp = "const"
	WRowNorms  WeightOp = "row_norms" // [.., n] → [..]: the length √Σw² of each row
)

// Rows is the product of all dimensions but the last.
func (w *Weight) Rows() int {
	if len(w.Shape) == 0 {
		return 1
	}
	return Product(w.Shape[:len(w.Shape)-1])
}

// Cols is the last dimension.
func (w *Weight) Cols() int {
	if len(w.Shape) == 0 {
		return 1
	}
	return w.Shape[len(w.Shape)-1]
}

// Tensors appends the names of all stored tensors that w reads.
func (w *Weight) Tensors(names []string) []string {
	if w == nil {
		return names
	}
	if w.Op == WTensor {
		return append(names, w.Name)
	}
	names = append(names, w.Names...)
	for _, a := range w.Args {
		names = a.Tensors(names)
	}
	return names
}

// longestName is the length of names of tensors that are told whole.
const longestName = 250

// String shows the expression, for messages and explain.
func (w *Weight) String() string {
	if w == nil {
		return "none"
	}
	switch w.Op {
	case WTensor:
		if len(w.Name) > longestName {
			return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(w.Name[:100], ""), len(w.Name))
		}
		return w.Name
	case WSlice:
		return fmt.Sprintf("%v[%d: %d:%d:%d]", w.Args[0], w.Axis, w.From, w.To, w.Step)
	}
	args := slices.Clip(w.Names)
	for _, a := range w.Args {
		args = append(args, a.String())
	}
	return string(w.Op) + "(" + strings.Join(args, ", ") + ")"
}

// Parts lists the arguments; those that a stack knows by name are made anew at
// each call.
func (w *Weight) Parts() []*Weight {
	if len(w.Names) == 0 {
		return w.Args
	}
	store, parts := make([]Weight, len(w.Names)), make([]*Weight, len(w.Names))
	for i, name := range w.Names {
		store[i] = Weight{Op: WTensor, Name: name, Shape: w.Shape[1:], Line: w.Line}
		parts[i] = &store[i]
	}
	return parts
}
