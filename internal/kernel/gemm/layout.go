// Package gemm holds the matrix products of the engine: y[m][n] = Σ_k x[m][k]·W[n][k]
// for float and block-quantised weights, repacked once into panels of 16 rows.
// It must never import anything above quant and internal/sys: no tensors, steps
// or devices. Read Matrix first, then form in this file.
//
// A result never depends on the company it is computed in: element (m, n) is
// the same in bits for one activation row or many, and for any range of panels.
//
//   - Quantised weights: activations are rounded to int8 per block of 32 values
//     (see Acts). The products of a block are summed exactly in integers, then
//     acc = fma(scaleW·scaleX, float32(sum), acc), blocks in ascending order. Minima
//     of blocks add fma(min, scaleX·Σx, acc) after that; minima of half blocks are
//     summed as integers and taken off before it.
//   - Float weights: chains of 64 fused multiply-adds, each from zero, whose sums
//     are added to the result in ascending order.
//
// The plain Go tier rounds products before it adds them; the assembly tiers fuse.
package gemm

//go:generate go -C ../_gen run ./gemm ../gemm

import (
	"errors"
	"fmt"

	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
)

const (
	panelRows = 16  // weight rows of a panel: the lanes of the kernels
	granule   = 32  // values along K that share an activation scale
	segment   = 384 // values along K of one chain of float sums
	unit      = 64  // bytes of 16 rows × 4 bytes along K
	align     = 64  // alignment of every plane of a panel
	superK    = 256 // values of a super-block of the K types
)

// ErrUnsupported says that a type has no panel layout.
var ErrUnsupported = errors.New("type has no matrix kernels")

// ErrShape says that sizes do not fit the type or one another.
var ErrShape = errors.New("sizes do not fit")

// class says how the integer products of a block become a float.
type class uint8

const (
	classFloat  class = iota // no integers
	classOffset              // scale × (Σu·x − offset·Σx)
	classMin                 // scale × Σu·x + min × Σx
	classSub                 // scale × Σ_half s·(Σu·x − offset·Σx), s an integer per 16 values
	classSubMin              // scale × Σ_half s·Σu·x − dmin × Σ_half m·Σx
)

// scaleForm is the content of the scale plane, per block of 32 and row.
type scaleForm uint8

const (
	scaleNone   scaleForm = iota
	scaleF16              // d                                32 bytes a block
	scaleMin              // d[16], then min[16], float16     64
	scaleE8M0             // exponent byte                    16
	scaleI8               // signed byte                      16
	scaleU8Min            // scale[16], then min[16], bytes   32
	scaleHalves           // signed bytes of both halves      32, rows in halfOrder
	scaleNibble           // scale | min<<4 of both halves    32, rows in halfOrder
)

var scaleBytes = [...]int{0, 32, 64, 16, 16, 32, 32, 32}

// halfOrder is the order of the rows' scales within one half: unpacking words
// of it in 128-bit lanes gives rows 0 to 7 and 8 to 15.
var halfOrder = [panelRows]int{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}

// form is the layout of a weight type in panels. A panel is a sequence of
// planes, each padded to 64 bytes:
//
//	codes, low bits    per block of 32 values, bits[0]·64 bytes
//	codes, high bits   per block of 32 values, bits[1]·64 bytes
//	scales             per block of 32 values, scaleBytes[scale]
//	super-scales       per 256 values, super bytes: float16 d[16], then dmin[16]
//
// Value k of a block and row r has byte 4r + k%4 of a unit of 64 bytes. With
// g = k/4: 8 bits are unit g; 4 bits unit g%4, shift 4·(g/4); 2 bits unit g/4,
// shift 2·(g%4); 1 bit the one unit, shift g.
type form struct {
	class  class
	bits   [2]int
	offset int // of the codes, in classOffset and classSub
	scale  scaleForm
	super  int
	float  int // bytes of a value in classFloat
}

