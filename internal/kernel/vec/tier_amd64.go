//go:build !noasm

package vec

import "github.com/inferflow/inferflow/internal/sys"

//go:generate go -C ../_gen run ./vec ../vec

// useAVX2 is decided once at start; tests change it.
var useAVX2 = sys.CPUTier() >= sys.AVX2
