package gemm

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/inferflow/inferflow/quant"
)

// sliceBlocks is the number of blocks along K that are unpacked at a time: the
// 8 KiB of codes stay in the first-level cache.
const sliceBlocks = 16

// Scratch is the working memory of one thread. It must not be shared by
// concurrent calls.
type Scratch struct {
	// A slice of a panel, unpacked: the common form of all integer classes.
	codes  []byte    // [block][group of 4][16][4] unsigned codes
	abs    []byte    // magnitudes, for kernels that take signed codes
	scale  []float32 // [block][16] scale; the d of classSub and classSubMin
	min    []float32 // [block][16] added minimum; the dmin of classSubMin
	sub    []int16   // [block][half][16][2] scale of a half, twice
	submin []int16   // [block][half][16][2] minimum of a half, twice
	floats []float32 // [64][16] a segment of float weights
	tail   []float32 // [tailRows][16] results of the last, partial panel
}

// tailRows is the number of result rows that Scratch holds for a panel whose
// columns do not all exist.
const tailRows = 48

// NewScratch makes the working memory of one thread for matrices of up to maxK
// values a row. Its size does not depend on maxK: weights are unpacked by slices.
func NewScratch(maxK int) *Scratch {
	const b = sliceBlocks * panelRows
	buf := alignedBytes(2*b*granule + 2*b*4 + 2*b*8 + 4*segment*panelRows + 4*tailRows*panelRows)
	take := func(n int) []byte {
		out := buf[:n:n]
		buf = buf[n:]
		return out
	}
	return &Scratch{
		codes: take(b * granule), abs: take(b * granule),
		scale: float32s(take(b * 4)), min: float32s(take(b * 4)),
		sub: int16s(take(b * 8)), submin: int16s(take(b * 8)),
		floats: float32s(take(4 * segment * panelRows)),
		tail:   float32s(take(4 * tailRows * panelRows)),
	}
}

// alignedBytes allocates n bytes whose address is a multiple of 64.
func alignedBytes(n int) []byte {
	b := make([]byte, n+align)
	off := int(-uintptr(unsafe.Pointer(&b[0])) % align)
	return b[off : off+n : off+n]
}

func float32s(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func int16s(b []byte) []int16 {
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

// mxfp4Codes are the values of MXFP4 with the offset 12 added.
var mxfp4Codes = [16]byte{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}

// iq4Codes are the values of IQ4_NL with the offset 128 added.
var iq4Codes = func() (c [16]byte) {
	for i, v := range quant.ValuesIQ4 {
		c[i] = byte(int(v) + 128)
	}
	return c
}()

// unpack writes blocks [from, to) of a panel in the common form.
func (w *Matrix) unpack(s *Scratch, pl *[4][]byte, from, to int) {
	for b := from; b < to; b++ {
		at := b - from
		w.unpackCodes((*[8 * unit]byte)(s.codes[at*8*unit:]), pl, b)
		w.unpackScales(s, pl, at, b)
	}
}

// unpackCodes writes the unsigned codes of block b: [group][16][4].
func (w *Matrix) unpackCodes(dst *[8 * unit]byte, pl *[4][]byte, b int) {
	low, high := w.form.bits[0], w.form.bits[1]
	for g := range 8 {
		out := (*[unit]byte)(dst[g*unit:])
		u, shift := place(low, g)
		src, mask := (*[unit]byte)(pl[0][(b*low+u)*unit:]), byte(1<<low-1)
		for i := range out {
			out[i] = src[i] >> shift & mask
		}
		if high > 0 {
			u, shift := place(high, g)
			src, mask := (*[unit]byte)(pl[1][(b*high+u)*unit:]), byte(1<<high-1)
			for i := range out {
				out[i] |= src[i] >> shift & mask << low
			}
		}
	}
	switch w.typ {
	case quant.MXFP4:
		lookUp(dst, &mxfp4Codes)
	case quant.IQ4_NL, quant.IQ4_XS:
		lookUp(dst, &iq4Codes)
	case quant.Q8_0:
		for i := range dst {
			dst[i] ^= 0x80
		}
	}
}

func lookUp(dst *[8 * unit]byte, table *[16]byte) {
	for i, q := range dst {
		dst[i] = table[q&15]
	}
}

// unpackScales writes the scales of block b at place at of the slice. Products
// of a float16 and an integer scale are exact.
func (w *Matrix) unpackScales(s *Scratch, pl *[4][]byte, at, b int) {
	src := pl[2][b*scaleBytes[w.form.scale]:]
	super := pl[3][b/8*w.form.super:]
	scale, low := s.scale[at*panelRows:][:panelRows], s.min[at*panelRows:][:panelRows]
	half := func(b []byte, r int) float32 { return quant.FromF16(binary.LittleEndian.Uint16(b[2*r:])) }
	for r := range panelRows {
		switch w.form.scale {
		case scaleF16:
			scale[r] = half(src, r)
		case scaleMin:
			scale[r], low[r] = half(src, r), half(src[32:], r)
		case scaleE8M0:
			scale[r] = halfPower(src[r])
		case scaleI8:
			scale[r] = half(super, r) * float32(int8(src[r]))
		case scaleU8Min:
			scale[r] = half(super, r) * float32(src[r])
			low[r] = -(half(super[32:], r) * float32(src[16+r]))
		case scaleHalves, scaleNibble:
			scale[r] = half(super, r)
			if w.form.scale == scaleNibble {
				low[r] = half(super[32:], r)
			}
			for h := range 2 {
				sc, mn := subScale(w.form.scale, src[16*h+halfPlace(r)])
				i := ((at*2+h)*panelRows + r) * 2
				s.sub[i], s.sub[i+1] = sc, sc
				s.submin[i], s.submin[i+1] = mn, mn
			}
		}
	}
}

// subScale splits a byte of a scale plane with halves.
func subScale(f scaleForm, b byte) (scale, low int16) {
	if f == scaleNibble {
		return int16(b & 15), int16(b >> 4)
	}
	return int16(int8(b)), 0
}

// halfPower is 2^(e−128), the scale of MXFP4 for codes that are doubled (OCP
// Microscaling Formats 1.0). The two subnormal powers count as zero in products.
func halfPower(e byte) float32 {
	return math.Float32frombits(uint32(max(int32(e)-1, 0)) << 23)
}
