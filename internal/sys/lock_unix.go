//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sys

import (
	"os"
	"syscall"
)

// tryLock takes the lock of a file until it is closed. It is errHeld if another
// holds it; any other error is of a file system that has no locks.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return errHeld
	}
	return err
}

// openLock makes or opens a file and takes its lock.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err == errHeld {
		f.Close()
		return nil, err
	}
	return f, nil
}

// rename gives an open file its last name while it is locked, so that no other
// run takes it for one that was left.
func rename(f *os.File, to string) error {
	if err := os.Rename(f.Name(), to); err != nil {
		return err
	}
	return f.Close()
}

// removeOpen removes a file while it is locked.
func removeOpen(f *os.File) { os.Remove(f.Name()) }
