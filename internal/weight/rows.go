package weight

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// Maps are the functions that change stored values one by one.
var Maps = map[string]func(float32) float32{
	"exp":          func(x float32) float32 { return float32(math.Exp(float64(x))) },
	"neg_exp":      func(x float32) float32 { return float32(-math.Exp(float64(x))) },
	"softplus":     func(x float32) float32 { return float32(math.Log1p(math.Exp(float64(x)))) },
	"neg":          func(x float32) float32 { return -x },
	"tanh":         func(x float32) float32 { return float32(math.Tanh(float64(x))) },
	"inv":          func(x float32) float32 { return 1 / x },
	"decoded":      func(x float32) float32 { return x },
	"log":          func(x float32) float32 { return float32(math.Log(float64(x))) },
	"log_neg":      func(x float32) float32 { return float32(math.Log(-float64(x))) },
	"atanh":        func(x float32) float32 { return float32(math.Atanh(float64(x))) },
	"softplus_inv": func(x float32) float32 { return float32(math.Log(math.Expm1(float64(x)))) },
	"bits_0":       func(x float32) float32 { return twoBits(x, 0) },
	"bits_2":       func(x float32) float32 { return twoBits(x, 2) },
	"bits_4":       func(x float32) float32 { return twoBits(x, 4) },
	"bits_6":       func(x float32) float32 { return twoBits(x, 6) },
	"exp2_127":     func(x float32) float32 { return float32(math.Exp2(float64(x) - 127)) },
}

// twoBits is a number of two bits of a byte, less 1.
func twoBits(x float32, at int) float32 { return float32(uint8(x)>>at&3) - 1 }

func decodeF32(dst []float32, src []byte) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 4*len(dst)), src) // little-endian, as all hosts are
}

func fromFloats(shape []int, v []float32) *Rows {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return fromBytes(quant.F32, shape, b)
}

func fromBytes(t quant.Type, shape []int, b []byte) *Rows {
	n, _ := t.RowBytes(tensor.Shape(shape).Cols())
	return &Rows{Type: t, Shape: shape, row: func(i int) []byte { return b[i*n : (i+1)*n : (i+1)*n] }}
}

func mapped(r *Rows, f func(float32) float32) (*Rows, error) {
	v, err := r.All()
	if err != nil {
		return nil, err
	}
	for i := range v {
		v[i] = f(v[i])
	}
	return fromFloats(r.Shape, v), nil
}

// rowNorms reads one row at a time: a head of a large vocabulary is never expanded.
func rowNorms(w *graph.Weight, r *Rows) (*Rows, error) {
	row, out := make([]float32, r.Shape.Cols()), make([]float32, r.Shape.Rows())
	for i := range out {
		if err := r.Floats(row, i); err != nil {
			return nil, err
		}
		sum := 0.0
		for _, x := range row {
			sum += float64(x) * float64(x)
		}
		out[i] = float32(math.Sqrt(sum))
	}
	return fromFloats(w.Shape, out), nil
}

// strides in rows of all dimensions but the last.
func rowStrides(s tensor.Shape) []int {
	st := make([]int, len(s))
	n := 1
	for i := len(s) - 2; i >= 0; i-- {
		st[i] = n
		n *= s[i]
	}
	return st
}

// pick builds a weight whose index i along axis is the input's index at(i).
func pick(w *graph.Weight, r *Rows, axis, n int, at func(i int) int) (*Rows, error) {
	shape := append(tensor.Shape{}, r.Shape...)
	shape[axis] = n
	if axis == len(shape)-1 {
		return pickColumns(w, r, shape, at)
	}
	inner := rowStrides(r.Shape)[axis]
	old := r.Shape[axis]
	return &Rows{Type: r.Type, Shape: shape, row: func(i int) []byte {
		outer, rest := i/(n*inner), i%(n*inner)
		return r.row(outer*old*inner + at(rest/inner)*inner + rest%inner)
	}}, nil
}

func pickColumns(w *graph.Weight, r *Rows, shape tensor.Shape, at func(i int) int) (*Rows, error) {
	l, _ := r.Type.Layout()
	cols := shape.Cols()
	if l.Block > 1 {
		return pickBlocks(w, r, shape, l, at)
	}
	rows, size := shape.Rows(), l.Bytes
	b := make([]byte, rows*cols*size)
	for i := 0; i < rows; i++ {
		src := r.row(i)
		for c := 0; c < cols; c++ {
			k := at(c) * size
			copy(b[(i*cols+c)*size:], src[k:k+size])
		}
	}
	return fromBytes(r.Type, shape, b), nil
}

// pickBlocks allows a contiguous range of whole blocks, which moves no value inside one.
func pickBlocks(w *graph.Weight, r *Rows, shape tensor.Shape, l quant.Layout, at func(i int) int) (*Rows, error) {
	from, cols := at(0), shape.Cols()
	if w.Op != graph.WSlice || w.Step != 1 || from%l.Block != 0 || cols%l.Block != 0 {
		return nil, fmt.Errorf("weight: %s of type %s: %w", w, r.Type, ErrColumns)
	}
	lo, hi := from/l.Block*l.Bytes, (from+cols)/l.Block*l.Bytes
	return &Rows{Type: r.Type, Shape: shape, row: func(i int) []byte { return r.row(i)[lo:hi] }}, nil
}

