package attn

import (
	"math"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded copies x to memory that ends at a page that faults when touched.
func guarded[E byte | float32](t testing.TB, x []E) []E {
	var e E
	page, size := os.Getpagesize(), len(x)*int(unsafe.Sizeof(e))
	body := (size + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, body+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	if err := unix.Mprotect(mem[body:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	y := unsafe.Slice((*E)(unsafe.Pointer(&mem[body-size])), len(x))
	copy(y, x)
	return y
}

// TestGuardPages has every operand end at a page that must not be touched.
func TestGuardPages(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for i, s := range shapes {
			for _, tokens := range []int{1, 7} {
				s.keys = 33 + i
				s.first = 0
				q := build(s, tokens, uint64(i))
				c := &q.call
				c.Run(NewScratch(64, s.dk, s.dv))
				want := append([]float32(nil), c.Out...)
				c.Q = c.Q[:(c.Rows-1)*c.QStride+c.DK]
				last := (c.Rows-1)*c.OutStride + c.DV
				c.Keys, c.Values, c.Q = guarded(t, c.Keys), guarded(t, c.Values), guarded(t, c.Q)
				c.Out = guarded(t, c.Out[:last])
				scr := NewScratch(64, s.dk, s.dv)
				for _, f := range []*[]float32{&scr.logits, &scr.alpha, &scr.ref, &scr.keys, &scr.values, &scr.part.M, &scr.part.L, &scr.part.Acc} {
					*f = guarded(t, *f)
				}
				c.Run(scr)
				for j := range c.Out {
					if math.Float32bits(c.Out[j]) != math.Float32bits(want[j]) {
						t.Fatalf("%v: element %d is %v, want %v", s, j, c.Out[j], want[j])
					}
				}
			}
		}
	})
}
