// Package gguf reads and writes GGUF, the file format of ggml: metadata and
// named tensors, memory-mapped, in one file or split over several. It knows
// nothing of models and must not import anything above package tensor but
// internal/sys. Read File first.
package gguf

import (
	"errors"
	"fmt"
	"math"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/internal/sys"
)

// Errors that callers branch on. Every error of Open and Parse names the file
// and, where there is one, the offset in bytes and the key or tensor.
var (
	ErrNotGGUF     = errors.New("not a GGUF file")
	ErrUnsupported = errors.New("a kind of GGUF file that is not read")
	ErrCorrupt     = errors.New("file is corrupt")
	ErrMissing     = errors.New("shards are missing")
)

// File is an opened GGUF file, or all files of a split one. Its views alias
// the mapping and are valid until Close; so are the Values of Meta. Strings
// and slices that accessors return are copies. Shapes are in PyTorch's order: GGUF
// stores dimensions the other way.
type File struct {
	// Meta is the metadata, of the first file where there are several.
	Meta Meta

	shelf.Shelf
	path    string
	version uint32
}

// Open maps the file at path and checks its header, metadata and the place of
// every tensor; weights are not touched. Where the metadata says that the file
// is one of a split set (split.count), all its neighbours are opened by their
// names, whichever was given; those that are missing are listed in an error
// that wraps ErrMissing.
func Open(path string) (*File, error) {
	first, err := openPart(path)
	if err != nil {
		return nil, err
	}
	parts, err := openSplit(path, first)
	if err != nil {
		return nil, err
	}
	return assemble(path, parts)
}

// Parse reads a whole GGUF file that lies in data; name stands for the file in
// errors. Views alias data at whatever alignment it has. A file of a split set
// is refused, because its neighbours cannot be found.
func Parse(name string, data []byte) (*File, error) {
	p, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	if n, err := p.splitCount(); err != nil || n > 1 {
		if err == nil {
			err = fmt.Errorf("gguf: %s: one of %d files of a split set; open it from a folder that holds them all: %w", name, n, ErrMissing)
		}
		return nil, err
	}
	return assemble(name, []*part{p})
}

func openPart(path string) (*part, error) {
	m, err := sys.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	p, err := parse(path, m.Bytes())
	if err != nil {
		m.Close()
		return nil, err
	}
	p.Mapping = m
	return p, nil
}

// assemble joins the tensors of all parts, which it owns.
func assemble(path string, parts []*part) (*File, error) {
	all, err := shelf.New(shelved(parts), nil)
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w: %w", path, err, ErrCorrupt)
	}
	return &File{parts[0].meta, all, path, parts[0].version}, nil
}

func shelved(parts []*part) []*shelf.Part {
	list := make([]*shelf.Part, len(parts))
	for i, p := range parts {
		list[i] = &p.Part
	}
	return list
}

// Kind is "gguf".
func (f *File) Kind() string { return "gguf" }

// Path is the path that was opened.
func (f *File) Path() string { return f.path }

// Version is the format's version, 2 or 3.
func (f *File) Version() int { return int(f.version) }

func fitsInt(n uint64) bool { return n <= math.MaxInt }
