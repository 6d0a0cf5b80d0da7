//go:build amd64 && !noasm

package vec

import (
	"testing"

	"github.com/inferflow/inferflow/internal/sys"
)

// eachTier runs f with the kernels of every tier that this processor has.
func eachTier(t *testing.T, f func(t *testing.T)) {
	was := useAVX2
	defer func() { useAVX2 = was }()
	useAVX2 = false
	t.Run("plain", f)
	if sys.CPUTier() >= sys.AVX2 {
		useAVX2 = true
		t.Run("avx2", f)
	}
}

// plainly runs f with the plain kernels.
func plainly(f func()) {
	was := useAVX2
	useAVX2 = false
	f()
	useAVX2 = was
}
