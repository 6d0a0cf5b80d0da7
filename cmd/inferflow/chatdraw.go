package main

import (
	"fmt"
	"io"
	"strings"
)

// draw shows the line, or as much around the cursor as the screen holds.
func (e *editor) draw() {
	columns, height := e.size()
	rows, row, col := layout(e.line.text, e.line.pos, columns, firstPrompt, morePrompt)
	height = max(1, min(height, len(rows)))
	e.top = max(min(e.top, row, len(rows)-height), row-height+1, 0)
	rows = rows[e.top : e.top+height]
	var b strings.Builder
	b.WriteString("\x1b[?25l")
	e.erase(&b, columns)
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(r.text)
	}
	e.drawn, e.cursor = rows, row-e.top
	if up := len(rows) - 1 - e.cursor; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	if col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", col)
	}
	b.WriteString("\x1b[?25h")
	io.WriteString(e.out, b.String())
}

// erase takes away what was drawn. A terminal that was made narrower since has
// broken the rows.
func (e *editor) erase(b *strings.Builder, columns int) {
	up := 0
	for _, r := range e.drawn[:e.cursor] {
		up += 1 + max(0, r.width-1)/max(1, columns)
	}
	if up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", up)
	}
	b.WriteString("\r\x1b[J")
}

// leave shows the whole text, however long, and goes to the row below.
func (e *editor) leave(mark string) {
	columns, _ := e.size()
	rows, _, _ := layout(e.line.text, 0, columns, firstPrompt, morePrompt)
	var b strings.Builder
	e.erase(&b, columns)
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(r.text)
	}
	b.WriteString(mark + "\r\n")
	io.WriteString(e.out, b.String())
	e.drawn, e.cursor, e.top = nil, 0, 0
}
