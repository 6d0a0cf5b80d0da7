// Package weight evaluates weight expressions of a graph over the tensors of
// an opened file, row by row and in the file's own storage type wherever only
// rows move. It must never import devices or formats. Read Rows first.
package weight

import (
	"errors"
	"fmt"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// ErrMissing marks a tensor that the file does not hold.
var ErrMissing = errors.New("tensor is not in the file")

// ErrColumns marks an operation that would change the columns of a block type.
var ErrColumns = errors.New("operation changes columns of a block-quantised tensor")

// Source gives the stored tensors by the names of the file.
type Source interface {
	Tensor(name string) (tensor.View, bool)
}

// Rows is an evaluated weight: Shape.Rows() rows of one storage type. Where no
// value was changed the rows alias the file.
type Rows struct {
	Type  quant.Type
	Shape tensor.Shape
	row   func(i int) []byte
}

// Row returns the stored bytes of row i; they are read-only.
func (r *Rows) Row(i int) []byte { return r.row(i) }

// Floats decodes row i into dst, which holds Shape.Cols() values.
func (r *Rows) Floats(dst []float32, i int) error {
	if r.Type == quant.F32 {
		decodeF32(dst, r.row(i))
		return nil
	}
	return r.Type.Decode(dst, r.row(i))
}

// All decodes the whole weight to float32, row after row.
func (r *Rows) All() ([]float32, error) {
	n, c := r.Shape.Rows(), r.Shape.Cols()
	out := make([]float32, n*c)
	for i := 0; i < n; i++ {
		if err := r.Floats(out[i*c:(i+1)*c], i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Bytes is the stored size of all rows.
func (r *Rows) Bytes() int {
	n, _ := r.Type.RowBytes(r.Shape.Cols())
	return n * r.Shape.Rows()
}

// Vector decodes a weight that is used as a vector of values; nil gives nil.
func Vector(src Source, w *graph.Weight) ([]float32, error) {
	if w == nil {
		return nil, nil
	}
	r, err := Resolve(src, w)
	if err != nil {
		return nil, err
	}
	return r.All()
}

// Resolve evaluates w. The result's shape is w.Shape.
func Resolve(src Source, w *graph.Weight) (*Rows, error) {
	r, err := resolve(src, w)
	if err != nil {
		return nil, err
	}
	if !r.Shape.Equal(w.Shape) {
		return nil, fmt.Errorf("weight: %s: %w", w, &ShapeError{Got: r.Shape, Want: w.Shape})
	}
	return r, nil
}

// ShapeError tells that a stored tensor has another shape than the graph says.
type ShapeError struct{ Got, Want tensor.Shape }

func (e *ShapeError) Error() string {
	return fmt.Sprintf("the file's shape is %s, the specification asks for %s", e.Got, e.Want)
}

func resolve(src Source, w *graph.Weight) (*Rows, error) {
	switch w.Op {
	case graph.WTensor:
		return stored(src, w)
	case graph.WConst:
		return fromFloats(w.Shape, constants(w)), nil
	}
	if len(w.Names) > 0 {
		return storedStack(src, w)
	}
	args := make([]*Rows, len(w.Args))
	for i, a := range w.Args {
		r, err := Resolve(src, a)
		if err != nil {
			return nil, err
		}
		args[i] = r
	}
	return apply(w, args)
}

func stored(src Source, w *graph.Weight) (*Rows, error) {
	v, ok := src.Tensor(w.Name)
	if !ok {
		return nil, fmt.Errorf("weight: %s: %w", w.Name, ErrMissing)
	}
	if _, ok := v.Type.RowBytes(v.Shape.Cols()); !ok {
		return nil, fmt.Errorf("weight: %s: a row of %d values does not fit type %s", w.Name, v.Shape.Cols(), v.Type)
	}
	r := &Rows{Type: v.Type, Shape: v.Shape, row: v.Row}
	// A stored vector may carry trailing or leading dimensions of one.
	if !v.Shape.Equal(w.Shape) && v.Shape.Elements() == tensor.Shape(w.Shape).Elements() && v.Shape.Cols() == tensor.Shape(w.Shape).Cols() {
		r.Shape = w.Shape
	}
	return r, nil
}

// storedStack is a stack of tensors that are known by name.
func storedStack(src Source, w *graph.Weight) (*Rows, error) {
	args, part := make([]*Rows, len(w.Names)), graph.Weight{Op: graph.WTensor, Shape: w.Shape[1:]}
	for i, name := range w.Names {
		part.Name = name
		r, err := Resolve(src, &part)
		if err != nil {
			return nil, err
		}
		args[i] = r
	}
	return stack(w, args)
}

func constants(w *graph.Weight) []float32 {
	out := make([]float32, len(w.Data))
	for i, v := range w.Data {
		out[i] = float32(v)
	}
	return out
}

func apply(w *graph.Weight, args []*Rows) (*Rows, error) {
	switch w.Op {
	case graph.WConcat:
		return concat(w, args)
	case graph.WStack:
		return stack(w, args)
	case graph.WSlice:
		n := (w.To - w.From + w.Step - 1) / w.Step
		return pick(w, args[0], w.Axis, n, func(i int) int { return w.From + i*w.Step })
	case graph.WPermute:
		return pick(w, args[0], w.Axis, len(w.Perm), func(i int) int { return w.Perm[i] })
	case graph.WReshape:
		return reshape(w, args[0])
	case graph.WTranspose:
		return transpose(w, args[0])
	case graph.WAffine:
		return mapped(args[0], func(x float32) float32 { return float32(w.A)*x + float32(w.B) })
	case graph.WMap:
		f, ok := Maps[w.F]
		if !ok {
			return nil, fmt.Errorf("weight: %s: unknown function %q", w, w.F)
		}
		return mapped(args[0], f)
	case graph.WRowNorms:
		return rowNorms(w, args[0])
	case graph.WMXFP4:
		return mxfp4(w, args[0], args[1])
	case graph.WScale:
		return scaled(w, args[0], args[1])
	}
	return nil, fmt.Errorf("weight: unknown operation %q", w.Op)
}
