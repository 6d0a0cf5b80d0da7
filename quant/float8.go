package quant

import (
	"encoding/binary"
	"math"
)

// The floats of one byte and below, as PyTorch and the OCP microscaling
// formats store them. All of their values are exact in float32.
// Source: OCP 8-bit Floating Point Specification 1.0; OCP Microscaling Formats
// 1.0; for the FNUZ kinds PyTorch's c10/util/Float8_e4m3fnuz.h and Float8_e5m2fnuz.h.

// minifloat describes a float of few bits: sign, exponent, mantissa.
type minifloat struct {
	exponent, mantissa, bias int
	infinities               bool // all ones in the exponent: infinity and NaN
	nans                     bool // all ones everywhere: NaN
	fnuz                     bool // minus zero is the only NaN
}

func (m minifloat) value(code int) float32 {
	bits := 1 + m.exponent + m.mantissa
	sign := code >> (bits - 1) & 1
	e := code >> m.mantissa & (1<<m.exponent - 1)
	f := code & (1<<m.mantissa - 1)
	last := e == 1<<m.exponent-1
	var v float64
	switch {
	case m.fnuz && code == 1<<(bits-1), m.infinities && last && f != 0, m.nans && last && f == 1<<m.mantissa-1:
		return float32(math.NaN())
	case m.infinities && last:
		v = math.Inf(1)
	case e == 0:
		v = math.Ldexp(float64(f), 1-m.bias-m.mantissa)
	default:
		v = math.Ldexp(float64(f|1<<m.mantissa), e-m.bias-m.mantissa)
	}
	if sign == 1 {
		v = math.Copysign(v, -1)
	}
	return float32(v)
}

func (m minifloat) table() *[256]float32 {
	var t [256]float32
	mask := 1<<(1+m.exponent+m.mantissa) - 1
	for i := range t {
		t[i] = m.value(i & mask)
	}
	return &t
}

// Tables of the values of each code.
var (
	valuesE4M3     = minifloat{exponent: 4, mantissa: 3, bias: 7, nans: true}.table()
	valuesE5M2     = minifloat{exponent: 5, mantissa: 2, bias: 15, infinities: true}.table()
	valuesE4M3FNUZ = minifloat{exponent: 4, mantissa: 3, bias: 8, fnuz: true}.table()
	valuesE5M2FNUZ = minifloat{exponent: 5, mantissa: 2, bias: 16, fnuz: true}.table()
	valuesE3M2     = minifloat{exponent: 3, mantissa: 2, bias: 3}.table()
	valuesE2M3     = minifloat{exponent: 2, mantissa: 3, bias: 1}.table()
	valuesE2M1     = minifloat{exponent: 2, mantissa: 1, bias: 1}.table()
	valuesE8M0     = powers()
)

// powers are the values of E8M0: 2^(code − 127), the last a NaN.
func powers() *[256]float32 {
	var t [256]float32
	for i := range t {
		t[i] = float32(math.Ldexp(1, i-127))
	}
	t[255] = float32(math.NaN())
	return &t
}

func decodeByTable(t *[256]float32) func([]float32, []byte) {
	return func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = t[src[i]]
		}
	}
}

// decodeF4 reads two values a byte, the first in the low half.
func decodeF4(dst []float32, src []byte) {
	for i := range src {
		dst[2*i], dst[2*i+1] = valuesE2M1[src[i]&15], valuesE2M1[src[i]>>4]
	}
}

// decodeF6 reads four values of 6 bits from three bytes, the first in the lowest bits.
func decodeF6(t *[256]float32) func([]float32, []byte) {
	return func(dst []float32, src []byte) {
		for ; len(dst) > 0; dst, src = dst[4:], src[3:] {
			b := int(src[0]) | int(src[1])<<8 | int(src[2])<<16
			for i := range 4 {
				dst[i] = t[b>>(6*i)&63]
			}
		}
	}
}

func decodeU16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(u16(src[2*i:]))
	}
}

func decodeU32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(u32(src[4*i:]))
	}
}

func decodeU64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(binary.LittleEndian.Uint64(src[8*i:]))
	}
}
