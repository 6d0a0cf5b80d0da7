//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package sys

import "golang.org/x/sys/unix"

// MADV_DONTNEED keeps dirty anonymous pages on these systems, MADV_FREE drops them.
const releaseAdvice = unix.MADV_FREE

func adviseHuge([]byte) {}
