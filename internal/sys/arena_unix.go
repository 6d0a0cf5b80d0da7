//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

func allocate(bytes int) ([]byte, func() error, error) {
	extra, align := 0, arenaAlign
	if bytes >= 2*hugePage {
		extra, align = hugePage, hugePage
	}
	raw, err := unix.Mmap(-1, 0, bytes+extra, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	mem := aligned(raw, align, bytes)
	if extra > 0 {
		adviseHuge(mem)
	}
	return mem, func() error { return os.NewSyscallError("munmap", unix.Munmap(raw)) }, nil
}

func releasePages(b []byte) error {
	return os.NewSyscallError("madvise", unix.Madvise(b, releaseAdvice))
}
