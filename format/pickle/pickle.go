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
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/tensor"
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
// their shape has, which are copies; all are valid until Close.
type File struct {
	path    string
	parts   []*part
	tensors []tensor.View
	owner   []int // index into parts of each tensor
	offsets []int // in the file, −1 for a copy
	index   map[string]int
}

// part is one file.
type part struct {
	name    string
	mapping *sys.Mapping // nil where the bytes are the caller's
	tensors []tensor.View
	offsets []int
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
	return assemble(path, []*part{p}, nil)
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
	var parts []*part
	for _, name := range names {
		p, err := openPart(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			closeParts(parts)
			return nil, err
		}
		parts = append(parts, p)
	}
	return assemble(path, parts, where)
}

func openPart(path string) (*part, error) {
	m, err := sys.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("pickle: %w", err)
	}
	p, err := parse(path, m.Bytes())
	if err != nil {
		m.Close()
		return nil, err
	}
	p.mapping = m
	return p, nil
}

// Parse reads a whole checkpoint that lies in data; name stands for the file
// in errors.
func Parse(name string, data []byte) (*File, error) {
	p, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	return assemble(name, []*part{p}, nil)
}

// assemble joins the tensors of all parts. where, if not nil, says which file
// a tensor is to be taken from when several hold it. It owns the parts.
func assemble(path string, parts []*part, where map[string]string) (*File, error) {
	f := &File{path: path, parts: parts, index: map[string]int{}}
	for i, p := range parts {
		for k, v := range p.tensors {
			if home, ok := where[v.Name]; ok && home != filepath.Base(p.name) {
				continue
			}
			if _, dup := f.index[v.Name]; dup {
				f.Close()
				return nil, fmt.Errorf("pickle: %s: tensor %s stands there twice, or in another shard too: %w", p.name, quote(v.Name), ErrCorrupt)
			}
			f.index[v.Name] = len(f.tensors)
			f.tensors = append(f.tensors, v)
			f.owner = append(f.owner, i)
			f.offsets = append(f.offsets, p.offsets[k])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(where)) {
		if _, ok := f.index[name]; !ok {
			f.Close()
			return nil, fmt.Errorf("pickle: %s: tensor %s should be in %s, which lacks it: %w", path, quote(name), where[name], ErrCorrupt)
		}
	}
	return f, nil
}

// Kind is "pickle".
func (f *File) Kind() string { return "pickle" }

// Path is the file that was read: the only one, or the index.
func (f *File) Path() string { return f.path }

// Files are the paths of all files that hold tensors.
func (f *File) Files() []string {
	names := make([]string, len(f.parts))
	for i, p := range f.parts {
		names[i] = p.name
	}
	return names
}

// Tensors lists all tensors in the order of the checkpoint, file after file.
// The slice belongs to the File. Tensors that share a storage share bytes.
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
	m := f.parts[f.owner[i]].mapping
	if m == nil || f.offsets[i] < 0 || len(f.tensors[i].Data) == 0 {
		return nil
	}
	return m.Advise(f.offsets[i], len(f.tensors[i].Data), sys.DontNeed)
}

// Close unmaps the files. Views must not be used afterwards. A second Close
// does nothing.
func (f *File) Close() error {
	f.tensors, f.index = nil, nil
	return closeParts(f.parts)
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
