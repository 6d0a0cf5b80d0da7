//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sys

import (
	"fmt"
	"runtime/debug"
)

// allocate takes the memory from the Go heap: a slice of bytes holds no pointers,
// so the collector counts but does not scan it.
func allocate(bytes int) (mem []byte, free func() error, err error) {
	defer func() {
		// make panics, rather than fails, on a size beyond the address space.
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	raw := make([]byte, bytes+arenaAlign)
	return aligned(raw, arenaAlign, bytes), func() error {
		raw = nil
		debug.FreeOSMemory()
		return nil
	}, nil
}

func releasePages([]byte) error { return nil }
