//go:build windows

package sys

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapFile(f *os.File, size int) ([]byte, func([]byte) error, error) {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY,
		uint32(uint64(size)>>32), uint32(uint64(size)), nil)
	if err != nil {
		return nil, nil, os.NewSyscallError("CreateFileMapping", err)
	}
	// The view keeps the section alive, so its handle can go at once.
	defer windows.CloseHandle(h)
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, os.NewSyscallError("MapViewOfFile", err)
	}
	// The address is of memory that Go does not manage; read through a pointer to
	// the variable because vet rightly distrusts unsafe.Pointer(uintptr).
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(p), size), func([]byte) error {
		return os.NewSyscallError("UnmapViewOfFile", windows.UnmapViewOfFile(addr))
	}, nil
}

// adviseMap does nothing: Windows trims a file's pages from the working set by
// itself and has no counterpart of madvise for views of files.
func adviseMap([]byte, Advice) error { return nil }
