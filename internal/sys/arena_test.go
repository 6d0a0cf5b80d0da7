package sys

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"
)

func TestArena(t *testing.T) {
	for _, size := range []int{1, 4096, 5 << 20} {
		a, err := NewArena(size)
		if err != nil {
			t.Fatal(err)
		}
		if a.Size() != size {
			t.Errorf("size %d, want %d", a.Size(), size)
		}
		b, err := a.Bytes(size)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d is %d", i, b[i])
			}
			b[i] = byte(i)
		}
		if _, err := a.Bytes(1); !errors.Is(err, ErrArenaFull) {
			t.Errorf("full arena: %v", err)
		}
		if err := a.Release(b); err != nil {
			t.Error(err)
		}
		b[size-1] = 1 // still mapped
		if err := a.Release(make([]byte, 8)); err == nil {
			t.Error("released a stranger's slice")
		}
		a.Reset()
		if a.Used() != 0 {
			t.Error("used after reset")
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := a.Close(); !errors.Is(err, ErrClosed) {
			t.Errorf("second close: %v", err)
		}
		if _, err := a.Bytes(0); !errors.Is(err, ErrClosed) {
			t.Errorf("bytes after close: %v", err)
		}
	}
}

func TestArenaAlignment(t *testing.T) {
	a, err := NewArena(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for n := 1; n < 200; n += 7 {
		b, err := a.Bytes(n)
		if err != nil {
			t.Fatal(err)
		}
		f, err := a.Float32s(n)
		if err != nil {
			t.Fatal(err)
		}
		if uintptr(unsafe.Pointer(&b[0]))%64 != 0 || uintptr(unsafe.Pointer(&f[0]))%64 != 0 {
			t.Fatalf("n=%d: not aligned", n)
		}
		if cap(b) != n || len(f) != n {
			t.Fatalf("n=%d: cap %d, len %d", n, cap(b), len(f))
		}
	}
	for _, n := range []int{-1, math.MaxInt, math.MinInt} {
		if _, err := a.Bytes(n); err == nil {
			t.Errorf("Bytes(%d): want an error", n)
		}
		if _, err := a.Float32s(n); err == nil {
			t.Errorf("Float32s(%d): want an error", n)
		}
	}
	if f, err := a.Float32s(0); err != nil || len(f) != 0 {
		t.Errorf("Float32s(0): %v, %v", f, err)
	}
}

func TestArenaSizes(t *testing.T) {
	for _, n := range []int{0, -1, math.MinInt, math.MaxInt, math.MaxInt - 100, 1 << 60} {
		if a, err := NewArena(n); err == nil {
			a.Close()
			t.Errorf("NewArena(%d): want an error", n)
		}
	}
}

// TestArenaTooLarge says what to do where the system gives no memory.
func TestArenaTooLarge(t *testing.T) {
	a, err := NewArena(math.MaxInt / 2)
	if err == nil {
		a.Close()
		t.Fatal("half of all addresses were reserved")
	}
	if !strings.Contains(err.Error(), "take a smaller model") {
		t.Errorf("got %v", err)
	}
}
