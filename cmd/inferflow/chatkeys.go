package main

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// keyCode says what a key asks for.
type keyCode int

const (
	keyNone  keyCode = iota
	keyText          // typed runes, in key.text
	keyPaste         // part of a bracketed paste, in key.text
	keyEnter
	keyNewline // Alt-Enter, Shift-Enter: a line's end that sends nothing
	keyTab
	keyBackspace
	keyDelete
	keyLeft
	keyRight
	keyWordLeft
	keyWordRight
	keyHome
	keyEnd
	keyUp
	keyDown
	keyOlder
	keyNewer
	keyKillEnd
	keyKillStart
	keyKillWord
	keyKillNextWord
	keyYank
	keySearch
	keyClear
	keyInterrupt
	keyEOF
	keySuspend
)

// key is one event of the keyboard.
type key struct {
	code keyCode
	text string
}

// controls are the keys that are a byte below a space, and DEL.
var controls = map[byte]keyCode{
	1: keyHome, 2: keyLeft, 3: keyInterrupt, 4: keyEOF, 5: keyEnd, 6: keyRight, 8: keyBackspace, 9: keyTab, 10: keyEnter, 11: keyKillEnd, 12: keyClear,
	13: keyEnter, 14: keyNewer, 16: keyOlder, 18: keySearch, 21: keyKillStart, 23: keyKillWord, 25: keyYank, 26: keySuspend, 127: keyBackspace,
}

// alts are the keys that follow an escape byte.
var alts = map[byte]keyCode{'b': keyWordLeft, 'f': keyWordRight, 'd': keyKillNextWord, 8: keyKillWord, 127: keyKillWord, 13: keyNewline, 10: keyNewline}

// sequences are the keys that terminals send as ESC [ …, without the ESC [.
// With a modifier (";5" is Ctrl, ";3" Alt) the arrows move by words.
var sequences = map[string]keyCode{
	"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd, "1~": keyHome, "7~": keyHome, "4~": keyEnd, "8~": keyEnd, "3~": keyDelete,
	"1;5C": keyWordRight, "1;5D": keyWordLeft, "1;3C": keyWordRight, "1;3D": keyWordLeft, "3;5~": keyKillNextWord, "3;3~": keyKillNextWord,
	"13;2u": keyNewline, "13;3u": keyNewline, "27;2;13~": keyNewline, "27;3;13~": keyNewline,
}

const (
	pasteBegin = "200~"
	pasteEnd   = "\x1b[201~"
	// A sequence longer than this is no key of any terminal.
	maxSequence = 64
)

// keyDecoder turns the bytes of a terminal into keys. Bytes may come in pieces
// of any length.
type keyDecoder struct {
	buf   []byte
	paste bool
	cr    bool // the paste's last byte was a carriage return
}

// feed takes bytes and returns the keys that are complete.
func (d *keyDecoder) feed(b []byte) []key {
	d.buf = append(d.buf, b...)
	var out []key
	for len(d.buf) > 0 {
		k, n := d.next()
		if n == 0 {
			break
		}
		d.buf = d.buf[n:]
		if k.code != keyNone {
			out = append(out, k)
		}
	}
	if len(d.buf) == 0 {
		d.buf = nil
	}
	return out
}

// unfinished says whether more bytes are awaited: the Escape key alone looks
// like the beginning of a sequence.
func (d *keyDecoder) unfinished() bool { return !d.paste && len(d.buf) > 0 && d.buf[0] == 0x1b }

// drop forgets a sequence whose end does not come.
func (d *keyDecoder) drop() {
	if d.unfinished() {
		d.buf = nil
	}
}

// next decodes the first key of buf and says how many bytes it takes, 0 where
// its end is missing.
func (d *keyDecoder) next() (key, int) {
	if d.paste {
		return d.pasted()
	}
	switch c := d.buf[0]; {
	case c == 0x1b:
		return d.escape()
	case c == '\r' && len(d.buf) > 1 && d.buf[1] == '\n':
		return key{code: keyEnter}, 2
	case c < ' ' || c == 0x7f:
		return key{code: controls[c]}, 1
	}
	n := 0
	for n < len(d.buf) && d.buf[n] >= ' ' && d.buf[n] != 0x7f && utf8.FullRune(d.buf[n:]) {
		_, size := utf8.DecodeRune(d.buf[n:])
		n += size
	}
	return key{keyText, strings.ToValidUTF8(string(d.buf[:n]), "")}, n
}

func (d *keyDecoder) escape() (key, int) {
	b := d.buf
	switch {
	case len(b) == 1:
		return key{}, 0
	case b[1] == '[':
		return d.sequence()
	case b[1] == 'O':
		if len(b) < 3 {
			return key{}, 0
		}
		return key{code: sequences[string(b[2:3])]}, 3
	case b[1] == 0x1b || b[1] >= utf8.RuneSelf:
		return key{}, 1
	}
	return key{code: alts[b[1]]}, 2
}

// sequence decodes ESC [ parameters final (ECMA-48, 5.4).
func (d *keyDecoder) sequence() (key, int) {
	b := d.buf
	if len(b) > 2 && b[2] == '[' { // the Linux console's function keys
		return key{}, min(len(b), 4) &^ 3
	}
	for i := 2; i < len(b); i++ {
		switch c := b[i]; {
		case c < ' ' || c > '~' || i > maxSequence:
			return key{}, i // broken off
		case c >= '@':
			name := string(b[2 : i+1])
			if name == pasteBegin {
				d.paste, d.cr = true, false
			}
			return key{code: sequences[name]}, i + 1
		}
	}
	return key{}, 0
}

// pasted takes what there is of a bracketed paste. Ctrl-C, which no terminal
// lets through in a paste, ends one whose end was lost.
func (d *keyDecoder) pasted() (key, int) {
	b := d.buf
	if i := bytes.Index(b, []byte(pasteEnd)); i >= 0 {
		if i == 0 {
			d.paste = false
			return key{}, len(pasteEnd)
		}
		return d.pasteText(b[:i]), i
	}
	if i := bytes.IndexByte(b, 3); i >= 0 {
		d.paste = false
		return key{code: keyInterrupt}, i + 1
	}
	n := len(b)
	for i := max(0, n-len(pasteEnd)+1); i < n; i++ {
		if strings.HasPrefix(pasteEnd, string(b[i:])) || !utf8.FullRune(b[i:]) {
			n = i
			break
		}
	}
	if n == 0 {
		return key{}, 0
	}
	return d.pasteText(b[:n]), n
}

// pasteText makes every line's end a newline: terminals send \r, \n or both.
func (d *keyDecoder) pasteText(b []byte) key {
	if d.cr && b[0] == '\n' {
		b = b[1:]
	}
	d.cr = len(b) > 0 && b[len(b)-1] == '\r'
	s := strings.ReplaceAll(strings.ToValidUTF8(string(b), ""), "\r\n", "\n")
	return key{keyPaste, strings.ReplaceAll(s, "\r", "\n")}
}
