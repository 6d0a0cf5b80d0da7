package gemm

import (
	"encoding/binary"
	"math"

	"github.com/inferflow/inferflow/quant"
)

// DecodeRow writes the K values of weight row `row` to dst, equal in bits to
// quant's reference decoding of the source row.
func (w *Matrix) DecodeRow(dst []float32, row int) {
	p, r := row/panelRows, row%panelRows
	dst = dst[:w.k]
	if w.form.class == classFloat {
		for k := range dst {
			dst[k] = w.floatAt(p, r, k)
		}
		return
	}
	pl := w.planes(p)
	for b := range w.blocks {
		w.decodeBlock((*[granule]float32)(dst[b*granule:]), &pl, b, r)
	}
}

// floatAt is value k of row r of panel p of a float matrix.
func (w *Matrix) floatAt(p, r, k int) float32 {
	b := w.data[p*w.panel : (p+1)*w.panel]
	switch w.typ {
	case quant.F16:
		return quant.FromF16(binary.LittleEndian.Uint16(b[k*32+r*2:]))
	case quant.BF16:
		return quant.FromBF16(binary.LittleEndian.Uint16(b[k/2*64+r*4+k%2*2:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b[k*64+r*4:]))
}

// decodeBlock decodes block b of row r.
func (w *Matrix) decodeBlock(dst *[granule]float32, pl *[4][]byte, b, r int) {
	scale, low := w.rowScales(pl, b, r)
	for k := range dst {
		c := int(codeAt(pl[0], w.form.bits[0], b, r, k))
		if w.form.bits[1] > 0 {
			c |= int(codeAt(pl[1], w.form.bits[1], b, r, k)) << w.form.bits[0]
		}
		switch w.typ {
		case quant.MXFP4:
			c = int(mxfp4Codes[c])
		case quant.IQ4_NL, quant.IQ4_XS:
			c = int(iq4Codes[c])
		case quant.Q8_0:
			c ^= 0x80
		}
		v := float32(scale[k/16] * float32(c-w.form.offset))
		if w.form.class == classMin || w.form.class == classSubMin {
			v += low[k/16]
		}
		dst[k] = v
	}
}

// codeAt is the code of value k of block b and row r in one code plane.
func codeAt(plane []byte, bits, b, r, k int) byte {
	u, shift := place(bits, k/4)
	return plane[(b*bits+u)*unit+r*4+k%4] >> shift & byte(1<<bits-1)
}

// rowScales gives scale and added minimum of both halves of block b in row r.
func (w *Matrix) rowScales(pl *[4][]byte, b, r int) (scale, low [2]float32) {
	src := pl[2][b*scaleBytes[w.form.scale]:]
	super := pl[3][b/8*w.form.super:]
	half := func(b []byte) float32 { return quant.FromF16(binary.LittleEndian.Uint16(b[2*r:])) }
	for h := range 2 {
		switch w.form.scale {
		case scaleF16:
			scale[h] = half(src)
		case scaleMin:
			scale[h], low[h] = half(src), half(src[32:])
		case scaleE8M0:
			scale[h] = exactHalfPower(src[r])
		case scaleI8:
			scale[h] = half(super) * float32(int8(src[r]))
		case scaleU8Min:
			scale[h] = half(super) * float32(src[r])
			low[h] = -(half(super[32:]) * float32(src[16+r]))
		case scaleHalves, scaleNibble:
			sc, mn := subScale(w.form.scale, src[16*h+halfPlace(r)])
			scale[h] = half(super) * float32(sc)
			if w.form.scale == scaleNibble {
				low[h] = -(half(super[32:]) * float32(mn))
			}
		}
	}
	return scale, low
}

// exactHalfPower is 2^(e−128) with its two subnormal values.
func exactHalfPower(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return halfPower(e)
}
