package gemm

import (
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// guarded gives n bytes that end where a page begins that nobody may touch.
func guarded(t *testing.T, n int) []byte {
	page := os.Getpagesize()
	size := roundUp(n, page)
	m, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	if err := unix.Mprotect(m[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return m[size-n : size : size]
}

// Kernels touch nothing past weights, activations, sources and results.
func TestNothingIsTouchedPastTheEnd(t *testing.T) {
	for _, typ := range allTypes {
		rng := rand.New(rand.NewPCG(9, uint64(typ)))
		for _, k := range sizesOf(typ) {
			for _, n := range []int{16, 19, 32} {
				w := newMatrix(t, rng, typ, n, k)
				data := guarded(t, len(w.data))
				copy(data, w.data)
				for _, rows := range []int{1, 2, 3, 4, 13, 26} {
					x := float32s(guarded(t, 4*rows*k))
					copy(x, randomActs(rng, rows, k))
					a := &Acts{buf: guarded(t, (rows+spareRows)*rowStride(KindOf(typ), k))}
					a.Prepare(KindOf(typ), x, k, rows, k, 0, rows)
					for _, tier := range tiers() {
						m := w.on(tier)
						m.data = data
						m.Mul(float32s(guarded(t, 4*rows*n)), n, a, 0, rows, 0, m.Panels(), NewScratch(k))
					}
				}
			}
		}
	}
}
