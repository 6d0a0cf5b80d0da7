//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package sys

import (
	"errors"
	"io/fs"
	"os"
)

// tryLock leaves it to the system, which refuses to remove a file that another
// process holds open.
func tryLock(*os.File) error { return nil }

// openLock makes a file; one that is there and cannot be removed is held.
func openLock(path string) (*os.File, error) {
	os.Remove(path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, errHeld
	}
	return f, err
}

// rename gives a file its last name; the system wants it closed.
func rename(f *os.File, to string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), to)
}

// removeOpen removes a file that nobody else has open.
func removeOpen(f *os.File) {
	f.Close()
	os.Remove(f.Name())
}
