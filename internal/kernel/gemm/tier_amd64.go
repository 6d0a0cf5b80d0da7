//go:build amd64 && !noasm

package gemm

import (
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
)

func avx2Int(one, two, four, unpack, wide kernel) *kernelSet {
	return &kernelSet{one: one, two: two, four: four, unpack: unpack, wide: wide, tile: 4, wideFrom: 12}
}

// avx2Sets are the kernels of the AVX2 tier.
var avx2Sets = map[quant.Type]*kernelSet{
	quant.Q4_0:   avx2Int(avx2Q40x1, avx2Q40x2, avx2Q40x4, avx2UnpackQ40, avx2WideOffset8),
	quant.Q5_0:   avx2Int(avx2Q50x1, avx2Q50x2, avx2Q50x4, avx2UnpackQ50, avx2WideOffset16),
	quant.Q8_0:   avx2Int(avx2Q80x1, avx2Q80x2, avx2Q80x4, avx2UnpackQ80, avx2WideSigned),
	quant.IQ4_NL: avx2Int(avx2IQ4NLx1, avx2IQ4NLx2, avx2IQ4NLx4, avx2UnpackIQ4NL, avx2WideSigned),
	quant.IQ4_XS: avx2Int(avx2IQ4XSx1, avx2IQ4XSx2, avx2IQ4XSx4, avx2UnpackIQ4XS, avx2WideSigned),
	quant.MXFP4:  avx2Int(avx2MXFP4x1, avx2MXFP4x2, avx2MXFP4x4, avx2UnpackMXFP4, avx2WideOffset12),
	quant.Q4_1:   avx2Int(avx2Q41x1, avx2Q41x2, avx2Q41x4, avx2UnpackQ41, avx2WideMin),
	quant.Q5_1:   avx2Int(avx2Q51x1, avx2Q51x2, avx2Q51x4, avx2UnpackQ51, avx2WideMinSplit),
	quant.Q4_K:   avx2Int(avx2Q4Kx1, avx2Q4Kx2, avx2Q4Kx4, avx2UnpackQ4K, avx2WideMin),
	quant.Q5_K:   avx2Int(avx2Q5Kx1, avx2Q5Kx2, avx2Q5Kx4, avx2UnpackQ5K, avx2WideMinSplit),
	quant.Q3_K:   avx2Int(avx2Q3Kx1, avx2Q3Kx2, avx2Q3Kx4, avx2UnpackQ3K, avx2WideSub4),
	quant.Q6_K:   avx2Int(avx2Q6Kx1, avx2Q6Kx2, avx2Q6Kx4, avx2UnpackQ6K, avx2WideSub32),
	quant.Q2_K:   avx2Int(avx2Q2Kx1, avx2Q2Kx2, avx2Q2Kx4, avx2UnpackQ2K, avx2WideSubMin),
	quant.F32:    {one: avx2F32x1, two: avx2F32x2, four: avx2F32x4, wide: avx2WideFloat, tile: 6, wideFrom: 12},
	quant.F16:    {one: avx2F16x1, two: avx2F16x2, four: avx2F16x4, unpack: avx2UnpackF16, wide: avx2WideFloat, tile: 6, wideFrom: 18},
	quant.BF16:   {one: avx2BF16x1, two: avx2BF16x2, four: avx2BF16x4, unpack: avx2UnpackBF16, wide: avx2WideFloat, tile: 6, wideFrom: 18},
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
