package main

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// editLine is a message being written: runes, which may hold newlines and
// tabs but no other control characters, and a cursor.
type editLine struct {
	text   []rune
	pos    int
	killed []rune
}

func (l *editLine) String() string { return string(l.text) }

// set replaces the text and puts the cursor behind it.
func (l *editLine) set(s string) {
	l.text, l.pos = nil, 0
	l.insert(s)
}

// insert puts text before the cursor.
func (l *editLine) insert(s string) {
	rs := slices.DeleteFunc([]rune(s), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
	l.text = slices.Insert(l.text, l.pos, rs...)
	l.pos += len(rs)
}

// apply edits as the key says; false where the key is none of editing.
func (l *editLine) apply(k key) bool {
	switch k.code {
	case keyText, keyPaste:
		l.insert(k.text)
	case keyNewline:
		l.insert("\n")
	case keyLeft:
		l.pos = l.left()
	case keyRight:
		l.pos = l.right()
	case keyWordLeft:
		l.pos = l.wordLeft(isWord)
	case keyWordRight:
		l.pos = l.wordRight()
	case keyHome:
		l.pos = l.lineStart()
	case keyEnd:
		l.pos = l.lineEnd()
	default:
		return l.remove(k.code)
	}
	return true
}

// remove does the keys that take text away, and the one that brings it back.
func (l *editLine) remove(c keyCode) bool {
	switch c {
	case keyBackspace:
		l.cut(l.left(), l.pos)
	case keyDelete:
		l.cut(l.pos, l.right())
	case keyKillEnd:
		end := l.lineEnd()
		if end == l.pos {
			end = min(end+1, len(l.text))
		}
		l.kill(l.pos, end)
	case keyKillStart:
		l.kill(l.lineStart(), l.pos)
	case keyKillWord:
		l.kill(l.wordLeft(func(r rune) bool { return !unicode.IsSpace(r) }), l.pos)
	case keyKillNextWord:
		l.kill(l.pos, l.wordRight())
	case keyYank:
		l.insert(string(l.killed))
	default:
		return false
	}
	return true
}

func (l *editLine) cut(from, to int) {
	l.text = slices.Delete(l.text, from, to)
	l.pos = from
}

func (l *editLine) kill(from, to int) {
	if from < to {
		l.killed = slices.Clone(l.text[from:to])
		l.cut(from, to)
	}
}

// left is the position before the character that stands before the cursor:
// with what is combined with it.
func (l *editLine) left() int {
	p := max(0, l.pos-1)
	for p > 0 && runeWidth(l.text[p]) == 0 && l.text[p-1] != '\n' {
		p--
	}
	return p
}

func (l *editLine) right() int {
	p := min(len(l.text), l.pos+1)
	for p < len(l.text) && l.text[p-1] != '\n' && runeWidth(l.text[p]) == 0 {
		p++
	}
	return p
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r) || r == '_'
}

func (l *editLine) wordLeft(in func(rune) bool) int {
	p := l.pos
	for p > 0 && !in(l.text[p-1]) {
		p--
	}
	for p > 0 && in(l.text[p-1]) {
		p--
	}
	return p
}

func (l *editLine) wordRight() int {
	p := l.pos
	for p < len(l.text) && !isWord(l.text[p]) {
		p++
	}
	for p < len(l.text) && isWord(l.text[p]) {
		p++
	}
	return p
}

func (l *editLine) lineStart() int {
	p := l.pos
	for p > 0 && l.text[p-1] != '\n' {
		p--
	}
	return p
}

func (l *editLine) lineEnd() int {
	p := l.pos
	for p < len(l.text) && l.text[p] != '\n' {
		p++
	}
	return p
}

// up moves to the line above; false on the first.
func (l *editLine) up() bool {
	start := l.lineStart()
	if start == 0 {
		return false
	}
	column := l.pos - start
	l.pos = start - 1
	above := l.lineStart()
	l.pos = min(above+column, start-1)
	return true
}

// down moves to the line below; false on the last.
func (l *editLine) down() bool {
	end := l.lineEnd()
	if end == len(l.text) {
		return false
	}
	column := l.pos - l.lineStart()
	l.pos = end + 1
	l.pos = min(end+1+column, l.lineEnd())
	return true
}

// tabWidth is the columns of a tab, wherever it stands.
const tabWidth = 4

// runeWidth is the columns that a terminal gives to a rune.
func runeWidth(r rune) int {
	switch {
	case r == '\t':
		return tabWidth
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// screenRow is a row of the terminal.
type screenRow struct {
	text  string
	width int
}

// layout breaks a text into rows of less than columns columns and finds the
// cursor. The first row begins with prompt, those after a newline with more.
func layout(text []rune, pos, columns int, prompt, more string) (rows []screenRow, row, col int) {
	var b strings.Builder
	w := 0
	begin := func(s string) {
		b.WriteString(s)
		for _, r := range s {
			w += runeWidth(r)
		}
	}
	end := func() {
		rows = append(rows, screenRow{b.String(), w})
		b.Reset()
		w = 0
	}
	begin(prompt)
	for i, r := range text {
		if r != '\n' && w > 0 && w+runeWidth(r) >= columns {
			end()
		}
		if i == pos {
			row, col = len(rows), w
		}
		switch r {
		case '\n':
			end()
			begin(more)
			continue
		case '\t':
			b.WriteString(strings.Repeat(" ", tabWidth))
		default:
			b.WriteRune(r)
		}
		w += runeWidth(r)
	}
	if pos >= len(text) {
		row, col = len(rows), w
	}
	end()
	return rows, row, col
}
