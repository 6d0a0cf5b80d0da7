package sys

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"syscall"
)

// Errors of MapFile and Mapping that callers branch on.
var (
	ErrEmptyFile  = errors.New("file is empty")
	ErrNotRegular = errors.New("not a regular file")
	ErrClosed     = errors.New("already closed")
)

// Advice tells the operating system how a range of a mapping will be used. It
// changes speed and memory, never contents.
type Advice int

const (
	Sequential Advice = iota // will be read once, front to back
	WillNeed                 // start reading it now
	DontNeed                 // its pages may be dropped; reading brings them back
)

// Mapping is a file mapped read-only. Its bytes belong to the mapping: they must
// not be written to and not be touched after Close. A file that somebody shortens
// while it is mapped makes reads beyond the new end fail with a fault that Go
// reports as a fatal error, so model files are to be replaced, not rewritten.
type Mapping struct {
	path   string
	data   []byte
	unmap  func([]byte) error
	mu     sync.Mutex
	closed bool
}

// MapFile maps the regular file at path read-only. Where the system has no memory
// maps the file is read as a whole. Errors name the path and wrap ErrEmptyFile,
// ErrNotRegular or the error of the system.
func MapFile(path string) (*Mapping, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("sys: map: %w", err)
	}
	switch {
	case info.Size() == 0:
		return nil, fmt.Errorf("sys: map: %s: %w", path, ErrEmptyFile)
	case info.Size() > math.MaxInt:
		return nil, fmt.Errorf("sys: map: %s: %d bytes do not fit this platform's address space", path, info.Size())
	}
	data, unmap, err := mapFile(f, int(info.Size()))
	if err != nil {
		return nil, unmapped(path, info.Size(), err)
	}
	return &Mapping{path: path, data: data, unmap: unmap}, nil
}

// ErrNoRoom says that the process has no addresses left for a file, which itself may
// be in order.
var ErrNoRoom = errors.New("no room in the process's address space")

func unmapped(path string, size int64, err error) error {
	if errors.Is(err, syscall.ENOMEM) {
		return fmt.Errorf("sys: map: %s: %w for its %d bytes (%w): raise the limit (ulimit -v, the container's) or take a smaller model", path, ErrNoRoom, size, err)
	}
	return fmt.Errorf("sys: map: %s: %d bytes: %w", path, size, err)
}

// OpenRegular opens a file for reading. Errors name the path; of a pipe, a device
// or a folder they wrap ErrNotRegular.
func OpenRegular(path string) (*os.File, error) {
	// Stat comes before Open because opening a named pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("sys: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("sys: open: %s: %w (mode %s)", path, ErrNotRegular, info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("sys: %w", err)
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w (mode %s)", path, ErrNotRegular, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("sys: %w", err)
	}
	return f, nil
}

// Bytes is the whole file; nil after Close.
func (m *Mapping) Bytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data
}

// Path is the name the file was opened by.
func (m *Mapping) Path() string { return m.path }

// Advise passes advice for bytes off to off+n. DontNeed is narrowed to the whole
// pages of the range, so neighbours keep theirs; the others are widened. Systems
// without such a call ignore it.
func (m *Mapping) Advise(off, n int, a Advice) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("sys: advise: %s: %w", m.path, ErrClosed)
	}
	if off < 0 || n < 0 || off > len(m.data) || n > len(m.data)-off {
		return fmt.Errorf("sys: advise: %s: range %d+%d lies outside %d bytes", m.path, off, n, len(m.data))
	}
	lo, hi := pageRange(off, off+n, len(m.data), a == DontNeed)
	if lo >= hi {
		return nil
	}
	if err := adviseMap(m.data[lo:hi], a); err != nil {
		return fmt.Errorf("sys: advise: %s: range %d+%d: %w", m.path, off, n, err)
	}
	return nil
}

// Close unmaps the file. A second Close returns ErrClosed.
func (m *Mapping) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("sys: close: %s: %w", m.path, ErrClosed)
	}
	m.closed = true
	data := m.data
	m.data = nil
	if err := m.unmap(data); err != nil {
		return fmt.Errorf("sys: close: %s: %w", m.path, err)
	}
	return nil
}

// pageRange rounds lo and hi to pages, inward or outward, within size bytes that
// start on a page. The end of the range counts as a page border: the rest of the
// last page is nobody's.
func pageRange(lo, hi, size int, inward bool) (int, int) {
	page := os.Getpagesize()
	if !inward {
		lo -= lo % page
		if r := hi % page; r != 0 {
			hi = min(size, hi+page-r)
		}
		return lo, hi
	}
	if r := lo % page; r != 0 {
		lo = min(size, lo+page-r)
	}
	if hi != size {
		hi -= hi % page
	}
	return lo, hi
}
