//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package sys

import "os"

// tryLock leaves it to the system, which refuses to remove a file that another
// process holds open.
func tryLock(*os.File) error { return nil }

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
