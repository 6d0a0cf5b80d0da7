// Package format opens model files of any format that the project reads and
// gives their tensors one face. It must not import anything above package
// tensor but its own subpackages. Read File first.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/format/llama2c"
	"github.com/inferflow/inferflow/format/pickle"
	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/tensor"
)

// ErrUnknown says that a path holds no model that is read.
var ErrUnknown = errors.New("no model file that is read")

// File is an opened model file, or a set of files that belong together. What
// only one format has (metadata) is on the concrete types *gguf.File,
// *safetensors.File, *pickle.File and *llama2c.File.
type File interface {
	// Kind is "gguf", "safetensors", "pickle" or "llama2c".
	Kind() string
	// Path is the file that was read, Files all that hold tensors.
	Path() string
	Files() []string
	// Tensors lists all tensors; the slice is the File's own. Their bytes are
	// read-only and valid until Close.
	Tensors() []tensor.View
	// Tensor finds one by its name in the file.
	Tensor(name string) (tensor.View, bool)
	// Release lets the system drop the pages of a tensor that was copied.
	Release(name string) error
	Close() error
}

// Open opens the model at path, told by its contents and not by its name:
//   - a .gguf file, or any file of a split set;
//   - a .safetensors file, or a model.safetensors.index.json;
//   - a PyTorch checkpoint (.bin, .pt, .pth), or a pytorch_model.bin.index.json;
//   - an export of llama2.c (.bin);
//   - a folder in Hugging Face's layout (model.safetensors or its index);
//   - a folder that holds one .gguf, or one split set, and no safetensors;
//   - a folder with pytorch_model.bin, its index or one other checkpoint.
//
// Errors name the path; what is no model wraps ErrUnknown.
func Open(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	if info.IsDir() {
		return openFolder(path)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("format: %s: not a regular file: %w", path, ErrUnknown)
	}
	return openFile(path)
}

func openFile(path string) (File, error) {
	head, err := readHead(path)
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	if info, err := os.Stat(path); err == nil && llama2c.Sniff(head, info.Size()) {
		return wrap(llama2c.Open(path))
	}
	switch sniff(head) {
	case "gguf":
		return wrap(gguf.Open(path))
	case "safetensors":
		return wrap(safetensors.Open(path))
	case "json":
		if strings.HasSuffix(path, ".safetensors.index.json") {
			return wrap(safetensors.Open(path))
		}
		if strings.HasSuffix(path, ".bin.index.json") {
			return wrap(pickle.Open(path))
		}
		return nil, fmt.Errorf("format: %s: JSON that describes a model; open the folder %s instead: %w", path, filepath.Dir(path), ErrUnknown)
	case "pickle":
		return wrap(pickle.Open(path))
	case "pointer":
		return nil, fmt.Errorf("format: %s: a Git LFS pointer, not the model itself; fetch it with git lfs pull: %w", path, ErrUnknown)
	case "html":
		return nil, fmt.Errorf("format: %s: a web page, not a model; the download went wrong: %w", path, ErrUnknown)
	}
	return nil, fmt.Errorf("format: %s: starts with %q, neither GGUF nor safetensors nor a PyTorch checkpoint, nor an export of llama2.c (its head and its size do not agree): %w", path, head[:min(len(head), 8)], ErrUnknown)
}

// wrap keeps a nil pointer from becoming an interface that is not nil.
func wrap[F File](f F, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func readHead(path string) ([]byte, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}

// sniff tells a format by its first bytes. Old GGML files count as GGUF, whose
// reader says what to do about them.
func sniff(head []byte) string {
	for _, m := range []string{"GGUF", "lmgg", "tjgg", "fmgg", "algg"} {
		if bytes.HasPrefix(head, []byte(m)) {
			return "gguf"
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), len(head) > 1 && head[0] == 0x80 && head[1] <= 5:
		return "pickle"
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return "pointer"
	case len(head) > 8 && head[8] == '{' && head[7] == 0 && head[6] == 0:
		return "safetensors"
	case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")):
		return "json"
	case bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(head)), []byte("<!doctype")), bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(head)), []byte("<html")):
		return "html"
	}
	return ""
}

var splitName = regexp.MustCompile(`^(.*)-\d{5}-of-(\d{5}\.gguf)$`)

// openFolder prefers safetensors, because a folder in Hugging Face's layout is
// described by its config.json and a GGUF beside it is a copy.
func openFolder(dir string) (File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	var tensors, pickles bool
	sets := map[string]string{} // of GGUF files: what they share → the first of them
	var models []string
	for _, e := range entries {
		name := e.Name()
		switch strings.ToLower(filepath.Ext(name)) {
		case ".safetensors":
			tensors = true
		case ".json":
			tensors = tensors || name == "model.safetensors.index.json"
			pickles = pickles || name == "pytorch_model.bin.index.json"
		case ".bin", ".pt", ".pth":
			pickles = true
		case ".gguf":
			set := name
			if m := splitName.FindStringSubmatch(name); m != nil {
				set = m[1] + "-of-" + m[2]
			}
			if _, ok := sets[set]; !ok {
				sets[set] = name
				models = append(models, name)
			}
		}
	}
	switch {
	case tensors:
		return wrap(safetensors.Open(dir))
	case len(models) == 1:
		return Open(filepath.Join(dir, models[0]))
	case len(models) > 1:
		return nil, fmt.Errorf("format: %s: holds %d GGUF models, name one: %s: %w", dir, len(models), shorten(models), ErrUnknown)
	case pickles:
		path, err := pickle.InFolder(dir)
		if err != nil {
			return nil, fmt.Errorf("format: %w", err)
		}
		return Open(path)
	}
	return nil, fmt.Errorf("format: %s: the folder holds neither model.safetensors nor a .gguf file nor pytorch_model.bin: %w", dir, ErrUnknown)
}

func shorten(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
