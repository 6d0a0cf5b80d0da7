package sys

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestMapFile(t *testing.T) {
	page := os.Getpagesize()
	for _, n := range []int{1, 100, page, 3*page + 17} {
		want := bytes.Repeat([]byte("inferflow"), n/9+1)[:n]
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, want, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := MapFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []Advice{Sequential, WillNeed, DontNeed} {
			for _, r := range [][2]int{{0, n}, {n, 0}, {n / 2, n - n/2}, {0, 0}, {n / 3, n / 3}} {
				if err := m.Advise(r[0], r[1], a); err != nil {
					t.Errorf("advise %v %v: %v", r, a, err)
				}
			}
		}
		for _, r := range [][2]int{{-1, 1}, {0, n + 1}, {n + 1, 0}, {1, -1}} {
			if m.Advise(r[0], r[1], WillNeed) == nil {
				t.Errorf("advise %v of %d bytes: want an error", r, n)
			}
		}
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("%d bytes: contents differ", n)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Close(); !errors.Is(err, ErrClosed) {
			t.Errorf("second close: %v", err)
		}
		if err := m.Advise(0, 0, WillNeed); !errors.Is(err, ErrClosed) {
			t.Errorf("advise after close: %v", err)
		}
		if m.Bytes() != nil {
			t.Error("bytes after close")
		}
	}
}

func TestMapFileErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{empty: ErrEmptyFile, dir: ErrNotRegular, filepath.Join(dir, "none"): fs.ErrNotExist} {
		if _, err := MapFile(name); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

func TestPageRange(t *testing.T) {
	p := os.Getpagesize()
	for _, c := range []struct {
		lo, hi, size int
		inward       bool
		wantLo, end  int
	}{
		{1, p + 1, 4 * p, false, 0, 2 * p},
		{1, p + 1, 4 * p, true, p, p},
		{0, 2*p + 5, 2*p + 5, true, 0, 2*p + 5},
		{p, 2*p + 4, 2*p + 5, true, p, 2 * p},
		{2*p + 1, 2*p + 2, 2*p + 5, true, 2*p + 5, 2 * p},
		{2*p + 1, 2*p + 2, 2*p + 5, false, 2 * p, 2*p + 5},
	} {
		lo, hi := pageRange(c.lo, c.hi, c.size, c.inward)
		if lo != c.wantLo || hi != c.end {
			t.Errorf("pageRange(%d, %d, %d, %v) = %d, %d; want %d, %d", c.lo, c.hi, c.size, c.inward, lo, hi, c.wantLo, c.end)
		}
	}
}

// TestNoRoom: a file that has no room in the address space is told from one that
// cannot be read.
func TestNoRoom(t *testing.T) {
	err := unmapped("m.gguf", 12, os.NewSyscallError("mmap", syscall.ENOMEM))
	if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "m.gguf") || !strings.Contains(err.Error(), "ulimit -v") {
		t.Errorf("got %v", err)
	}
	if err := unmapped("m.gguf", 12, os.NewSyscallError("mmap", syscall.EACCES)); errors.Is(err, ErrNoRoom) {
		t.Errorf("got %v", err)
	}
}
