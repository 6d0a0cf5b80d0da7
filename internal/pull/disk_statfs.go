//go:build linux || darwin || freebsd || dragonfly

package pull

import "syscall"

// freeSpace is what this user may still write in the file system of a folder.
// ok is false where that is not known.
func freeSpace(dir string) (free int64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Blocks == 0 {
		return 0, false
	}
	return int64(max(s.Bavail, 0)) * int64(s.Bsize), true
}
