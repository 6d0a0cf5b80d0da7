package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// openEditor makes the terminal give single keys until done is called.
func openEditor(in, out *os.File, h *messageHistory) (e *editor, done func(), err error) {
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("chat: terminal: %w", err)
	}
	enter := func() {
		keepNewlines(in, out)
		io.WriteString(out, "\x1b[?2004h") // bracketed paste
	}
	done = func() {
		io.WriteString(out, "\x1b[?2004l")
		_ = term.Restore(int(in.Fd()), old)
	}
	e = &editor{in: pump(in), out: out, history: h}
	e.size = func() (int, int) {
		w, h, err := term.GetSize(int(out.Fd()))
		if err != nil || w < 1 || h < 1 {
			return 80, 24
		}
		return max(w, 4), h
	}
	e.suspend = func() {
		done()
		suspendProgram()
		if _, err := term.MakeRaw(int(in.Fd())); err == nil {
			enter()
		}
	}
	enter()
	return e, done, nil
}

// pump reads r to its end into a channel.
func pump(r io.Reader) <-chan arrival {
	ch := make(chan arrival, 64)
	go func() {
		defer close(ch)
		for {
			b := make([]byte, 4096)
			n, err := r.Read(b)
			if n > 0 {
				ch <- arrival{b[:n], time.Now()}
			}
			if err != nil {
				return
			}
		}
	}()
	return ch
}
