//go:build !(linux || darwin || freebsd || dragonfly || windows)

package pull

// freeSpace is not known here.
func freeSpace(string) (free int64, ok bool) { return 0, false }
