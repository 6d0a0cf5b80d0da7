//go:build !amd64 || noasm

package gemm

import (
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
)

// kernelSet would hold assembly; here there is none.
type kernelSet struct{}

type args struct{}

func setOf(sys.Tier, quant.Type) *kernelSet { return nil }

func (*kernelSet) panels(w *Matrix, dst []float32, stride int, a *Acts, from, to, p, end int, s *Scratch) {
	_ = s.args
	panic("gemm: no assembly in this build")
}

func (*kernelSet) finishRows(*Matrix, []float32, *Finish, *Acts, int, int, int, int, *Scratch) int {
	return 0
}

func (*kernelSet) wholeTiles(int) int { return 0 }

func (*kernelSet) addSegment(*Matrix, []float32, *Finish, *Acts, int, int, int, int, *Scratch) {
	panic("gemm: no assembly in this build")
}

func prepareInt8(dst []byte, src []float32) { prepareInt8Go(dst, src) }
