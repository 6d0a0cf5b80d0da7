//go:build !amd64 || noasm

package attn

const directRows = 0

func haveAVX2() bool { return false }

// The functions below are never reached, for haveAVX2 says no. They stand here so
// that each step is written once.

func scoresDirect(Elem, []float32, []float32, int, []byte, int, int) {}

func weighDirect(Elem, []float32, int, []float32, []float32, []byte, int, int, int) {}

func scoresF32AVX2(_, _ *float32, _ int, _ *float32, _, _ int) {}

func weighF32AVX2(_ *float32, _ int, _, _, _ *float32, _, _, _, _ int) {}

func softmaxAVX2(_, _, _, _ *float32, _, _ *int32, _ float32, _ int) {}
