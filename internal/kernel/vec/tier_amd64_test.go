//go:build amd64 && !noasm

package vec

import (
	"testing"

	"github.com/inferflow/inferflow/internal/sys"
)

// eachTier runs f with the kernels of every tier that this processor has.
func eachTier(t *testing.T, f func(t *testing.T)) {
	defer use(sys.CPUTier())
	for tier := sys.Generic; tier <= sys.CPUTier(); tier++ {
		use(tier)
		t.Run(tier.String(), f)
	}
}

// plainly runs f with the plain kernels.
func plainly(f func()) {
	defer use(sys.CPUTier())
	use(sys.Generic)
	f()
}

func use(tier sys.Tier) { useAVX2, useAVX512 = tier >= sys.AVX2, tier >= sys.AVX512 }
