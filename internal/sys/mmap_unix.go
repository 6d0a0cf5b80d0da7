//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) ([]byte, func([]byte) error, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, unix.Munmap, nil
}

func adviseMap(b []byte, a Advice) error {
	how := unix.MADV_SEQUENTIAL
	switch a {
	case WillNeed:
		how = unix.MADV_WILLNEED
	case DontNeed:
		how = unix.MADV_DONTNEED
	}
	return os.NewSyscallError("madvise", unix.Madvise(b, how))
}
