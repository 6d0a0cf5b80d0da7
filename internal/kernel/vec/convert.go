package vec

import (
	"math"

	"github.com/inferflow/inferflow/quant"
)

// F16ToF32 converts binary16 bits exactly. A signalling NaN may become quiet.
func F16ToF32(dst []float32, src []uint16) {
	if src = src[:len(dst)]; len(src) == 0 {
		return
	}
	if useAVX2 {
		f16ToF32AVX2(&dst[0], &src[0], len(src))
		return
	}
	for i, h := range src {
		if h&0x7c00 == 0x7c00 {
			dst[i] = quant.FromF16(h)
			continue
		}
		// The bits in their places, as a number 2¹¹² too small; the product is exact,
		// of subnormals too.
		f := math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112
		dst[i] = math.Float32frombits(math.Float32bits(f) | uint32(h&0x8000)<<16)
	}
}

// F32ToF16 rounds to the nearest binary16, ties to even. A finite value beyond
// ±65504 becomes ±65504; infinities and NaN stay what they are, so a fault upstream
// is not hidden.
func F32ToF16(dst []uint16, src []float32) {
	if src = src[:len(dst)]; len(src) == 0 {
		return
	}
	if useAVX2 {
		f32ToF16AVX2(&dst[0], &src[0], len(src))
		return
	}
	for i, f := range src {
		dst[i] = saturate(f)
	}
}

func saturate(f float32) uint16 {
	if b := math.Float32bits(f) &^ (1 << 31); b > 0x477fe000 && b < 0x7f800000 {
		return uint16(math.Float32bits(f)>>16)&0x8000 | 0x7bff
	}
	return quant.ToF16(f)
}

// BF16ToF32 converts bfloat16 bits exactly.
func BF16ToF32(dst []float32, src []uint16) {
	if src = src[:len(dst)]; len(src) == 0 {
		return
	}
	if useAVX2 {
		bf16ToF32AVX2(&dst[0], &src[0], len(src))
		return
	}
	for i, h := range src {
		dst[i] = quant.FromBF16(h)
	}
}

// F32ToBF16 rounds to the nearest bfloat16, ties to even. What is too large becomes
// an infinity, a NaN stays a NaN.
func F32ToBF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i, f := range src {
		dst[i] = quant.ToBF16(f)
	}
}
