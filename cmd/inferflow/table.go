package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// table lays out rows of text in columns.
type table struct {
	head  []string
	right []bool // columns of numbers; those beyond its end are text
	rows  [][]string
	limit int // characters of a line at most; 0: any
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, each line indented; the last column is not padded.
func (t *table) write(w io.Writer, indent string, color bool) error {
	width := make([]int, len(t.head))
	for _, r := range append([][]string{t.head}, t.rows...) {
		for i, c := range r {
			if i < len(width) {
				width[i] = max(width[i], utf8.RuneCountInString(c))
			}
		}
	}
	var b strings.Builder
	if strings.Join(t.head, "") != "" {
		b.WriteString(style(bold, t.line(t.head, indent, width), color) + "\n")
	}
	for _, r := range t.rows {
		b.WriteString(t.line(r, indent, width) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *table) line(cells []string, indent string, width []int) string {
	var b strings.Builder
	b.WriteString(indent)
	for i, c := range cells {
		pad := ""
		if i < len(width) {
			pad = strings.Repeat(" ", max(0, width[i]-utf8.RuneCountInString(c)))
		}
		if i < len(t.right) && t.right[i] {
			c, pad = pad+c, ""
		}
		b.WriteString(c)
		if i+1 < len(cells) {
			b.WriteString(pad + "  ")
		}
	}
	s := strings.TrimRight(b.String(), " ")
	if t.limit > 0 {
		s = clip(s, t.limit)
	}
	return s
}

// clip cuts text that is longer than n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(0, n-1)]) + "…"
	}
	return s
}

// terminalWidth is the characters of a line of f, 0 where f is no terminal.
func terminalWidth(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && term.IsTerminal(int(f.Fd())) {
		return w
	}
	return 0
}

const (
	bold = "1"
	dim  = "2"
)

// style wraps text in a terminal attribute where color is set.
func style(attribute, text string, color bool) string {
	if !color || text == "" {
		return text
	}
	return "\x1b[" + attribute + "m" + text + "\x1b[0m"
}

// colored says that f is a terminal and nobody asked for plain text.
func colored(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// progressLine shows one line on stderr that each call replaces; it says
// nothing where stderr is no terminal. An empty text clears it.
func progressLine() func(string) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func(string) {}
	}
	return func(s string) {
		if w := terminalWidth(os.Stderr); w > 1 {
			s = clip(s, w-1)
		}
		_, _ = io.WriteString(os.Stderr, "\r\x1b[K"+s)
	}
}
