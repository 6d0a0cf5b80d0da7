package pull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is a model in the cache: a file, or the folder of a repository.
type Entry struct {
	Ref     string // what it was fetched by
	Path    string // in the cache; see Again for what to say if it does not open
	Size    int64  // bytes
	SHA256  string // "" for a folder
	Source  string
	License string // "" if unknown
	Fetched time.Time
}

// List returns the models in the cache, by reference. A cache that does not
// exist is empty.
func List(o Options) ([]Entry, error) {
	p, err := newPuller(o)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	root := filepath.Join(p.Cache, modelsDir)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		dest, ok := strings.CutSuffix(path, stampSuffix)
		if !ok || d.IsDir() {
			return nil
		}
		s, ok := readStamp(dest)
		if st, err := os.Stat(dest); ok && err == nil {
			entries = p.listed(entries, Entry{s.Ref, dest, st.Size(), s.SHA256, s.Source, s.License, s.Fetched})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pull: reading the cache: %w", err)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Ref+"\x00"+a.Path, b.Ref+"\x00"+b.Path) })
	return entries, nil
}

// listed adds a file to the list; the files of a repository's folder, which
// come one after the other, make one entry.
func (p *puller) listed(entries []Entry, e Entry) []Entry {
	rel, err := filepath.Rel(filepath.Join(p.Cache, modelsDir), e.Path)
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if err != nil || parts[0] != repoFolder || len(parts) < 5 {
		return append(entries, e)
	}
	e.Path = filepath.Join(p.Cache, modelsDir, filepath.Join(parts[:4]...))
	e.SHA256, e.Source = "", "hf:"+parts[1]+"/"+parts[2]+"@"+parts[3]
	if n := len(entries); n > 0 && entries[n-1].Path == e.Path {
		entries[n-1].Size += e.Size
		return entries
	}
	return append(entries, e)
}

// Again says how to fetch a model anew, for the error of a file that does not
// open. It is "" for a path outside the cache, which Resolve did not fetch.
func Again(path string, o Options) string {
	p, err := newPuller(o)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(filepath.Join(p.Cache, modelsDir), path)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return path + " is a file of the cache; run the same command with --refetch to fetch it again"
}

// Remove deletes a model from the cache, with whatever a broken-off download
// left of it and what its archive was unpacked to; of a split file, every part. It never touches a file outside the
// cache. The error wraps ErrNotFound if there was nothing.
func Remove(ctx context.Context, ref string, o Options) error {
	p, err := newPuller(o)
	if err != nil {
		return err
	}
	t, ok, err := parse(ref)
	if err != nil {
		return err
	}
	if m, known := Named(ref); !ok && known {
		if t, err = m.target(); err != nil {
			return err
		}
	} else if !ok {
		return fmt.Errorf("pull: %w: %q is not a model of the cache", ErrNotFound, ref)
	}
	if t.repo != nil {
		return p.removeRepo(ref, *t.repo)
	}
	refs, err := t.parts(ref)
	if err != nil {
		return err
	}
	if len(refs) == 1 {
		return p.remove(ctx, ref, t)
	}
	for _, part := range refs {
		if t, err = parseHF(part); err == nil {
			err = p.remove(ctx, part, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes one file and the folders that it leaves empty.
func (p *puller) remove(ctx context.Context, ref string, t target) error {
	unlock, err := p.lock(ctx, t)
	if err != nil {
		return err
	}
	defer unlock()
	dest, found := p.path(t), false
	dir := dest + unpackedSuffix
	for _, path := range []string{dest + stampSuffix, dest, dest + partialSuffix, dest + partialSuffix + ".json", p.wheelDir(t), dir, dir + unpackSuffix, dir + wholeSuffix} {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return storage(err, path, 0)
		}
		found = true
	}
	if !found {
		return fmt.Errorf("pull: %w: %s is not in the cache", ErrNotFound, ref)
	}
	prune(filepath.Join(p.Cache, modelsDir), dest)
	return nil
}

// removeRepo deletes the folder of a repository at every commit.
func (p *puller) removeRepo(ref string, h hfRef) error {
	dir := p.repoDir(h)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pull: %w: %s is not in the cache", ErrNotFound, ref)
	}
	if err := os.RemoveAll(dir); err != nil {
		return storage(err, dir, 0)
	}
	return nil
}
