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
		w.decodeFloats(dst, p, r, 0)
		return
	}
	pl := w.planes(p)
	for b := range w.blocks {
		w.decodeBlock((*[granule]float32)(dst[b*granule:]), &pl, b, r)
	}
}

// decodeFloats writes values k, k+1, … of row r of panel p of a float matrix.
func (w *Matrix) decodeFloats(dst []float32, p, r, k int) {
	b := w.data[p*w.panel : (p+1)*w.panel]
	switch w.typ {
	case quant.F32:
		for i := range dst {
			dst[i] = math.Float32frombits(word(b[(k+i)*64:], r))
		}
	case quant.F16:
		for i := range dst {
			dst[i] = quant.FromF16(le16(b[(k+i)*32+r*2:]))
		}
	case quant.BF16:
		for i := range dst {
			dst[i] = quant.FromBF16(le16(b[(k+i)/2*64+r*4+(k+i)%2*2:]))
		}
	}
}

// decodeBlock decodes block b of row r.
func (w *Matrix) decodeBlock(dst *[granule]float32, pl *[4][]byte, b, r int) {
	scale, low := w.rowScales(pl, b, r)
	var table *[16]byte
	switch w.typ {
	case quant.MXFP4:
		table = &mxfp4Codes
	case quant.IQ4_NL, quant.IQ4_XS:
		table = &iq4Codes
	}
	addMin := w.form.class == classMin || w.form.class == classSubMin
	for g := range 8 {
		four := w.codesAt(pl, b, r, g)
		d, m := scale[g/4], low[g/4]
		for i := range 4 {
			c := int32(four & 255)
			four >>= 8
			if table != nil {
				c = int32(table[c&15])
			}
			v := float32(d * float32(c-int32(w.form.offset)))
			if addMin {
				v += m
			}
			dst[4*g+i] = v
		}
	}
}

// codesAt gives the four unsigned codes of group g of block b in row r.
func (w *Matrix) codesAt(pl *[4][]byte, b, r, g int) uint32 {
	low, high := w.form.bits[0], w.form.bits[1]
	c := field(pl[0], low, b, r, g)
	if high > 0 {
		c |= field(pl[1], high, b, r, g) << low
	}
	if low == 8 {
		c ^= 0x80808080
	}
	return c
}

// field is what one code plane holds of a group.
func field(plane []byte, bits, b, r, g int) uint32 {
	u, shift := place(bits, g)
	return word(plane[(b*bits+u)*unit+4*r:], 0) >> shift & (ones * (1<<bits - 1))
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
