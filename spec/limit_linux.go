package spec

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// limitProcess bounds what the process may map beyond what it has mapped now,
// its processor time, and forbids writing files. A runtime that cannot be
// limited goes on: the heap is watched as well, and the parent keeps the time.
func limitProcess(memory uint64) {
	set := func(resource int, n uint64) {
		_ = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: n, Max: n})
	}
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		if pages, err := strconv.ParseUint(string(bytes.Fields(raw)[0]), 10, 64); err == nil {
			// The collector's bookkeeping and stacks come on top of the heap.
			set(syscall.RLIMIT_AS, pages*uint64(os.Getpagesize())+memory*3/2)
		}
	}
	set(syscall.RLIMIT_CPU, 10)
	set(syscall.RLIMIT_FSIZE, 0)
	set(syscall.RLIMIT_CORE, 0)
}
