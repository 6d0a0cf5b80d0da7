package sys

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// errHeld is of a lock that another run holds.
var errHeld = errors.New("the lock is held")

// ErrLocked says that another run holds a lock.
var ErrLocked = errors.New("another run is writing here")

// maxLinks bounds the symbolic links that Replace follows, as systems do.
const maxLinks = 40

// partialSuffix ends the names of files that are not whole yet.
const partialSuffix = ".partial"

// Replace writes a file under a temporary name beside path, brings it to the
// disk and only then gives it its name: path holds the old contents or the
// whole new ones, never a part. A symbolic link stays, and what it leads to is
// replaced. After an error the temporary file is gone; those of path that runs
// before left when they were killed are removed. Errors name the path
// and wrap those of write, or ErrNotRegular of a pipe, a device or a folder.
func Replace(path string, write func(io.Writer) error) error {
	p, err := Prepare(path, write)
	if err != nil {
		return err
	}
	return p.Commit()
}

// Prepared is a whole file on the disk that has not got its name yet.
type Prepared struct {
	f    *os.File
	path string
}

// Prepare does what Replace does but for giving the file its name, for several
// files that are to appear together. One of Commit and Discard must follow.
func Prepare(path string, write func(io.Writer) error) (p *Prepared, err error) {
	if path, err = target(path); err != nil {
		return nil, err
	}
	removeStale(path)
	f, err := createBeside(path)
	if err != nil {
		return nil, err
	}
	made := &Prepared{f: f, path: path}
	defer func() {
		if err != nil {
			made.Discard()
		}
	}()
	buf := bufio.NewWriterSize(f, 1<<20)
	if err := write(buf); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := errors.Join(buf.Flush(), f.Sync()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return made, nil
}

// Commit gives the file its name. After an error it is gone.
func (p *Prepared) Commit() error {
	if err := rename(p.f, p.path); err != nil {
		p.Discard()
		return err
	}
	syncDir(filepath.Dir(p.path))
	return nil
}

// Discard removes the file.
func (p *Prepared) Discard() {
	p.f.Close()
	os.Remove(p.f.Name())
}

// target follows symbolic links to the name of a regular file, or of none.
func target(path string) (string, error) {
	start := path
	for range maxLinks {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path, nil
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0 && !info.Mode().IsRegular():
			return "", fmt.Errorf("%s: %w (mode %s), so it cannot be replaced by a file", path, ErrNotRegular, info.Mode())
		case info.Mode()&fs.ModeSymlink == 0:
			return path, nil
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(link) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return "", fmt.Errorf("%s: more than %d symbolic links one after the other", start, maxLinks)
}

// createBeside makes a new file in the folder of path with the rights that the
// umask leaves, which os.CreateTemp would not give. It is locked while it is
// open, which tells it from what a killed run left; between its making and its
// locking another run may take it for that, and then it is made again.
func createBeside(path string) (*os.File, error) {
	for {
		name := fmt.Sprintf("%s.%08x%s", path, rand.Uint32(), partialSuffix)
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !errors.Is(tryLock(f), errHeld) && leadsTo(name, f) {
			return f, nil
		}
		f.Close()
	}
}

// leadsTo reports whether name is still that of the open file.
func leadsTo(name string, f *os.File) bool {
	here, err := os.Lstat(name)
	if err != nil {
		return false
	}
	open, err := f.Stat()
	return err == nil && os.SameFile(here, open)
}

// removeStale removes what createBeside made for path in runs that ended
// before they could remove it.
func removeStale(path string) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		mid, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		mid, ends := strings.CutSuffix(mid, partialSuffix)
		if !ok || !ends || len(mid) != 8 || strings.Trim(mid, "0123456789abcdef") != "" || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		if tryLock(f) == nil {
			removeOpen(f)
		}
		f.Close()
	}
}

// syncDir brings a new name to the disk where the system can do that; where it
// cannot, the file's own bytes are safe already.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}
