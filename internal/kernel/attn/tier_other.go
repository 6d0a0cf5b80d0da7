//go:build !amd64 || noasm

package attn

func haveAVX2() bool { return false }

// The functions below are never reached, for haveAVX2 says no. They stand here so
// that each step is written once.

func scoresFast(Elem, []float32, []float32, int, []byte, int, int) {}

func weighFast(Elem, []float32, int, []float32, []float32, []byte, int, int, int) {}

func turnFast([]float32, []float32, int, int, int) {}

func finishFast([]float32, int, []float32, int, []float32, int) {}

func weighF32AVX2(_ *float32, _ int, _, _, _ *float32, _, _, _, _ int) {}

func softmaxAVX2(_, _, _, _, _ *float32, _, _ *int32, _ float32, _ int) {}
