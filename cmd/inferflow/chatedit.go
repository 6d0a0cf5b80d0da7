package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// errInterrupt is Ctrl-C on an empty line.
var errInterrupt = errors.New("interrupted")

const (
	firstPrompt = "> "
	morePrompt  = "… "

	// Keys that follow each other sooner are not a person's: a terminal without
	// bracketed paste types what is pasted.
	quiet = 15 * time.Millisecond
	// The rest of a key's sequence comes within this time of its escape byte.
	escapeWait = 50 * time.Millisecond
)

// editor reads messages from a person: one or many lines, edited until Enter
// sends them. Between two reads its watch keeps what is typed for the next.
type editor struct {
	in       <-chan arrival
	out      io.Writer
	size     func() (columns, rows int)
	suspend  func()
	complete func(string) string // what Tab makes of the text; nil: a tab
	history  *messageHistory

	dec    keyDecoder
	queue  []press
	burst  burst
	line   editLine
	index  int    // the entry of the history on the line; len(entries): none
	draft  string // the text that stood there before
	search string

	drawn  []screenRow // rows on the screen, above which the cursor is
	cursor int         // row of the cursor in drawn
	top    int         // first row of the text in drawn
}

// read returns a message when Enter sends it, errInterrupt after Ctrl-C on an
// empty line, and io.EOF after Ctrl-D or at the end of the input or of ctx.
func (e *editor) read(ctx context.Context) (string, error) {
	for n := len(e.line.text); n > 0 && e.line.text[n-1] == '\n'; n-- {
		e.line.text = e.line.text[:n-1] // an Enter during the answer sends nothing
	}
	e.line.pos = min(e.line.pos, len(e.line.text))
	e.index, e.search, e.top = len(e.history.entries), "", 0
	e.draw()
	for {
		for len(e.queue) > 0 {
			if e.burst.late(e.queue[0].at) && e.settle() {
				return e.finish(), nil
			}
			p := e.queue[0]
			e.queue = e.queue[1:]
			if err := e.press(p); err != nil {
				return "", err
			}
		}
		e.draw()
		still, err := e.wait(ctx)
		if err != nil {
			e.leave("")
			return "", err
		}
		if still && e.settle() {
			return e.finish(), nil
		}
	}
}

// wait waits for keys, or for the time in which a key or a burst would go on:
// then it returns true.
func (e *editor) wait(ctx context.Context) (still bool, err error) {
	var after <-chan time.Time
	switch {
	case e.burst.held:
		after = time.After(quiet)
	case e.dec.unfinished():
		after = time.After(escapeWait)
	}
	select {
	case <-ctx.Done():
		return false, io.EOF
	case a, ok := <-e.in:
		if !ok {
			return false, io.EOF
		}
		e.take(a)
		return false, nil
	case <-after:
	}
	select { // what came in time but was not looked at
	case a, ok := <-e.in:
		if ok {
			e.take(a)
			return false, nil
		}
	default:
	}
	e.dec.drop()
	return true, nil
}

func (e *editor) take(a arrival) {
	for _, k := range e.dec.feed(a.b) {
		e.queue = append(e.queue, press{k, a.at})
	}
}

// settle handles the end of a burst; true sends the message.
func (e *editor) settle() bool {
	if !e.burst.settle() {
		return false
	}
	s := e.line.String()
	switch open := strings.HasPrefix(strings.TrimSpace(s), quotes) && strings.Count(s, quotes) == 1; {
	case open:
		e.line.pos = len(e.line.text)
		e.line.insert("\n")
	case strings.HasSuffix(s, `\`):
		e.line.text = e.line.text[:len(e.line.text)-1]
		e.line.pos = len(e.line.text)
		e.line.insert("\n")
	default:
		return true
	}
	return false
}

// finish leaves the whole message on the screen and an empty line.
func (e *editor) finish() string {
	e.leave("")
	s := e.line.String()
	e.line.set("")
	return unquote(s)
}

// press does what a key asks for.
func (e *editor) press(p press) error {
	if e.burst.key(p.at, p.code == keyEnter) {
		e.line.insert("\n")
	}
	if p.code != keySearch {
		e.search = ""
	}
	if e.line.apply(p.key) {
		return nil
	}
	switch p.code {
	case keyInterrupt:
		empty := len(e.line.text) == 0
		e.leave("^C")
		e.line.set("")
		e.index, e.top = len(e.history.entries), 0
		if empty {
			return errInterrupt
		}
	case keyEOF:
		if len(e.line.text) == 0 {
			e.leave("")
			return io.EOF
		}
		e.line.remove(keyDelete)
	case keySuspend:
		e.leave("")
		e.suspend()
	case keyClear:
		io.WriteString(e.out, "\x1b[H\x1b[2J")
		e.drawn, e.cursor = nil, 0
	case keyTab:
		e.tab()
	default:
		e.recall(p.code)
	}
	return nil
}

func (e *editor) tab() {
	if s := e.line.String(); e.complete != nil && e.complete(s) != s {
		e.line.set(e.complete(s))
	} else if !strings.HasPrefix(s, "/") {
		e.line.insert("\t")
	}
}

// recall moves in the text or, at its edges, in the history.
func (e *editor) recall(c keyCode) {
	switch c {
	case keyUp:
		if !e.line.up() {
			e.show(e.index - 1)
		}
	case keyDown:
		if !e.line.down() {
			e.show(e.index + 1)
		}
	case keyOlder:
		e.show(e.index - 1)
	case keyNewer:
		e.show(e.index + 1)
	case keySearch:
		if e.search == "" {
			e.search = e.line.String()
		}
		if i := e.history.find(e.search, e.index); e.search != "" && i >= 0 {
			e.show(i)
		}
	}
}

// show puts an entry of the history on the line.
func (e *editor) show(i int) {
	n := len(e.history.entries)
	if i < 0 || i > n {
		return
	}
	if e.index == n {
		e.draft = e.line.String()
	}
	e.index = i
	if i == n {
		e.line.set(e.draft)
		return
	}
	e.line.set(e.history.entries[i])
}

// watch keeps what is typed until stop is called; Ctrl-C calls interrupt.
// Nothing is shown and nothing sent.
func (e *editor) watch(interrupt func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, p := range e.queue {
				e.ahead(p.key, interrupt)
			}
			e.queue = nil
			var a arrival
			ok := true
			select {
			case a, ok = <-e.in:
			case <-quit:
				select {
				case a, ok = <-e.in:
				default:
					return
				}
			}
			if !ok {
				interrupt()
				return
			}
			e.take(a)
		}
	}()
	return func() { close(quit); <-done }
}

func (e *editor) ahead(k key, interrupt func()) {
	switch {
	case k.code == keyInterrupt:
		interrupt()
	case k.code == keyEnter && len(e.line.text) > 0:
		e.line.insert("\n")
	default:
		e.line.apply(k)
	}
}

func (e *editor) remember(s string) error { return e.history.add(s) }
