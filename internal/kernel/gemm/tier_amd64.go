//go:build amd64 && !noasm

package gemm

import (
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
)

// avx2Int puts the kernels of an integer type together. wideFrom was measured:
// it depends on how much unpacking costs against what it saves a tile.
func avx2Int(one, two, four, unpack, wide kernel, wideFrom int) *kernelSet {
	return &kernelSet{one: one, two: two, four: four, unpack: unpack, wideKernels: wideKernels{wide: wide}, tile: 4, wideFrom: wideFrom}
}

func avx512Int(one, two, four, unpack, wide kernel) *kernelSet {
	return &kernelSet{one: one, two: two, four: four, unpack: unpack, wideKernels: wideKernels{wide: wide}, tile: 8, wideFrom: 8}
}

func avx512Float(one, two, four, unpack kernel, wideFrom int) *kernelSet {
	return &kernelSet{
		one: one, two: two, four: four, unpack: unpack, tile: 8, wideFrom: wideFrom,
		wideKernels: wideKernels{avx512WideFloat, avx512WideFloatSet, avx512WideFloatFinish, avx512WideFloatOnly},
		pair:        wideKernels{avx512WideFloatPair, avx512WideFloatPairSet, avx512WideFloatPairFinish, avx512WideFloatPairOnly},
	}
}

// avx2Sets are the kernels of the AVX2 tier.
var avx2Sets = map[quant.Type]*kernelSet{
	quant.Q4_0:   avx2Int(avx2Q40x1, avx2Q40x2, avx2Q40x4, avx2UnpackQ40, avx2WideOffset8, 24),
	quant.Q5_0:   avx2Int(avx2Q50x1, avx2Q50x2, avx2Q50x4, avx2UnpackQ50, avx2WideOffset16, 8),
	quant.Q8_0:   avx2Int(avx2Q80x1, avx2Q80x2, avx2Q80x4, avx2UnpackQ80, avx2WideSigned, 48),
	quant.IQ4_NL: avx2Int(avx2IQ4NLx1, avx2IQ4NLx2, avx2IQ4NLx4, avx2UnpackIQ4NL, avx2WideSigned, 20),
	quant.IQ4_XS: avx2Int(avx2IQ4XSx1, avx2IQ4XSx2, avx2IQ4XSx4, avx2UnpackIQ4XS, avx2WideSigned, 20),
	quant.MXFP4:  avx2Int(avx2MXFP4x1, avx2MXFP4x2, avx2MXFP4x4, avx2UnpackMXFP4, avx2WideOffset12, 12),
	quant.Q4_1:   avx2Int(avx2Q41x1, avx2Q41x2, avx2Q41x4, avx2UnpackQ41, avx2WideMin, 32),
	quant.Q5_1:   avx2Int(avx2Q51x1, avx2Q51x2, avx2Q51x4, avx2UnpackQ51, avx2WideMinSplit, 8),
	quant.Q4_K:   avx2Int(avx2Q4Kx1, avx2Q4Kx2, avx2Q4Kx4, avx2UnpackQ4K, avx2WideMin, 20),
	quant.Q5_K:   avx2Int(avx2Q5Kx1, avx2Q5Kx2, avx2Q5Kx4, avx2UnpackQ5K, avx2WideMinSplit, 8),
	quant.Q3_K:   avx2Int(avx2Q3Kx1, avx2Q3Kx2, avx2Q3Kx4, avx2UnpackQ3K, avx2WideSub4, 8),
	quant.Q6_K:   avx2Int(avx2Q6Kx1, avx2Q6Kx2, avx2Q6Kx4, avx2UnpackQ6K, avx2WideSub32, 8),
	quant.Q2_K:   avx2Int(avx2Q2Kx1, avx2Q2Kx2, avx2Q2Kx4, avx2UnpackQ2K, avx2WideSubMin, 32),
	quant.F32:    {one: avx2F32x1, two: avx2F32x2, four: avx2F32x4, wideKernels: wideKernels{avx2WideFloat, avx2WideFloatSet, avx2WideFloatFinish, avx2WideFloatOnly}, tile: 6, wideFrom: 12},
	quant.F16:    {one: avx2F16x1, two: avx2F16x2, four: avx2F16x4}, // widening is free beside the products
	quant.BF16:   {one: avx2BF16x1, two: avx2BF16x2, four: avx2BF16x4},
}

// avx512Sets are the kernels of the AVX-512 tier.
var avx512Sets = map[quant.Type]*kernelSet{
	quant.Q4_0:   avx512Int(avx512Q40x1, avx512Q40x2, avx512Q40x4, avx512UnpackQ40, avx512WideOffset),
	quant.Q5_0:   avx512Int(avx512Q50x1, avx512Q50x2, avx512Q50x4, avx512UnpackQ50, avx512WideOffset),
	quant.Q8_0:   avx512Int(avx512Q80x1, avx512Q80x2, avx512Q80x4, avx512UnpackQ80, avx512WideOffset),
	quant.IQ4_NL: avx512Int(avx512IQ4NLx1, avx512IQ4NLx2, avx512IQ4NLx4, avx512UnpackIQ4NL, avx512WideOffset),
	quant.IQ4_XS: avx512Int(avx512IQ4XSx1, avx512IQ4XSx2, avx512IQ4XSx4, avx512UnpackIQ4XS, avx512WideOffset),
	quant.MXFP4:  avx512Int(avx512MXFP4x1, avx512MXFP4x2, avx512MXFP4x4, avx512UnpackMXFP4, avx512WideOffset),
	quant.Q4_1:   avx512Int(avx512Q41x1, avx512Q41x2, avx512Q41x4, avx512UnpackQ41, avx512WideMin),
	quant.Q5_1:   avx512Int(avx512Q51x1, avx512Q51x2, avx512Q51x4, avx512UnpackQ51, avx512WideMin),
	quant.Q4_K:   avx512Int(avx512Q4Kx1, avx512Q4Kx2, avx512Q4Kx4, avx512UnpackQ4K, avx512WideMin),
	quant.Q5_K:   avx512Int(avx512Q5Kx1, avx512Q5Kx2, avx512Q5Kx4, avx512UnpackQ5K, avx512WideMin),
	quant.Q3_K:   avx512Int(avx512Q3Kx1, avx512Q3Kx2, avx512Q3Kx4, avx512UnpackQ3K, avx512WideSub),
	quant.Q6_K:   avx512Int(avx512Q6Kx1, avx512Q6Kx2, avx512Q6Kx4, avx512UnpackQ6K, avx512WideSub),
	quant.Q2_K:   avx512Int(avx512Q2Kx1, avx512Q2Kx2, avx512Q2Kx4, avx512UnpackQ2K, avx512WideSubMin),
	quant.F32:    avx512Float(avx512F32x1, avx512F32x2, avx512F32x4, nil, 8),
	quant.F16:    avx512Float(avx512F16x1, avx512F16x2, avx512F16x4, avx512UnpackF16, 16),
	quant.BF16:   avx512Float(avx512BF16x1, avx512BF16x2, avx512BF16x4, avx512UnpackBF16, 16),
}

// prepareInt8 writes the records of a row.
func prepareInt8(dst []byte, src []float32) {
	if sys.CPUTier() == sys.Generic || len(src) == 0 {
		prepareInt8Go(dst, src)
		return
	}
	_ = dst[len(src)/granule*recordBytes-1]
	avx2PrepareInt8(&dst[0], &src[0], len(src)/granule)
}
