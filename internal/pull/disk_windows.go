//go:build windows

package pull

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// diskFull reports whether a write failed for want of space or quota.
func diskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) || errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// tryLock takes an exclusive lock that ends with the process.
func tryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// freeSpace is what this user may still write on the drive of a folder. ok is
// false where that is not known.
func freeSpace(dir string) (free int64, ok bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var n uint64
	if windows.GetDiskFreeSpaceEx(name, &n, nil, nil) != nil {
		return 0, false
	}
	return int64(min(n, 1<<62)), true
}

// syncDir does nothing: Windows has no such call for folders.
func syncDir(string) error { return nil }
