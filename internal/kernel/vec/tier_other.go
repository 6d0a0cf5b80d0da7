//go:build !amd64 || noasm

package vec

const useAVX2, useAVX512 = false, false

// The functions below are never reached: useAVX2 is a constant. They stand here so
// that each exported function is written once.

func sumAVX2(*float32, int) float32                 { return 0 }
func sumSquaresAVX2(*float32, float32, int) float32 { return 0 }
func dotAVX2(_, _ *float32, _ int) float32          { return 0 }
func decayDotAVX2(_, _, _, _ *float32, _, _ float32, _ int) float32 {
	return 0
}
func maxAVX2(*float32, int) (float32, uint32)                 { return 0, 0 }
func findAVX2(*float32, float32, int) int                     { return 0 }
func expSumAVX2(_, _ *float32, _ float32, _ int) float32      { return 0 }
func scaleWeightAVX2(_, _, _ *float32, _, _ float32, _ int)   {}
func shiftScaleAVX2(_, _ *float32, _, _ float32, _ int)       {}
func addAVX2(_, _, _ *float32, _ int)                         {}
func addAddAVX2(_, _, _, _ *float32, _ int)                   {}
func layerAVX2(_, _, _, _ *float32, _, _ float32, _ int)      {}
func geluErfAddAVX2(_, _, _ *float32, _ int)                  {}
func subAVX2(_, _, _ *float32, _ int)                         {}
func mulAVX2(_, _, _ *float32, _ int)                         {}
func divAVX2(_, _, _ *float32, _ int)                         {}
func sigmoidMulAVX2(_, _, _ *float32, _ int)                  {}
func geluQuickAVX2(_, _ *float32, _ int)                      {}
func scaleAVX2(_, _ *float32, _ float32, _ int)               {}
func axpyAVX2(_, _, _ *float32, _ float32, _ int)             {}
func expAVX2(_, _ *float32, _ int)                            {}
func sigmoidAVX2(_, _ *float32, _ int)                        {}
func softcapAVX2(_, _ *float32, _, _ float32, _ int)          {}
func siluAVX2(_, _ *float32, _ int)                           {}
func siluMulAVX2(_, _, _ *float32, _ int)                     {}
func geluTanhAVX2(_, _ *float32, _ int)                       {}
func geluTanhMulAVX2(_, _, _ *float32, _ int)                 {}
func geluErfAVX512(_, _ *float32, _ int)                      {}
func geluErfAddAVX512(_, _, _ *float32, _ int)                {}
func geluErfAVX2(_, _ *float32, _ int)                        {}
func geluErfMulAVX2(_, _, _ *float32, _ int)                  {}
func clampedSwiGLUAVX2(_, _, _ *float32, _, _ float32, _ int) {}
func reluAVX2(_, _ *float32, _ int)                           {}
func relu2AVX2(_, _ *float32, _ int)                          {}
func ropeHalfAVX2(_, _, _, _ *float32, _ int)                 {}
func ropePairsAVX2(_, _, _ *float32, _ int)                   {}
func f16ToF32AVX2(_ *float32, _ *uint16, _ int)               {}
func f32ToF16AVX2(_ *uint16, _ *float32, _ int)               {}
func bf16ToF32AVX2(_ *float32, _ *uint16, _ int)              {}
