package safetensors

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/internal/sys"
)

// openIndex opens all shards that the index at path lists. They must lie in
// the index's own folder.
func openIndex(path string) (*File, error) {
	where, err := ReadIndex(path, suffix)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	shards := map[string]bool{}
	for _, name := range where {
		shards[name] = true
	}
	var names, missing []string
	for name := range shards {
		names = append(names, name)
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), name)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	slices.Sort(names)
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("safetensors: %s: lists %d files, these are not there: %s: %w", path, len(names), listNames(missing), ErrMissing)
	}
	var parts []*part
	for _, name := range names {
		p, err := openPart(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			for _, p := range parts {
				p.Close()
			}
			return nil, err
		}
		parts = append(parts, p)
	}
	return assemble(path, parts, where)
}

// listNames renders the first names of a list and the number of the others.
func listNames(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// ReadIndex reads an index as Hugging Face writes it, of files that end in
// suffix: which file of its folder holds each tensor. Another format that has
// such indexes calls it too; errors name the path and wrap ErrCorrupt.
func ReadIndex(path, suffix string) (map[string]string, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHeader+1))
	if err == nil && len(text) > maxHeader {
		err = fmt.Errorf("an index of more than %d bytes: %w", maxHeader, ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	where, err := parseIndex(text, suffix)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return where, nil
}

// parseIndex reads {"metadata": …, "weight_map": {tensor: file}}.
func parseIndex(text []byte, suffix string) (where map[string]string, err error) {
	s := newScanner(text)
	err = s.object(place{what: "the index"}, 0, func(key string) error {
		if key != "weight_map" {
			if err := s.skip(); err != nil {
				return s.bad("%s: broken JSON: %v", shelf.Quote(key), err)
			}
			return nil
		}
		many := len(text) / 64
		where = make(map[string]string, many)
		files := map[string]string{} // one string for each
		return s.object(place{what: "weight_map"}, many, func(name string) error {
			file, err := s.str(place{what: "weight_map", name: name})
			if known, ok := files[file]; ok {
				where[name] = known
				return err
			}
			if err == nil && !plainName(file, suffix) {
				err = s.bad("tensor %s: the file %s is no plain name of a %s file in the same folder", shelf.Quote(name), shelf.Quote(file), suffix)
			}
			if err == nil {
				where[name], files[file] = file, file
			}
			return err
		})
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && len(where) == 0 {
		err = fmt.Errorf("lists no tensors under \"weight_map\": %w", ErrCorrupt)
	}
	return where, err
}

// plainName reports whether name is a file of the folder itself: no path, not
// hidden, nothing that a system gives a meaning of its own.
func plainName(name, suffix string) bool {
	return len(name) <= 255 && strings.HasSuffix(name, suffix) && filepath.IsLocal(name) &&
		!strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "/\\:\x00")
}
