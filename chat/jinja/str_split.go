package jinja

import (
	"strings"
	"unicode/utf8"
)

// strip removes from the ends what cut holds, or whitespace if cut is nil.
func (s Str) strip(cut *Str, left, right bool) Str {
	match := isSpace
	if cut != nil {
		match = func(r rune) bool { return strings.ContainsRune(cut.s, r) }
		if len(cut.s) > 16 {
			set := map[rune]bool{}
			for _, c := range cut.s {
				set[c] = true
			}
			match = func(r rune) bool { return set[r] }
		}
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

// countFields is the number of runs that are no whitespace.
func (s Str) countFields() int {
	n, inside := 0, false
	for _, c := range s.s {
		if isSpace(c) {
			inside = false
		} else if !inside {
			inside = true
			n++
		}
	}
	return n
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
	head := strings.TrimRightFunc(s.s, isSpace)
	for len(head) > 0 {
		if n >= 0 && len(rev) == n {
			rev = append(rev, s.slice(0, len(head)))
			break
		}
		cut := strings.LastIndexFunc(head, isSpace)
		lo := 0
		if cut >= 0 {
			_, w := utf8.DecodeRuneInString(head[cut:])
			lo = cut + w
		}
		rev = append(rev, s.slice(lo, len(head)))
		head = strings.TrimRightFunc(head[:max(cut, 0)], isSpace)
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
