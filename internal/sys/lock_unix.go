//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sys

import (
	"os"
	"syscall"
)

// tryLock takes the lock of a file until it is closed, unless another holds it.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
