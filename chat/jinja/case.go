package jinja

import (
	"unicode"
	"unicode/utf8"
)

// changed gives the text of b, or "" if it is a.
func changed(a, b rune) string {
	if a == b {
		return ""
	}
	return string(b)
}

func upperRune(r rune) string {
	if c, ok := fullCase[r]; ok {
		return c[0]
	}
	return changed(r, unicode.ToUpper(r))
}

func titleRune(r rune) string {
	if c, ok := fullCase[r]; ok {
		return c[2]
	}
	return changed(r, unicode.ToTitle(r))
}

// lowerAt is Python's lower case of the rune at byte i: a capital sigma at the
// end of a word becomes the final form.
func lowerAt(s string, i int, r rune) string {
	if r == 'Σ' && finalSigma(s, i) {
		return "ς"
	}
	if c, ok := fullCase[r]; ok {
		return c[1]
	}
	return changed(r, unicode.ToLower(r))
}

func cased(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt) }

func caseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		r == '\'' || r == '.' || r == ':' || r == '·' || r == '’'
}

func finalSigma(s string, i int) bool {
	before := false
	for head := s[:i]; head != ""; {
		r, w := utf8.DecodeLastRuneInString(head)
		if !caseIgnorable(r) {
			before = cased(r)
			break
		}
		head = head[:len(head)-w]
	}
	if !before {
		return false
	}
	for _, r := range s[i+len("Σ"):] {
		if !caseIgnorable(r) {
			return !cased(r)
		}
	}
	return true
}

func (s Str) upper() Str {
	return s.mapRunes(func(_ int, r rune) string { return upperRune(r) }).as(s.safe)
}

func (s Str) lower() Str {
	return s.mapRunes(func(i int, r rune) string { return lowerAt(s.s, i, r) }).as(s.safe)
}

// casefold is lower with the characters spelled out that have no upper case of
// one character.
func (s Str) casefold() Str {
	return s.mapRunes(func(i int, r rune) string {
		if r == 'Σ' || r == 'ς' {
			return "σ"
		}
		if c := fullCase[r][0]; c != "" && c != string(r) {
			return lit(c).lower().s
		}
		return lowerAt(s.s, i, r)
	}).as(s.safe)
}

func (s Str) capitalize() Str {
	return s.mapRunes(func(i int, r rune) string {
		if i == 0 {
			return titleRune(r)
		}
		return lowerAt(s.s, i, r)
	}).as(s.safe)
}

// title is Python's str.title: words are runs of cased characters.
func (s Str) title() Str {
	inWord := false
	return s.mapRunes(func(i int, r rune) string {
		first := !inWord
		inWord = cased(r)
		if first {
			return titleRune(r)
		}
		return lowerAt(s.s, i, r)
	}).as(s.safe)
}

func (s Str) swapcase() Str {
	return s.mapRunes(func(i int, r rune) string {
		if unicode.IsUpper(r) {
			return lowerAt(s.s, i, r)
		}
		return upperRune(r)
	}).as(s.safe)
}

// isCase says whether all cased characters are of the class, and there is one.
func (s Str) isCase(upper bool) bool {
	any := false
	for _, r := range s.s {
		switch {
		case unicode.IsUpper(r) || unicode.Is(unicode.Lt, r):
			if !upper || unicode.Is(unicode.Lt, r) {
				return false
			}
			any = true
		case unicode.IsLower(r):
			if upper {
				return false
			}
			any = true
		}
	}
	return any
}

// all says whether every rune passes, and there is one: Python's isdigit etc.
func (s Str) all(f func(rune) bool) bool {
	for _, r := range s.s {
		if !f(r) {
			return false
		}
	}
	return s.s != ""
}