var forms = map[quant.Type]form{
	quant.F32:    {class: classFloat, float: 4},
	quant.F16:    {class: classFloat, float: 2},
	quant.BF16:   {class: classFloat, float: 2},
	quant.Q4_0:   {class: classOffset, bits: [2]int{4, 0}, offset: 8, scale: scaleF16},
	quant.Q5_0:   {class: classOffset, bits: [2]int{4, 1}, offset: 16, scale: scaleF16},
	quant.Q8_0:   {class: classOffset, bits: [2]int{8, 0}, offset: 128, scale: scaleF16},
	quant.IQ4_NL: {class: classOffset, bits: [2]int{4, 0}, offset: 128, scale: scaleF16},
	quant.MXFP4:  {class: classOffset, bits: [2]int{4, 0}, offset: 12, scale: scaleE8M0},
	quant.IQ4_XS: {class: classOffset, bits: [2]int{4, 0}, offset: 128, scale: scaleI8, super: 32},
	quant.Q4_1:   {class: classMin, bits: [2]int{4, 0}, scale: scaleMin},
	quant.Q5_1:   {class: classMin, bits: [2]int{4, 1}, scale: scaleMin},
	quant.Q4_K:   {class: classMin, bits: [2]int{4, 0}, scale: scaleU8Min, super: 64},
	quant.Q5_K:   {class: classMin, bits: [2]int{4, 1}, scale: scaleU8Min, super: 64},
	quant.Q3_K:   {class: classSub, bits: [2]int{2, 1}, offset: 4, scale: scaleHalves, super: 32},
	quant.Q6_K:   {class: classSub, bits: [2]int{4, 2}, offset: 32, scale: scaleHalves, super: 32},
	quant.Q2_K:   {class: classSubMin, bits: [2]int{2, 0}, scale: scaleNibble, super: 64},
}

// Supported reports whether the type can be packed and multiplied.
func Supported(t quant.Type) bool { _, ok := forms[t]; return ok }

// Matrix is a weight matrix [n, k] repacked in panels. It is immutable and may
// be used by many goroutines; its bytes belong to the caller of Pack.
type Matrix struct {
	data   []byte
	typ    quant.Type
	form   form
	n, k   int
	panel  int    // bytes of a panel
	plane  [4]int // offsets of the planes within a panel
	blocks int    // k/32, of the integer classes

	kernels *kernelSet // nil: plain Go
}

// N is the number of weight rows: columns of the result.
func (w *Matrix) N() int { return w.n }

// K is the number of values of a weight row.
func (w *Matrix) K() int { return w.k }

// Panels is ⌈N/16⌉.
func (w *Matrix) Panels() int { return (w.n + panelRows - 1) / panelRows }

// Type is the storage type that the matrix was packed from.
func (w *Matrix) Type() quant.Type { return w.typ }

// Bytes is the number of bytes that one pass over the matrix reads.
func (w *Matrix) Bytes() int { return len(w.data) }

// maxBytes bounds a packed matrix, so that products of sizes cannot overflow.
const maxBytes = 1 << 46

// PackedBytes is the number of bytes that an [n, k] matrix of type t takes in
// panels. It fails with ErrUnsupported, or with ErrShape when n or k is not
// positive, too large, or k is no multiple of the type's block.
func PackedBytes(t quant.Type, n, k int) (int, error) {
	w, err := describe(t, n, k)
	if err != nil {
		return 0, err
	}
	return w.Panels() * w.panel, nil
}

// describe checks the sizes and computes the layout of a matrix without bytes.
func describe(t quant.Type, n, k int) (*Matrix, error) {
	f, ok := forms[t]
	if !ok {
		return nil, fmt.Errorf("gemm: pack %s: %w", t, ErrUnsupported)
	}
	layout, _ := t.Layout()
	if n < 1 || k < 1 || k%layout.Block != 0 {
		return nil, fmt.Errorf("gemm: pack %s: [%d, %d] is not positive or K is no multiple of %d: %w", t, n, k, layout.Block, ErrShape)
	}
	if n > maxBytes/4/k-panelRows || k > maxBytes/1024 {
		return nil, fmt.Errorf("gemm: pack %s: [%d, %d] is too large: %w", t, n, k, ErrShape)
	}
	w := &Matrix{typ: t, form: f, n: n, k: k, kernels: setOf(sys.CPUTier(), t)}
	if f.class == classFloat {
		if t == quant.BF16 {
			k += k & 1
		}
		w.panel = roundUp(k*f.float*panelRows, align)
		return w, nil
	}
	w.blocks = k / granule
	sizes := [4]int{w.blocks * unit * f.bits[0], w.blocks * unit * f.bits[1], w.blocks * scaleBytes[f.scale], k / superK * f.super}
	for i, s := range sizes {
		w.plane[i] = w.panel
		w.panel += roundUp(s, align)
	}
	return w, nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// planes returns the bytes of the planes of panel p.
func (w *Matrix) planes(p int) (pl [4][]byte) {
	b := w.data[p*w.panel : (p+1)*w.panel]
	for i := range pl {
		end := len(b)
		if i < 3 {
			end = w.plane[i+1]
		}
		pl[i] = b[w.plane[i]:end]
	}
	return pl
}
