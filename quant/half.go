package quant

import "math"

// FromF16 converts the bits of an IEEE 754 binary16 value to float32, exactly;
// subnormals, infinities and the payload of a NaN are kept.
func FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 31
	man := uint32(h & 0x3ff)
	switch exp {
	case 0:
		// man × 2⁻²⁴ is exact in float32, so no normalising loop is needed.
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// ToF16 rounds f to the nearest binary16 value, ties to even, and returns its
// bits. What is too large becomes an infinity; a NaN stays a NaN.
func ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7c00 | uint16(b>>13)&0x3ff | 0x200
	case b >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case b < 0x38800000: // below 2⁻¹⁴: subnormal or zero
		// Adding 0.5 lets the float adder round the value to a multiple of
		// 2⁻²⁴; the sum's low mantissa bits are the result.
		s := math.Float32frombits(b) + 0.5
		return sign | uint16(math.Float32bits(s)-0x3f000000)
	}
	b += 0xfff + b>>13&1 // may carry into the exponent, which is right
	return sign | uint16((b-0x38000000)>>13)
}

// FromBF16 converts the bits of a bfloat16 value to float32, exactly.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToBF16 rounds f to the nearest bfloat16 value, ties to even, and returns its
// bits. A NaN stays a NaN (made quiet, as ggml does).
func ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
