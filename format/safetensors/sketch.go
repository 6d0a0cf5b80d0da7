package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/tensor"
)

// Sketch lists the tensors of the folder at dir without their data: from the
// headers of its files, of which the rest may be missing, and by name alone
// (Shape nil) where an index names a file that is not there. A folder that
// holds neither wraps ErrMissing.
func Sketch(dir string) ([]tensor.View, error) {
	path, err := inFolder(dir)
	if err != nil {
		return nil, err
	}
	if filepath.Base(path) != indexName {
		return sketchFile(path)
	}
	where, err := ReadIndex(path, suffix)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	shards := map[string]map[string]tensor.View{}
	var list []tensor.View
	for name, file := range where {
		if _, ok := shards[file]; !ok {
			views, err := sketchFile(filepath.Join(dir, file))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			shards[file] = map[string]tensor.View{}
			for _, v := range views {
				shards[file][v.Name] = v
			}
		}
		v, ok := shards[file][name]
		if !ok {
			v = tensor.View{Name: name}
		}
		list = append(list, v)
	}
	return list, nil
}

// sketchFile reads a file's header; what follows it is not looked at.
func sketchFile(path string) ([]tensor.View, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	defer f.Close()
	var size [8]byte
	if _, err := io.ReadFull(f, size[:]); err != nil {
		return nil, fmt.Errorf("safetensors: %s: too short for a header: %w", path, ErrFormat)
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > maxHeader {
		return nil, fmt.Errorf("safetensors: %s: offset 0: claims a header of %d bytes, at most %d are allowed: %w", path, n, maxHeader, ErrFormat)
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(n)))
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if uint64(len(text)) < n {
		return nil, fmt.Errorf("safetensors: %s: the header of %d bytes is cut short: %w", path, n, ErrCorrupt)
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: header: %w", path, err)
	}
	views := make([]tensor.View, len(h.entries))
	for i, e := range h.entries {
		views[i] = tensor.View{Name: e.name, Type: e.typ, Shape: e.shape}
	}
	return views, nil
}
