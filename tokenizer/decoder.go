package tokenizer

import (
	"unicode/utf8"
)

// Decoder turns ids into text one at a time. It holds back what is not yet certain: the first bytes of a rune, and in some vocabularies the space at an
// end. The pieces that Next returns and the rest that Flush returns concatenate to what Decode gives for all ids. It belongs to one goroutine.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	stages      []stage
	buf         []byte // bytes that came out of the stages and are not yet returned
}

// NewDecoder returns a decoder for a text that begins with the first id given.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder { return t.newDecoder(skipSpecial, false) }

// ContinueDecoder returns a decoder for ids that go on from earlier text: what some vocabularies strip at a text's beginning (the space that encoding
// puts there) is kept.
func (t *Tokenizer) ContinueDecoder(skipSpecial bool) *Decoder {
	return t.newDecoder(skipSpecial, true)
}

func (t *Tokenizer) newDecoder(skipSpecial, started bool) *Decoder {
	d := &Decoder{t: t, skipSpecial: skipSpecial, stages: make([]stage, len(t.stages))}
	for i := range t.stages {
		d.stages[i] = stage{spec: &t.stages[i], started: started}
	}
	return d
}

// Decode returns the text of ids; skipSpecial leaves control tokens out. Bytes that are no UTF-8 become U+FFFD. Ids out of range are passed over.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	d := t.newDecoder(skipSpecial, false)
	for _, id := range ids {
		d.feed(id)
	}
	return d.Flush()
}

// Next takes the next id and returns the text that is certain by now, which may be empty.
func (d *Decoder) Next(id int32) string {
	d.feed(id)
	return d.take(false)
}

// Flush ends the text and returns what was held back, with U+FFFD for a rune that never became whole. The decoder may then be used for a new text.
func (d *Decoder) Flush() string {
	d.end()
	return d.take(true)
}

func (d *Decoder) feed(id int32) {
	if !d.t.valid(id) || d.skipSpecial && d.t.kinds[id]&kindControl != 0 {
		return
	}
	d.pass(0, d.t.texts[id])
}

// pass hands a token to stage i, or to the output behind the last.
func (d *Decoder) pass(i int, token string) {
	if i == len(d.stages) {
		d.buf = append(d.buf, token...)
		return
	}
	d.stages[i].next(token, func(out string) { d.pass(i+1, out) })
}

func (d *Decoder) end() {
	for i := range d.stages {
		d.stages[i].flush(func(out string) { d.pass(i+1, out) })
	}
}

// rawBytes returns the bytes of one token.
func (d *Decoder) rawBytes(id int32) []byte {
	d.pass(0, d.t.texts[id])
	d.end()
	return d.buf
}

// take returns the whole runes of the buffer and keeps the beginning of one that is not whole, unless final.
func (d *Decoder) take(final bool) string {
	n := len(d.buf)
	if !final {
		n -= unfinished(d.buf)
	}
	if n == 0 {
		return ""
	}
	s := sanitize(d.buf[:n], d.t.fallbackBytes())
	d.buf = append(d.buf[:0], d.buf[n:]...)
	return s
}

// unfinished returns how many bytes at the end of b begin a rune that is not whole.
func unfinished(b []byte) int {
	for n := 1; n <= utf8.UTFMax-1 && n <= len(b); n++ {
		c := b[len(b)-n]
		if c < utf8.RuneSelf {
			return 0
		}
		if utf8.RuneStart(c) {
			if prefixLen(b[len(b)-n:]) == n && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// sanitize replaces what is no UTF-8 by U+FFFD: one for each longest beginning of a rune, as a lossy conversion does, or one a byte, as byte tokens do.
func sanitize(b []byte, everyByte bool) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b)+8)
	for len(b) > 0 {
		r, w := utf8.DecodeRune(b)
		if r == utf8.RuneError && w == 1 {
			if !everyByte {
				w = prefixLen(b)
			}
			out = utf8.AppendRune(out, utf8.RuneError)
		} else {
			out = append(out, b[:w]...)
		}
		b = b[w:]
	}
	return string(out)
}

// prefixLen returns the length, at least 1, of the longest beginning of b that could begin a rune (Unicode's maximal subpart).
func prefixLen(b []byte) int {
	low, high, size := byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		size = 2
	case c == 0xe0:
		size, low = 3, 0xa0
	case c == 0xed:
		size, high = 3, 0x9f
	case c >= 0xe1 && c <= 0xef:
		size = 3
	case c == 0xf0:
		size, low = 4, 0x90
	case c == 0xf4:
		size, high = 4, 0x8f
	case c >= 0xf1 && c <= 0xf3:
		size = 4
	}
	n := 1
	for ; n < size && n < len(b); n++ {
		if b[n] < low || b[n] > high {
			break
		}
		low, high = 0x80, 0xbf
	}
	return n
}
