// Package tensor holds the description of stored tensors: type, shape and a
// view of the bytes. It does no arithmetic and imports only quant. Read View first.
package tensor

import (
	"fmt"
	"strings"

	"github.com/inferflow/inferflow/quant"
)

// Type is the storage type of a tensor; see package quant.
type Type = quant.Type

// Shape lists the sizes of the dimensions in PyTorch's order: the last one is
// contiguous. A linear weight is [out, in].
type Shape []int

// Elements is the product of the dimensions (1 for a scalar).
func (s Shape) Elements() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Rows is the product of all dimensions but the last.
func (s Shape) Rows() int {
	if len(s) == 0 {
		return 1
	}
	return Shape(s[:len(s)-1]).Elements()
}

// Cols is the last dimension (1 for a scalar).
func (s Shape) Cols() int {
	if len(s) == 0 {
		return 1
	}
	return s[len(s)-1]
}

// Equal reports whether both shapes are the same.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] != t[i] {
			return false
		}
	}
	return true
}

// String renders [a, b, c].
func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// View is a named tensor of an opened file. Data aliases the file's mapping:
// it is read-only and valid until the file is closed. Rows are stored one
// after the other, each of Type.RowBytes(Shape.Cols()) bytes.
type View struct {
	Name  string
	Type  Type
	Shape Shape
	Data  []byte
}

// RowBytes is the number of bytes of one row of the view.
func (v View) RowBytes() int {
	n, _ := v.Type.RowBytes(v.Shape.Cols())
	return n
}

// Row returns the bytes of row i, 0 ≤ i < Shape.Rows().
func (v View) Row(i int) []byte {
	n := v.RowBytes()
	return v.Data[i*n : (i+1)*n : (i+1)*n]
}
