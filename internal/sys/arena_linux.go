//go:build linux

package sys

import "golang.org/x/sys/unix"

const releaseAdvice = unix.MADV_DONTNEED

// adviseHuge asks for huge pages; a kernel without them refuses, which only costs
// speed.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
