//go:build !noasm

package vec

import "github.com/inferflow/inferflow/internal/sys"

//go:generate go -C ../_gen run ./vec ../vec

// useAVX2 and useAVX512, which implies it, are decided once at start; tests change them.
var (
	useAVX2   = sys.CPUTier() >= sys.AVX2
	useAVX512 = sys.CPUTier() >= sys.AVX512
)
