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
	for _, u := range s.user {
		if u.hi <= lo {
			continue
		}
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
	for _, u := range s.user {
		if i < u.hi {
			return i >= u.lo
		}
	}
	return false
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

// strip removes from the ends what cut holds, or whitespace if cut is nil.
func (s Str) strip(cut *Str, left, right bool) Str {
	match := isSpace
	if cut != nil {
		match = func(r rune) bool { return strings.ContainsRune(cut.s, r) }
	}
	lo, hi := 0, len(s.s)
	if left {
		lo = hi - len(strings.TrimLeftFunc(s.s, match))
	}
	if right {
		hi = lo + len(strings.TrimRightFunc(s.s[lo:], match))
	}
	return s.slice(lo, hi)
}

// fields splits at runs of whitespace, at most n times if n >= 0.
func (s Str) fields(n int) []Str {
	var out []Str
	at := 0
	for {
		at += spaces(s.s[at:])
		if at == len(s.s) {
			return out
		}
		if n >= 0 && len(out) == n {
			return append(out, s.slice(at, len(s.s)))
		}
		end := len(s.s)
		if k := strings.IndexFunc(s.s[at:], isSpace); k >= 0 {
			end = at + k
		}
		out = append(out, s.slice(at, end))
		at = end
	}
}

// rfields is fields counted from the right.
func (s Str) rfields(n int) []Str {
	var rev []Str
	s = s.strip(nil, false, true)
	for len(s.s) > 0 {
		if n >= 0 && len(rev) == n {
			rev = append(rev, s)
			break
		}
		cut := strings.LastIndexFunc(s.s, isSpace)
		lo := 0
		if cut >= 0 {
			_, w := utf8.DecodeRuneInString(s.s[cut:])
			lo = cut + w
		}
		rev = append(rev, s.slice(lo, len(s.s)))
		s = s.slice(0, max(cut, 0)).strip(nil, false, true)
	}
	for i, j := 0, len(rev)-1; i < j; i, j = i+1, j-1 {
		rev[i], rev[j] = rev[j], rev[i]
	}
	return rev
}

// split splits at a separator, at most n times if n >= 0.
func (s Str) split(sep string, n int) []Str {
	var out []Str
	at := 0
	for n < 0 || len(out) < n {
		k := strings.Index(s.s[at:], sep)
		if k < 0 {
			break
		}
		out = append(out, s.slice(at, at+k))
		at += k + len(sep)
	}
	return append(out, s.slice(at, len(s.s)))
}

// rsplit is split counted from the right; n >= 0.
func (s Str) rsplit(sep string, n int) []Str {
	var rev []Str
	end := len(s.s)
	for len(rev) < n {
		k := strings.LastIndex(s.s[:end], sep)
		if k < 0 {
			break
		}
		rev = append(rev, s.slice(k+len(sep), end))
		end = k
	}
	rev = append(rev, s.slice(0, end))
	for i, j := 0, len(rev)-1; i < j; i, j = i+1, j-1 {
		rev[i], rev[j] = rev[j], rev[i]
	}
	return rev
}

// lines is Python's splitlines.
func (s Str) lines(keep bool) []Str {
	var out []Str
	start := 0
	for i := 0; i < len(s.s); {
		r, w := utf8.DecodeRuneInString(s.s[i:])
		end := i + w
		if !isLineEnd(r) {
			i = end
			continue
		}
		if r == '\r' && end < len(s.s) && s.s[end] == '\n' {
			end++
		}
		cut := i
		if keep {
			cut = end
		}
		out = append(out, s.slice(start, cut))
		start, i = end, end
	}
	if start < len(s.s) {
		out = append(out, s.slice(start, len(s.s)))
	}
	return out
}

func isLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}
