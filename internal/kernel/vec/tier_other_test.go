//go:build !amd64 || noasm

package vec

import "testing"

func eachTier(t *testing.T, f func(t *testing.T)) { t.Run("plain", f) }

func plainly(f func()) { f() }
