package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Bounds of the files with max_seq_length. sentence-transformers writes one of
// a hundred bytes, whose name tells the kind of model.
const (
	maxLengthFiles = 16
	maxLengthName  = 64
	maxLengthBytes = 64 << 10
	maxEntries     = 1 << 16 // of a folder that are looked through
)

const lengthPrefix, lengthSuffix = "sentence_", "_config.json"

// isLength says whether a file's name is that of a file with max_seq_length. It
// is then a plain name on every system, whoever chose it.
func isLength(name string) bool {
	kind, begins := strings.CutPrefix(name, lengthPrefix)
	kind, ends := strings.CutSuffix(kind, lengthSuffix)
	if !begins || !ends || kind == "" || len(name) > maxLengthName {
		return false
	}
	return !strings.ContainsFunc(kind, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// lengthFiles are the files that may name the longest text, sorted. A file that
// is no small object with max_seq_length is none of them, whatever its name; so
// many that nobody can have meant them are an error.
func (f *files) lengthFiles() ([]string, error) {
	names, err := f.lengthNames()
	if err != nil {
		return nil, err
	}
	if len(names) > maxLengthFiles {
		return nil, fmt.Errorf("model: %s: more than %d files %s*%s: there is one, of the kind of the model", f.Path(), maxLengthFiles, lengthPrefix, lengthSuffix)
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		raw, err := f.outerWithin(name, maxLengthBytes)
		var own map[string]json.RawMessage
		return err != nil || json.Unmarshal(raw, &own) != nil || own["max_seq_length"] == nil
	}), nil
}

// lengthNames are the names that fit, of which it gives one more than may be.
func (f *files) lengthNames() (names []string, err error) {
	if f.meta != nil {
		for key := range f.meta.All() {
			if name, ok := strings.CutPrefix(key, OwnFilePrefix); ok && isLength(name) && len(names) <= maxLengthFiles {
				names = append(names, name)
			}
		}
		return names, nil
	}
	dir, err := os.Open(f.root())
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	defer dir.Close()
	for seen := 0; seen < maxEntries; {
		list, err := dir.Readdirnames(256)
		if len(list) == 0 || err != nil {
			break // the end, or a folder that cannot be listed and says nothing
		}
		for _, name := range list {
			if isLength(name) && len(names) <= maxLengthFiles {
				names = append(names, name)
			}
		}
		seen += len(list)
	}
	return names, nil
}

// outerWithin is outer for a file of at most so many bytes, others being an error.
func (f *files) outerWithin(name string, most int) ([]byte, error) {
	if f.meta != nil {
		raw := kept(f.meta, name)
		if len(raw) > most {
			return nil, errors.New("too large")
		}
		return raw, nil
	}
	return readWithin(f.beside(name), most)
}
