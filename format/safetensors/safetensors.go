// Package safetensors reads the tensor files of Hugging Face models, one or a
// set under an index, memory-mapped. It must not import anything above package
// tensor but internal/sys. Read File first.
//
// Source: github.com/huggingface/safetensors, README "Format".
package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/tensor"
)

// Errors that callers branch on. Every error names the file and, where there
// is one, the tensor or the offset.
var (
	ErrFormat      = errors.New("not a safetensors file")
	ErrCorrupt     = errors.New("file is corrupt")
	ErrUnsupported = errors.New("a dtype that is not read")
	ErrMissing     = errors.New("files are missing")
)

// maxHeader is the format's limit on the header, in bytes; an index obeys it too.
const maxHeader = 100 << 20

// Names of a Hugging Face folder.
const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
	suffix     = ".safetensors"
)

// File is an opened file, or all shards of a folder. Its views alias the
// mapping and are valid until Close.
type File struct {
	// Metadata is what stands under __metadata__, of the first file that has
	// any; often {"format": "pt"}.
	Metadata map[string]string

	shelf.Shelf
	path string
}

// part is one file: its tensors in the order of their data.
type part struct {
	shelf.Part
	meta map[string]string
}

// Open maps a .safetensors file, all shards of a model.safetensors.index.json,
// or those of the Hugging Face folder at path: its model.safetensors, else its
// index, else its only *.safetensors file. Headers are checked in full,
// weights are not touched.
func Open(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if info.IsDir() {
		if path, err = inFolder(path); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(path, ".json") {
		return openIndex(path)
	}
	p, err := openPart(path)
	if err != nil {
		return nil, err
	}
	return assemble(path, []*part{p}, nil)
}

// inFolder picks the file of a folder that Open reads.
func inFolder(dir string) (string, error) {
	for _, name := range []string{singleName, indexName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return filepath.Join(dir, name), nil
		}
	}
	found, err := filesWithSuffix(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("safetensors: %w", err)
	case len(found) == 1:
		return filepath.Join(dir, found[0]), nil
	case len(found) == 0:
		return "", fmt.Errorf("safetensors: %s: holds neither %s nor %s: %w", dir, singleName, indexName, ErrMissing)
	}
	return "", fmt.Errorf("safetensors: %s: holds %d %s files (%s, …) but no %s that says how they belong together: %w",
		dir, len(found), suffix, found[0], indexName, ErrMissing)
}

func filesWithSuffix(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Parse reads a whole file that lies in data; name stands for the file in errors.
func Parse(name string, data []byte) (*File, error) {
	p, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	return assemble(name, []*part{p}, nil)
}

func openPart(path string) (*part, error) {
	m, err := sys.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	p, err := parse(path, m.Bytes())
	if err != nil {
		m.Close()
		return nil, err
	}
	p.Mapping = m
	return p, nil
}

// parse checks a whole file.
func parse(name string, data []byte) (*part, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("safetensors: %s: %d bytes are too few for a header: %w", name, len(data), ErrFormat)
	}
	n := binary.LittleEndian.Uint64(data)
	switch {
	case n > maxHeader:
		return nil, fmt.Errorf("safetensors: %s: offset 0: claims a header of %d bytes, at most %d are allowed: %w", name, n, maxHeader, ErrFormat)
	case n > uint64(len(data)-8):
		return nil, fmt.Errorf("safetensors: %s: offset 0: claims a header of %d bytes, the file has %d more; was the download cut short?: %w",
			name, n, len(data)-8, ErrCorrupt)
	case n < 2 || data[8] != '{':
		return nil, fmt.Errorf("safetensors: %s: offset 8: the header does not start with \"{\": %w", name, ErrFormat)
	}
	start := 8 + int(n)
	h, err := parseHeader(data[8:start])
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: header: %w", name, err)
	}
	p := &part{Part: shelf.Part{Name: name}, meta: h.meta}
	return p, p.place(h.entries, data, start)
}

// place turns entries into views, after checking that the data hold them one
// after the other without a gap, as the format wants it.
func (p *part) place(entries []entry, data []byte, start int) error {
	order := func(a, b entry) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) }
	if !slices.IsSortedFunc(entries, order) {
		slices.SortStableFunc(entries, order)
	}
	p.Tensors, p.Offsets = make([]tensor.View, 0, len(entries)), make([]int, 0, len(entries))
	size, at := uint64(len(data)-start), uint64(0)
	for _, e := range entries {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("safetensors: %s: tensor %s: %s: %w", p.Name, shelf.Quote(e.name), fmt.Sprintf(format, args...), ErrCorrupt)
		}
		want, ok := e.bytes()
		switch {
		case e.begin > e.end || e.end > size:
			return bad("its data_offsets [%d, %d] lie outside the %d bytes of data; was the download cut short?", e.begin, e.end, size)
		case !ok || e.end-e.begin != want:
			return bad("%s %s takes %d bytes, its data_offsets [%d, %d] hold %d", e.typ, e.shape, want, e.begin, e.end, e.end-e.begin)
		case e.begin < at:
			return bad("its data start at %d, inside the tensor before it, which ends at %d", e.begin, at)
		case e.begin > at:
			return bad("its data start at %d, which leaves a gap after %d", e.begin, at)
		}
		at = e.end
		lo, hi := start+int(e.begin), start+int(e.end)
		p.Add(tensor.View{Name: e.name, Type: e.typ, Shape: e.shape, Data: data[lo:hi:hi]}, lo)
	}
	if at != size {
		return fmt.Errorf("safetensors: %s: offset %d: %d bytes follow the last tensor: %w", p.Name, uint64(start)+at, size-at, ErrCorrupt)
	}
	return nil
}

// assemble joins the tensors of all parts. where, if not nil, says which file
// a tensor is to be taken from when several hold it. It owns the parts.
func assemble(path string, parts []*part, where map[string]string) (*File, error) {
	f := &File{path: path}
	list := make([]*shelf.Part, len(parts))
	for i, p := range parts {
		if list[i] = &p.Part; f.Metadata == nil {
			f.Metadata = p.meta
		}
	}
	var err error
	if f.Shelf, err = shelf.New(list, where); err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w: %w", path, err, ErrCorrupt)
	}
	return f, nil
}

// Kind is "safetensors".
func (f *File) Kind() string { return "safetensors" }

// Path is the file that was read: the only one, or the index.
func (f *File) Path() string { return f.path }
