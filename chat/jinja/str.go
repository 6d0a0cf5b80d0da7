package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Str is a string that remembers which of its bytes came from the caller's
// data: user holds those byte ranges, ascending and apart. The zero value is
// the empty string.
//
// A string is safe if it is what Python calls Markup, made by the filters safe
// and escape: what is added to it is escaped for HTML. Templates meet that
// without meaning to, so it is kept.
type Str struct {
	s    string
	user []span
	safe bool
}

// span is a half-open range of bytes.
type span struct{ lo, hi int }

// lit is a string of the template.
func lit(s string) Str { return Str{s: s} }

// fromUser is a string of the caller's data.
func fromUser(s string) Str {
	if s == "" {
		return Str{}
	}
	return Str{s: s, user: []span{{0, len(s)}}}
}

// String gives the text without its provenance.
func (s Str) String() string { return s.s }

// slice gives the bytes lo to hi and shares memory with s.
func (s Str) slice(lo, hi int) Str {
	out := Str{s: s.s[lo:hi], safe: s.safe}
	if lo == hi {
		return out
	}
	for _, u := range s.user[s.spanFrom(lo):] {
		if u.lo >= hi {
			break
		}
		out.user = append(out.user, span{max(u.lo, lo) - lo, min(u.hi, hi) - lo})
	}
	return out
}

// as gives the string with or without safety.
func (s Str) as(safe bool) Str {
	s.safe = safe
	return s
}

// escape makes a string safe for HTML, if it is not so already.
func (s Str) escape() Str {
	if s.safe {
		return s
	}
	return s.mapRunes(func(_ int, c rune) string {
		switch c {
		case '&':
			return "&amp;"
		case '<':
			return "&lt;"
		case '>':
			return "&gt;"
		case '\'':
			return "&#39;"
		case '"':
			return "&#34;"
		}
		return ""
	}).as(true)
}

// isUser says whether byte i came from the caller.
func (s Str) isUser(i int) bool {
	k := s.spanFrom(i)
	return k < len(s.user) && s.user[k].lo <= i
}

// anyUser says whether any byte came from the caller.
func (s Str) anyUser() bool { return len(s.user) > 0 }

// tainted gives text all the provenance that made has: where the bytes of a
// result cannot be traced, all of it counts as the caller's if any input was.
func tainted(text string, user bool) Str {
	if user {
		return fromUser(text)
	}
	return lit(text)
}

// strBuilder joins strings and keeps their provenance.
type strBuilder struct {
	b    strings.Builder
	user []span
}

func (b *strBuilder) add(s Str) {
	base := b.b.Len()
	b.b.WriteString(s.s)
	for _, u := range s.user {
		b.mark(base+u.lo, base+u.hi)
	}
}

func (b *strBuilder) addText(s string, user bool) {
	base := b.b.Len()
	b.b.WriteString(s)
	if user && s != "" {
		b.mark(base, base+len(s))
	}
}

func (b *strBuilder) mark(lo, hi int) {
	if n := len(b.user); n > 0 && b.user[n-1].hi == lo {
		b.user[n-1].hi = hi
		return
	}
	b.user = append(b.user, span{lo, hi})
}

func (b *strBuilder) len() int { return b.b.Len() }

func (b *strBuilder) str() Str { return Str{s: b.b.String(), user: b.user} }

func concat(parts ...Str) Str {
	var b strBuilder
	for _, p := range parts {
		b.add(p)
	}
	return b.str()
}

// mapRunes replaces each rune for which f gives a text; "" leaves it. A
// replacement has the provenance of what it replaces.
func (s Str) mapRunes(f func(i int, r rune) string) Str {
	var b strBuilder
	done, u := 0, 0
	for i, r := range s.s {
		text := f(i, r)
		if text == "" {
			continue
		}
		u = b.addRange(s, done, i, u)
		for u < len(s.user) && s.user[u].hi <= i {
			u++
		}
		b.addText(text, u < len(s.user) && s.user[u].lo <= i)
		done = i + utf8.RuneLen(r)
	}
	if done == 0 {
		return s.as(false)
	}
	b.addRange(s, done, len(s.s), u)
	return b.str()
}

// addRange adds bytes lo to hi of s, where no span of s before the u-th reaches
// lo; it gives the first span that reaches hi.
func (b *strBuilder) addRange(s Str, lo, hi, u int) int {
	base := b.b.Len() - lo
	b.b.WriteString(s.s[lo:hi])
	for ; u < len(s.user) && s.user[u].lo < hi; u++ {
		from, to := max(s.user[u].lo, lo), min(s.user[u].hi, hi)
		if from < to {
			b.mark(base+from, base+to)
		}
		if s.user[u].hi > hi {
			break
		}
	}
	return u
}

// ascii says whether runes and bytes are the same.
func (s Str) ascii() bool {
	for i := 0; i < len(s.s); i++ {
		if s.s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// runeLen is the length in code points, which is what Python counts.
func (s Str) runeLen() int { return utf8.RuneCountInString(s.s) }

// offset gives the byte offset of the n-th code point.
func (s Str) offset(n int) int {
	for i := range s.s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s.s)
}

// isSpace is Python's str.isspace for one character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
