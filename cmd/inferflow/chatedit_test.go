package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// typist drives an editor with bytes at given times.
type typist struct {
	e   *editor
	ch  chan arrival
	out bytes.Buffer
	now time.Time
}

func newTypist(h ...string) *typist {
	t := &typist{ch: make(chan arrival, 100), now: time.Now()}
	t.e = &editor{in: t.ch, out: &t.out, history: &messageHistory{entries: h}, size: func() (int, int) { return 20, 5 },
		suspend: func() {}, complete: completeCommand}
	return t
}

// types sends each piece well after the one before it.
func (t *typist) types(pieces ...string) {
	for _, p := range pieces {
		t.now = t.now.Add(time.Second)
		t.ch <- arrival{[]byte(p), t.now}
	}
}

func (t *typist) read(tt *testing.T) string {
	tt.Helper()
	s, err := t.e.read(context.Background())
	if err != nil {
		tt.Fatalf("read: %v", err)
	}
	return s
}

const (
	up, down, left = "\x1b[A", "\x1b[B", "\x1b[D"
	pasteOn        = "\x1b[200~"
)

// TestMessages: what Enter sends after these pieces of input.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"a line", []string{"hello", "\r"}, "hello"},
		{"line and Enter at once", []string{"hello\r"}, "hello"},
		{"newline as Enter", []string{"hello\n"}, "hello"},
		{"bracketed paste", []string{pasteOn + "a\rb\r\nc\n" + pasteEnd, "d", "\r"}, "a\nb\nc\nd"},
		{"a paste in pieces", []string{"\x1b[20", "0~a\r", "\nb\xe7", "\x8c\xab\x1b[2", "01~", "\r"}, "a\nb猫"},
		{"a paste with escapes", []string{pasteOn + "a\x1b[31mb\x07c\tx" + pasteEnd, "\r"}, "a[31mbc\tx"},
		{"plain paste", []string{"a\rb\rc", "\r"}, "a\nb\nc"},
		{"plain paste with an end of line", []string{"a\rb\r", "!", "\r"}, "a\nb!"},
		{"Alt-Enter", []string{"a", "\x1b\r", "b", "\r"}, "a\nb"},
		{"backslash", []string{`a\`, "\r", "b", "\r"}, "a\nb"},
		{"quotes", []string{`"""a`, "\r", "b", "\r", `"""`, "\r"}, "a\nb"},
		{"quotes inside", []string{pasteOn + "\"\"\"doc\"\"\"\nx = 1" + pasteEnd, "\r"}, "\"\"\"doc\"\"\"\nx = 1"},
		{"arrows", []string{"bc", left, "\x1b[D", "a", "\x05", "d", "\r"}, "abcd"},
		{"home, end, kill, yank", []string{"one two", "\x01", "\x0b", "x", "\x19", "\r"}, "xone two"},
		{"kill word", []string{"one two", "\x17", "\x1b\x7f", "z", "\r"}, "z"},
		{"kill to the start of the line", []string{pasteOn + "a\nbc" + pasteEnd, "\x15", "d", "\r"}, "a\nd"},
		{"delete", []string{"abc", "\x1b[H", "\x1b[3~", "\x04", "\r"}, "c"},
		{"combining marks", []string{"ae\u0301", "\x7f", "\r"}, "a"},
		{"up in a text", []string{pasteOn + "abc\nd" + pasteEnd, up, "X", down, "Y", "\r"}, "aXbc\ndY"},
		{"Escape alone", []string{"a", "\x1b", "\x1b", "[D", "b", "\r"}, "ba"},
		{"unknown sequences", []string{"a\x1b[15~\x1bOP\x1b[?1;2c\x1b[[Ab", "\r"}, "ab"},
		{"Tab", []string{"/cl", "\t", "\r"}, "/clear "},
		{"Ctrl-C forgets the line", []string{"abc", "\x03", "d", "\r"}, "d"},
		{"a paste without an end", []string{pasteOn + "abc", "\x03", "d", "\r"}, "d"},
	} {
		w := newTypist()
		w.types(c.pieces...)
		if got := w.read(t); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPlainPasteWaits: the Enter that ends a text pasted as keys sends nothing.
func TestPlainPasteWaits(t *testing.T) {
	w := newTypist()
	w.types("a\rb\r")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // the quiet begins when the keys were taken, however busy the machine is
		for len(w.ch) > 0 {
			time.Sleep(quiet)
		}
		time.Sleep(10 * quiet)
		cancel()
	}()
	if s, err := w.e.read(ctx); !errors.Is(err, io.EOF) || w.e.line.String() != "a\nb" {
		t.Errorf("%q, %v; the line holds %q", s, err, w.e.line.String())
	}
}

func TestBurst(t *testing.T) {
	at := time.Now()
	var b burst
	b.key(at, true)
	if b.late(at.Add(quiet-1)) || !b.late(at.Add(quiet)) {
		t.Error("late")
	}
	if !b.key(at.Add(1), false) || b.settle() {
		t.Error("a key right after an Enter makes it a line's end")
	}
	b.key(at.Add(time.Second), true)
	if !b.settle() {
		t.Error("an Enter by itself is a person's")
	}
}

func TestRecall(t *testing.T) {
	w := newTypist("old", "two\nlines")
	w.types("draft", up, "!", "\r")
	if got := w.read(t); got != "two\nlines!" {
		t.Errorf("Up: %q", got)
	}
	w.types("draft", up, up, up, up, down, down, down, "\r")
	if got := w.read(t); got != "draft" {
		t.Errorf("up and down again: %q", got)
	}
	w.types("ol", "\x12", "\r")
	if got := w.read(t); got != "old" {
		t.Errorf("search: %q", got)
	}
	w.types("\x10", "\x10", "\x0e", "\r")
	if got := w.read(t); got != "two\nlines" {
		t.Errorf("Ctrl-P, Ctrl-N: %q", got)
	}
}

// TestTypeAhead: what is typed during an answer waits for the next Enter.
func TestTypeAhead(t *testing.T) {
	w := newTypist("old")
	stopped := make(chan bool, 1)
	stop := w.e.watch(func() { stopped <- true })
	w.types("\r", "ab", "\x7f", "\r", up, "\x03", "c", "\r", "\r")
	<-stopped
	stop()
	if w.out.Len() > 0 {
		t.Errorf("shown during the answer: %q", w.out.String())
	}
	w.types("d", "\r")
	if got := w.read(t); got != "a\ncd" {
		t.Errorf("%q", got)
	}
}

func TestEnds(t *testing.T) {
	w := newTypist()
	w.types("a", "\x04", "\x03", "\x03")
	if _, err := w.e.read(context.Background()); !errors.Is(err, errInterrupt) {
		t.Errorf("Ctrl-C on an empty line: %v", err)
	}
	w.types("\x04")
	if _, err := w.e.read(context.Background()); !errors.Is(err, io.EOF) {
		t.Errorf("Ctrl-D on an empty line: %v", err)
	}
	close(w.ch)
	if _, err := w.e.read(context.Background()); !errors.Is(err, io.EOF) {
		t.Errorf("end of input: %v", err)
	}
	called := make(chan bool, 1)
	w.e.watch(func() { called <- true })()
	<-called
}

// TestDraw: a text higher than the screen shows the rows around the cursor,
// and all of it once it is sent.
func TestDraw(t *testing.T) {
	w := newTypist()
	w.types(pasteOn + "1\n2\n3\n4\n5\n6\n7" + pasteEnd)
	w.types("\r")
	w.read(t)
	i := strings.LastIndex(w.out.String(), "\x1b[?25h")
	editing, sent := w.out.String()[:i], w.out.String()[i:]
	if strings.Contains(editing, "> 1\r\n") || !strings.Contains(editing, "… 3\r\n… 4\r\n… 5\r\n… 6\r\n… 7") {
		t.Errorf("while editing: %q", editing)
	}
	if !strings.HasSuffix(sent, "\x1b[4A\r\x1b[J> 1\r\n… 2\r\n… 3\r\n… 4\r\n… 5\r\n… 6\r\n… 7\r\n") {
		t.Errorf("sent: %q", sent)
	}
}

func TestLayout(t *testing.T) {
	for _, c := range []struct {
		text          string
		pos, columns  int
		rows          string
		row, col, wid int
	}{
		{"", 0, 10, "> ", 0, 2, 2},
		{"abc", 1, 10, "> abc", 0, 3, 5},
		{"abcdefgh", 8, 10, "> abcdefg|h", 1, 1, 9},
		{"猫猫猫猫", 3, 9, "> 猫猫猫|猫", 1, 0, 8},
		{"e\u0301x", 2, 10, "> e\u0301x", 0, 3, 4},
		{"a\n\tb", 3, 10, "> a|…     b", 1, 6, 3},
		{"a\n", 2, 10, "> a|… ", 1, 2, 3},
	} {
		rows, row, col := layout([]rune(c.text), c.pos, c.columns, firstPrompt, morePrompt)
		var all []string
		for _, r := range rows {
			all = append(all, r.text)
		}
		if got := strings.Join(all, "|"); got != c.rows || row != c.row || col != c.col || rows[0].width != c.wid {
			t.Errorf("%q: %q, cursor %d,%d, width %d; want %q, %d,%d, %d", c.text, got, row, col, rows[0].width, c.rows, c.row, c.col, c.wid)
		}
	}
}

// FuzzEditor: no bytes, in whatever pieces, bring a control character into a
// message or the cursor out of the text.
func FuzzEditor(f *testing.F) {
	for _, s := range []string{"a\rb\r", "\x1b[200~a\rb\x1b[201~", "\x1b[1;5D\x1b[3;5~\x17\x19", "\xe7\x8c\xab\x1bOA\x1b[A\x12", "\x1b[200~\x03\x1b[[A\x1a\x0c\t"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		w := newTypist("one", "two\nlines")
		step = max(1, step%16)
		for i := 0; i < len(b); i += step {
			w.e.take(arrival{b[i:min(len(b), i+step)], w.now})
			for len(w.e.queue) > 0 {
				p := w.e.queue[0]
				w.e.queue = w.e.queue[1:]
				_ = w.e.press(p)
				w.e.draw()
			}
			if l := w.e.line; l.pos < 0 || l.pos > len(l.text) {
				t.Fatalf("cursor %d of %d", l.pos, len(l.text))
			}
		}
		if s := w.e.line.String(); strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
			t.Fatalf("%q", s)
		}
	})
}
