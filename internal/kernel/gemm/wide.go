package gemm

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/inferflow/inferflow/quant"
)

// sliceBlocks is the number of blocks along K that are unpacked at a time: what
// a kernel reads of them stays in the first-level cache.
const sliceBlocks = 16

// wideBlock is a block of 32 values of a panel, unpacked: the common form of
// all integer classes. The assembly knows its layout.
type wideBlock struct {
	codes  [8 * unit]byte         // [group of 4][16][4] unsigned codes
	_      [8 * unit]byte         // magnitudes, where a kernel takes signed codes
	scale  [panelRows]float32     // the d of classSub and classSubMin
	min    [panelRows]float32     // added minimum; the dmin of classSubMin
	sub    [2][panelRows][2]int16 // integer scale of a half, twice
	submin [panelRows][2]int16    // integer minima of both halves
}

// Scratch is the working memory of one thread. It must not be shared by
// concurrent calls.
type Scratch struct {
	slice  *[sliceBlocks]wideBlock
	floats []float32 // [2][384][16] a segment of float weights, of two panels
	tail   []float32 // [tailRows][16] results of the last, partial panel
	spare  []float32 // [maxTile][16] results of a tile that has rows too many
	work   []byte    // what a kernel has no registers for
	args   args
}

// tailRows is the number of result rows that Scratch holds for a panel whose
// columns do not all exist; maxTile bounds the rows of a tile.
const (
	tailRows  = 48
	maxTile   = spareRows + 1
	workBytes = 1152
)

// NewScratch makes the working memory of one thread for matrices of up to maxK
// values a row. Its size does not depend on maxK: weights are unpacked by slices.
func NewScratch(maxK int) *Scratch {
	const slice = sliceBlocks * int(unsafe.Sizeof(wideBlock{}))
	buf := alignedBytes(slice + 4*panelRows*(2*segment+tailRows+maxTile) + workBytes)
	take := func(n int) []byte {
		out := buf[:n:n]
		buf = buf[n:]
		return out
	}
	return &Scratch{
		slice:  (*[sliceBlocks]wideBlock)(unsafe.Pointer(unsafe.SliceData(take(slice)))),
		floats: float32s(take(4 * panelRows * 2 * segment)),
		tail:   float32s(take(4 * panelRows * tailRows)),
		spare:  float32s(take(4 * panelRows * maxTile)),
		work:   take(workBytes),
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

// mxfp4Codes are the values of MXFP4 with the offset 12 added.
var mxfp4Codes = [16]byte{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}

// iq4Codes are the values of IQ4_NL with the offset 128 added.
var iq4Codes = func() (c [16]byte) {
	for i, v := range quant.ValuesIQ4 {
		c[i] = byte(int(v) + 128)
	}
	return c
}()

// unpackGo writes blocks [from, to) of a panel to the slice.
func (w *Matrix) unpackGo(s *Scratch, pl *[4][]byte, from, to int) {
	for b := from; b < to; b++ {
		w.unpackCodes(&s.slice[b-from].codes, pl, b)
		w.unpackScales(&s.slice[b-from], pl, b)
	}
}

// unpackCodes writes the unsigned codes of block b: [group][16][4].
func (w *Matrix) unpackCodes(dst *[8 * unit]byte, pl *[4][]byte, b int) {
	low, high := w.form.bits[0], w.form.bits[1]
	for g := range 8 {
		out := (*[unit]byte)(dst[g*unit:])
		unpackField(out, pl[0], low, b, g, 0)
		if high > 0 {
			unpackField(out, pl[1], high, b, g, low)
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

// unpackField adds what one code plane holds of group g, moved up by `to` bits,
// to the codes of 16 rows; the first field (to = 0) replaces them.
func unpackField(out *[unit]byte, plane []byte, bits, b, g, to int) {
	u, shift := place(bits, g)
	src := (*[unit]byte)(plane[(b*bits+u)*unit:])
	mask := uint64(ones)<<32*(1<<bits-1) | ones*(1<<bits-1)
	for i := 0; i < unit; i += 8 {
		v := binary.LittleEndian.Uint64(src[i:]) >> shift & mask << to
		if to > 0 {
			v |= binary.LittleEndian.Uint64(out[i:])
		}
		binary.LittleEndian.PutUint64(out[i:], v)
	}
}

func lookUp(dst *[8 * unit]byte, table *[16]byte) {
	for i, q := range dst {
		dst[i] = table[q&15]
	}
}

// unpackScales writes the scales of block b. Products of a float16 and an
// integer scale are exact.
func (w *Matrix) unpackScales(out *wideBlock, pl *[4][]byte, b int) {
	src := pl[2][b*scaleBytes[w.form.scale]:]
	super := pl[3][b/8*w.form.super:]
	scale, low := &out.scale, &out.min
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
				out.sub[h][r], out.submin[r][h] = [2]int16{sc, sc}, mn
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
