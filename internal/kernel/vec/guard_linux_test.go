package vec

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded gives n elements that end (or begin, at the front) at a page that faults
// when touched.
func guarded[E float32 | uint16](t testing.TB, n int, front bool) []E {
	var e E
	page, size := os.Getpagesize(), int(unsafe.Sizeof(e))
	body := (n*size + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, body+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	for _, p := range [][]byte{mem[:page], mem[page+body:]} {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	at := page
	if !front {
		at = page + body - n*size
	}
	return unsafe.Slice((*E)(unsafe.Pointer(&mem[at])), n)
}
