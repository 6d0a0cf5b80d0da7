//go:build !amd64 || noasm

package attn

import "testing"

func eachTier(t *testing.T, f func(t *testing.T)) { t.Run("plain", f) }
