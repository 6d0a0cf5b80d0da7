//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keepNewlines lets a raw terminal begin a row at its left edge after \n, so
// that whatever writes meanwhile need not know.
func keepNewlines(in, _ *os.File) {
	t, err := unix.IoctlGetTermios(int(in.Fd()), termiosGet)
	if err != nil {
		return
	}
	t.Oflag |= unix.OPOST
	_ = unix.IoctlSetTermios(int(in.Fd()), termiosSet, t)
}

// suspendProgram stops the program as Ctrl-Z does and returns when it goes on.
// The system passes the signal over where no shell could wake the program, so
// the wait has an end.
func suspendProgram() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGCONT)
	defer signal.Stop(ch)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-ch:
	case <-time.After(200 * time.Millisecond):
	}
}
