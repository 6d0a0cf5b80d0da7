// Package pickle reads PyTorch's checkpoints (.bin, .pt, .pth), memory-mapped:
// the zip layout, the one before it, and sets of files under an index. A
// checkpoint is a program for Python's pickle machine; the interpreter here
// builds tensors and plain containers, calls nothing and refuses a file that
// names anything else. It must not import anything above package tensor but
// internal/sys. Read File first.
//
// Sources: Python's pickletools; PyTorch's torch/serialization.py and
// torch/_utils.py.
package pickle

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/internal/sys"
)

// Errors that callers branch on. Every error names the file and, where there
// is one, the offset of the instruction or the tensor.
var (
	ErrFormat      = errors.New("not a PyTorch checkpoint")
	ErrCorrupt     = errors.New("file is corrupt")
	ErrUnsupported = errors.New("a kind of checkpoint that is not read")
	ErrForbidden   = errors.New("the file asks for more than tensors and plain containers, and nothing in it is executed")
	ErrMissing     = errors.New("files are missing")
	ErrTooLarge    = errors.New("more than a checkpoint needs")
)

// Names of a Hugging Face folder.
const (
	singleName = "pytorch_model.bin"
	indexName  = "pytorch_model.bin.index.json"
)

// File is an opened checkpoint, or all shards of a folder. Its views alias the
// mapping, except those of tensors that are stored with other strides than
// their shape has, which are copies; all are valid until Close. Tensors that
// share a storage share bytes.
type File struct {
	shelf.Shelf
	path string
}

// Open maps a checkpoint, all shards of a pytorch_model.bin.index.json, or
// those of the Hugging Face folder at path. The pickled description is
// interpreted, weights are not touched.
func Open(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("pickle: %w", err)
	}
	if info.IsDir() {
		if path, err = InFolder(path); err != nil {
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
	return assemble(path, []*shelf.Part{p}, nil)
}

// leftovers of training that lie beside a model and are none.
var leftovers = []string{"training_args", "optimizer", "scheduler", "scaler", "rng_state", "tokenizer", "adapter", "global_step", "trainer_state"}

// InFolder picks the file of a folder that Open reads: pytorch_model.bin, else
// its index, else the only file of a checkpoint's name that is no leftover of
// training. An error wraps ErrMissing.
func InFolder(dir string) (string, error) {
	for _, name := range []string{singleName, indexName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return filepath.Join(dir, name), nil
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("pickle: %w", err)
	}
	var found []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !slices.Contains([]string{".bin", ".pt", ".pth"}, strings.ToLower(filepath.Ext(name))) {
			continue
		}
		if !slices.ContainsFunc(leftovers, func(s string) bool { return strings.HasPrefix(name, s) }) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 1:
		return filepath.Join(dir, found[0]), nil
	case 0:
		return "", fmt.Errorf("pickle: %s: holds neither %s nor %s: %w", dir, singleName, indexName, ErrMissing)
	}
	return "", fmt.Errorf("pickle: %s: holds %d checkpoints (%s, …) but no %s that says how they belong together: %w", dir, len(found), found[0], indexName, ErrMissing)
}

// openIndex opens all shards that the index at path lists.
func openIndex(path string) (*File, error) {
	where, err := safetensors.ReadIndex(path, ".bin")
	if err != nil {
		return nil, fmt.Errorf("pickle: %w", err)
	}
	names := slices.Sorted(maps.Values(where))
	names = slices.Compact(names)
	var missing []string
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), name)); errors.Is(err, os.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("pickle: %s: lists %d files, these are not there: %.500s: %w", path, len(names), strings.Join(missing, ", "), ErrMissing)
	}
	var parts []*shelf.Part
	for _, name := range names {
		p, err := openPart(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			shelf.CloseAll(parts)
			return nil, err
		}
		parts = append(parts, p)
	}
	return assemble(path, parts, where)
}

func openPart(path string) (*shelf.Part, error) {
	m, err := sys.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("pickle: %w", err)
	}
	p, err := parse(path, m.Bytes())
	if err != nil {
		m.Close()
		return nil, err
	}
	p.Mapping = m
	return p, nil
}

// Parse reads a whole checkpoint that lies in data; name stands for the file
// in errors.
func Parse(name string, data []byte) (*File, error) {
	p, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	return assemble(name, []*shelf.Part{p}, nil)
}

// assemble joins the tensors of all parts. where, if not nil, says which file
// a tensor is to be taken from when several hold it. It owns the parts.
func assemble(path string, parts []*shelf.Part, where map[string]string) (*File, error) {
	all, err := shelf.New(parts, where)
	if err != nil {
		return nil, fmt.Errorf("pickle: %s: %w: %w", path, err, ErrCorrupt)
	}
	return &File{all, path}, nil
}

// Kind is "pickle".
func (f *File) Kind() string { return "pickle" }

// Path is the file that was read: the only one, or the index.
func (f *File) Path() string { return f.path }
