package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/format/shelf"
)

// splitName is how llama.cpp names the files of a set: prefix-00001-of-00003.gguf.
var splitName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// SplitName returns the name of file no (from 1) of count.
func SplitName(prefix string, no, count int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, no, count)
}

// splitCount is the number of files that the metadata claim, 1 without the key.
func (p *part) splitCount() (int, error) {
	if !p.meta.Has("split.count") {
		return 1, nil
	}
	n, err := p.meta.Uint("split.count")
	if err == nil && n > 99999 {
		err = fmt.Errorf("gguf: %s: key \"split.count\" is %d, a name has room for 99999", p.Name, n)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	return max(int(n), 1), nil
}

// openSplit opens the other files of the set that the file at path belongs to
// and returns them all in order. It owns given: on an error it is closed.
func openSplit(path string, given *part) (parts []*part, err error) {
	defer func() {
		if err != nil {
			shelf.CloseAll(shelved(append(parts, given)))
			parts = nil
		}
	}()
	count, err := given.splitCount()
	if err != nil || count == 1 {
		return []*part{given}, err
	}
	names, err := splitNames(path, count)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		p := given
		if name != path {
			if p, err = openPart(name); err != nil {
				return parts, err
			}
		}
		parts = append(parts, p)
		if err = p.checkSplit(i, count); err != nil {
			return parts, err
		}
	}
	return parts, checkTotal(parts)
}

// splitNames lists the files of the set of count files that path belongs to,
// after checking that they exist.
func splitNames(path string, count int) ([]string, error) {
	m := splitName.FindStringSubmatch(path)
	if m == nil {
		return nil, fmt.Errorf("gguf: %s: one of %d files of a split set, but not named like %s, so the others cannot be found: %w",
			path, count, SplitName("NAME", 1, count), ErrMissing)
	}
	if named, _ := strconv.Atoi(m[3]); named != count {
		return nil, fmt.Errorf("gguf: %s: named one of %d files, but its key \"split.count\" is %d: %w", path, named, count, ErrCorrupt)
	}
	if no, _ := strconv.Atoi(m[2]); no < 1 || no > count {
		return nil, fmt.Errorf("gguf: %s: number %d of %d files is impossible: %w", path, no, count, ErrCorrupt)
	}
	var names, missing []string
	for i := 1; i <= count; i++ {
		name := SplitName(m[1], i, count)
		names = append(names, name)
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("gguf: %s: %s: %w", path, listNames(missing), ErrMissing)
	}
	return names, nil
}

// listNames renders the first names of a list and the number of the others.
func listNames(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func (p *part) checkSplit(i, count int) error {
	n, err := p.splitCount()
	if err != nil {
		return err
	}
	no, err := p.meta.Uint("split.no")
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", err, ErrCorrupt)
	case n != count || no != uint64(i):
		return fmt.Errorf("gguf: %s: its metadata say file %d of %d, its name says %d of %d: %w", p.Name, no+1, n, i+1, count, ErrCorrupt)
	}
	return nil
}

func checkTotal(parts []*part) error {
	const key = "split.tensors.count"
	if !parts[0].meta.Has(key) {
		return nil
	}
	want, err := parts[0].meta.Uint(key)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	got := 0
	for _, p := range parts {
		got += len(p.Tensors)
	}
	if uint64(got) != want {
		return fmt.Errorf("gguf: %s: key %q is %d, but the %d files hold %d tensors: %w", parts[0].Name, key, want, len(parts), got, ErrCorrupt)
	}
	return nil
}
