//go:build linux

package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

func physicalMemory() (int64, string) {
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if n, ok := memAvailable(text); ok {
			return n, "MemAvailable"
		}
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0, "unknown"
	}
	return int64(uint64(info.Freeram) * uint64(info.Unit)), "free memory"
}
