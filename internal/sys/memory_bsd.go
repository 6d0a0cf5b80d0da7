//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package sys

import "golang.org/x/sys/unix"

func physicalMemory() (int64, string) {
	for _, name := range []string{"hw.memsize", "hw.physmem64", "hw.physmem"} {
		if n, err := unix.SysctlUint64(name); err == nil && n > 0 && n < 1<<62 {
			return int64(n), "physical memory"
		}
	}
	return 0, "unknown"
}
