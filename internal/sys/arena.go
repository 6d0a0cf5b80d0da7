package sys

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// ErrArenaFull says that a sub-allocation does not fit what is left of an arena.
var ErrArenaFull = errors.New("arena is full")

// arenaAlign is the alignment in bytes of every sub-allocation: a cache line, and
// the widest vector register.
const arenaAlign = 64

// Arena is one piece of zeroed memory off the Go heap, handed out front to back
// and given back as a whole by Close. The collector neither scans nor counts it,
// so it must hold no Go pointers. Slices of an arena must not be touched after
// Close. Methods may be called from several goroutines.
type Arena struct {
	mu   sync.Mutex
	mem  []byte // aligned, capacity asked for
	free func() error
	used int
}

// NewArena reserves bytes of zeroed memory, aligned to 64 bytes; on Linux a large
// arena is aligned to 2 MiB and asks for huge pages. Memory is committed when it is
// first touched, where the system allows that.
func NewArena(bytes int) (*Arena, error) {
	if bytes <= 0 || bytes > math.MaxInt-hugePage-arenaAlign {
		return nil, fmt.Errorf("sys: arena: cannot reserve %d bytes", bytes)
	}
	mem, free, err := allocate(bytes)
	if err != nil {
		return nil, fmt.Errorf("sys: arena: reserving %.1f GiB (%d bytes): %w: the system gives no more memory; take a smaller model or a smaller type of its weights, a shorter context, fewer sequences or rows at once, or raise the limit on memory (ulimit -v, the container's)",
			float64(bytes)/(1<<30), bytes, err)
	}
	return &Arena{mem: mem, free: free}, nil
}

// hugePage is the size of a large page on the systems that have them here.
const hugePage = 2 << 20

// Bytes gives the next n bytes, zeroed if never used before, aligned to 64; its
// capacity ends at n. It fails with ErrArenaFull.
func (a *Arena) Bytes(n int) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mem == nil {
		return nil, fmt.Errorf("sys: arena: %w", ErrClosed)
	}
	off := (a.used + arenaAlign - 1) &^ (arenaAlign - 1)
	if n < 0 || off > len(a.mem) || n > len(a.mem)-off {
		return nil, fmt.Errorf("sys: arena: %d bytes asked, %d of %d used: %w", n, a.used, len(a.mem), ErrArenaFull)
	}
	a.used = off + n
	return a.mem[off : off+n : off+n], nil
}

// Float32s gives the next n float32 values of the arena; see Bytes.
func (a *Arena) Float32s(n int) ([]float32, error) {
	if n < 0 || n > math.MaxInt/4 {
		return nil, fmt.Errorf("sys: arena: %d float32 asked: %w", n, ErrArenaFull)
	}
	b, err := a.Bytes(4 * n)
	if err != nil || n == 0 {
		return nil, err
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n), nil
}

// Used is the number of bytes handed out, padding included; Size those reserved.
func (a *Arena) Used() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Size is the number of bytes reserved.
func (a *Arena) Size() int { return len(a.mem) }

// Reset makes the whole arena available again. Earlier slices stay mapped but are
// no longer their owners' alone; contents are kept, so they are not zero any more.
func (a *Arena) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = 0
}

// Release gives the whole pages inside b, a slice of this arena, back to the system
// without unreserving them. What b holds afterwards is undefined until it is written.
func (a *Arena) Release(b []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mem == nil {
		return fmt.Errorf("sys: arena: release: %w", ErrClosed)
	}
	if len(b) == 0 {
		return nil
	}
	base := uintptr(unsafe.Pointer(&a.mem[0]))
	p := uintptr(unsafe.Pointer(&b[0]))
	if p < base || p-base > uintptr(len(a.mem)-len(b)) {
		return errors.New("sys: arena: release: the slice is not of this arena")
	}
	off := int(p - base)
	lo, hi := pageRange(off, off+len(b), len(a.mem), true)
	if lo >= hi {
		return nil
	}
	if err := releasePages(a.mem[lo:hi]); err != nil {
		return fmt.Errorf("sys: arena: release %d bytes: %w", hi-lo, err)
	}
	return nil
}

// Close gives all memory back. A second Close returns ErrClosed.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mem == nil {
		return fmt.Errorf("sys: arena: close: %w", ErrClosed)
	}
	a.mem = nil
	if err := a.free(); err != nil {
		return fmt.Errorf("sys: arena: close: %w", err)
	}
	return nil
}

// aligned is the part of b that starts at a multiple of align, n bytes long.
func aligned(b []byte, align, n int) []byte {
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (align - 1)
	return b[skip : skip+n : skip+n]
}
