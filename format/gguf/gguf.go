// Package gguf reads and writes GGUF, the file format of ggml: metadata and
// named tensors, memory-mapped, in one file or split over several. It knows
// nothing of models and must not import anything above package tensor but
// internal/sys. Read File first.
package gguf

import (
	"errors"
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/tensor"
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
// and slices that accessors return are copies.
type File struct {
	// Meta is the metadata, of the first file where there are several.
	Meta Meta

	path    string
	parts   []*part
	tensors []tensor.View
	index   map[string]int
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
	f, err := assemble(path, parts)
	if err != nil {
		closeParts(parts)
		return nil, err
	}
	return f, nil
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
	p.mapping = m
	return p, nil
}

// assemble joins the tensors of all parts under one index.
func assemble(path string, parts []*part) (*File, error) {
	f := &File{Meta: parts[0].meta, path: path, parts: parts, index: map[string]int{}}
	for _, p := range parts {
		for _, v := range p.tensors {
			if _, dup := f.index[v.Name]; dup {
				return nil, fmt.Errorf("gguf: %s: tensor %s stands there and in another file of the set: %w", p.name, quote(v.Name), ErrCorrupt)
			}
			f.index[v.Name] = len(f.tensors)
			f.tensors = append(f.tensors, v)
		}
	}
	return f, nil
}

// Kind is "gguf".
func (f *File) Kind() string { return "gguf" }

// Path is the path that was opened.
func (f *File) Path() string { return f.path }

// Files are the paths of all files of the set, in order.
func (f *File) Files() []string {
	names := make([]string, len(f.parts))
	for i, p := range f.parts {
		names[i] = p.name
	}
	return names
}

// Version is the format's version, 2 or 3.
func (f *File) Version() int { return int(f.parts[0].version) }

// Tensors lists all tensors in the order of the file. The slice belongs to the
// File. Shapes are in PyTorch's order: GGUF stores dimensions the other way.
func (f *File) Tensors() []tensor.View { return f.tensors }

// Tensor finds a tensor by its name.
func (f *File) Tensor(name string) (tensor.View, bool) {
	i, ok := f.index[name]
	if !ok {
		return tensor.View{}, false
	}
	return f.tensors[i], true
}

// Release tells the system that the pages of a tensor are not needed soon.
// Reading the view afterwards is right, only slower. A tensor that is not this
// file's is ignored.
func (f *File) Release(name string) error {
	i, ok := f.index[name]
	if !ok {
		return nil
	}
	for _, p := range f.parts {
		if i >= len(p.tensors) {
			i -= len(p.tensors)
			continue
		}
		if p.mapping == nil {
			return nil
		}
		return p.mapping.Advise(int(p.offsets[i]), len(p.tensors[i].Data), sys.DontNeed)
	}
	return nil
}

// Close unmaps the file. Views and Values must not be used afterwards. A
// second Close does nothing.
func (f *File) Close() error {
	err := closeParts(f.parts)
	f.tensors, f.index = nil, nil
	return err
}

func closeParts(parts []*part) error {
	var all []error
	for _, p := range parts {
		if p.mapping != nil {
			all = append(all, p.mapping.Close())
			p.mapping = nil
		}
	}
	return errors.Join(all...)
}

// quote renders a name from a file for an error: escaped, and cut where a
// hostile file made it long.
func quote(s string) string {
	if len(s) > 100 {
		return fmt.Sprintf("%q… (%d bytes)", s[:100], len(s))
	}
	return fmt.Sprintf("%q", s)
}

func fitsInt(n uint64) bool { return n <= math.MaxInt }