// sameType makes all parts of one storage type: float32 where they differ.
func sameType(args []*Rows) ([]*Rows, error) {
	same := true
	for _, a := range args {
		same = same && a.Type == args[0].Type
	}
	if same {
		return args, nil
	}
	out := make([]*Rows, len(args))
	for i, a := range args {
		v, err := a.All()
		if err != nil {
			return nil, err
		}
		out[i] = fromFloats(a.Shape, v)
	}
	return out, nil
}

func concat(w *graph.Weight, args []*Rows) (*Rows, error) {
	args, err := sameType(args)
	if err != nil {
		return nil, err
	}
	shape := append(tensor.Shape{}, w.Shape...)
	if w.Axis == len(shape)-1 {
		return concatColumns(args, shape), nil
	}
	inner := rowStrides(shape)[w.Axis]
	total := shape[w.Axis]
	return &Rows{Type: args[0].Type, Shape: shape, row: func(i int) []byte {
		outer, rest := i/(total*inner), i%(total*inner)
		k, in := rest/inner, rest%inner
		for _, a := range args {
			n := a.Shape[w.Axis]
			if k < n {
				return a.row((outer*n+k)*inner + in)
			}
			k -= n
		}
		panic("weight: concat: row out of range")
	}}, nil
}

func concatColumns(args []*Rows, shape tensor.Shape) *Rows {
	var b []byte
	for i := 0; i < shape.Rows(); i++ {
		for _, a := range args {
			b = append(b, a.row(i)...)
		}
	}
	return fromBytes(args[0].Type, shape, b)
}

func stack(w *graph.Weight, args []*Rows) (*Rows, error) {
	args, err := sameType(args)
	if err != nil {
		return nil, err
	}
	if len(args[0].Shape) == 0 { // the parts are the values of one row
		return concatColumns(args, w.Shape), nil
	}
	n := args[0].Shape.Rows()
	return &Rows{Type: args[0].Type, Shape: w.Shape, row: func(i int) []byte { return args[i/n].row(i % n) }}, nil
}

func reshape(w *graph.Weight, r *Rows) (*Rows, error) {
	shape := tensor.Shape(w.Shape)
	if shape.Cols() == r.Shape.Cols() {
		return &Rows{Type: r.Type, Shape: shape, row: r.row}, nil
	}
	l, _ := r.Type.Layout()
	if shape.Cols()%l.Block != 0 {
		return nil, fmt.Errorf("weight: %s of type %s: %w", w, r.Type, ErrColumns)
	}
	var b []byte
	for i := 0; i < r.Shape.Rows(); i++ {
		b = append(b, r.row(i)...)
	}
	return fromBytes(r.Type, shape, b), nil
}

func transpose(w *graph.Weight, r *Rows) (*Rows, error) {
	shape := tensor.Shape(w.Shape)
	d := len(shape)
	if d == 0 || w.Perm[d-1] == d-1 {
		st := rowStrides(r.Shape)
		return &Rows{Type: r.Type, Shape: shape, row: func(i int) []byte {
			src := 0
			for k := d - 2; k >= 0; k-- {
				src += i % shape[k] * st[w.Perm[k]]
				i /= shape[k]
			}
			return r.row(src)
		}}, nil
	}
	l, _ := r.Type.Layout()
	if l.Block > 1 {
		return nil, fmt.Errorf("weight: %s of type %s: %w", w, r.Type, ErrColumns)
	}
	return transposeElements(w, r, shape, l.Bytes), nil
}

func transposeElements(w *graph.Weight, r *Rows, shape tensor.Shape, size int) *Rows {
	d := len(shape)
	st := make([]int, d) // strides of the input in elements
	n := 1
	for i := d - 1; i >= 0; i-- {
		st[i] = n
		n *= r.Shape[i]
	}
	cols := r.Shape.Cols()
	b := make([]byte, n*size)
	idx := make([]int, d)
	for i := 0; i < n; i++ {
		src := 0
		for k := range idx {
			src += idx[k] * st[w.Perm[k]]
		}
		row := r.row(src / cols)
		copy(b[i*size:], row[src%cols*size:src%cols*size+size])
		for k := d - 1; k >= 0; k-- {
			if idx[k]++; idx[k] < shape[k] {
				break
			}
			idx[k] = 0
		}
	}
	return fromBytes(r.Type, shape, b)
}

// mxfp4 joins the blocks and scales that Hugging Face files store apart into
// ggml's MXFP4 blocks. A file's byte holds two neighbours (low nibble first);
// ggml's byte j holds values j and j+16.
func mxfp4(w *graph.Weight, blocks, scales *Rows) (*Rows, error) {
	shape := tensor.Shape(w.Shape)
	n := shape.Cols() / 32
	if blocks.Shape.Cols() != 16 || scales.Shape.Cols() != n || shape.Rows() != scales.Shape.Rows() || blocks.Shape.Rows() != n*shape.Rows() {
		return nil, fmt.Errorf("weight: %s: blocks %s and scales %s do not make %s", w, blocks.Shape, scales.Shape, shape)
	}
	return &Rows{Type: quant.MXFP4, Shape: shape, row: func(i int) []byte {
		out := make([]byte, 17*n)
		sc := scales.row(i)
		for k := 0; k < n; k++ {
			src, dst := blocks.row(i*n+k), out[17*k:17*k+17]
			dst[0] = sc[k]
			for j := 0; j < 16; j++ {
				lo := src[j/2] >> (4 * (j % 2)) & 15
				hi := src[8+j/2] >> (4 * (j % 2)) & 15
				dst[1+j] = lo | hi<<4
			}
		}
		return out
	}}, nil
}
