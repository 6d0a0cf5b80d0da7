//go:build amd64 && !noasm

package attn

import "testing"

// eachTier runs f with the kernels of every tier that this processor has.
func eachTier(t *testing.T, f func(t *testing.T)) {
	was := useAVX2
	defer func() { useAVX2 = was }()
	useAVX2 = false
	t.Run("plain", f)
	if haveAVX2() {
		useAVX2 = true
		t.Run("avx2", f)
	}
}
