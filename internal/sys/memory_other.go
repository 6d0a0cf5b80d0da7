//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sys

func physicalMemory() (int64, string) { return 0, "unknown" }
