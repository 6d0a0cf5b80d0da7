package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// digits gives the length of a run of digits with single underscores between.
func digits(s string, ok func(byte) bool) int {
	n := 0
	for n < len(s) {
		if ok(s[n]) {
			n++
		} else if s[n] == '_' && n > 0 && n+1 < len(s) && ok(s[n+1]) {
			n += 2
		} else {
			break
		}
	}
	return n
}

func isDec(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool { return isDec(c) || c|32 >= 'a' && c|32 <= 'f' }
func isOct(c byte) bool { return c >= '0' && c <= '7' }
func isBin(c byte) bool { return c == '0' || c == '1' }

// number gives the length and kind of a number literal at the start of s.
func number(s string) (int, string) {
	if !isDec(s[0]) {
		return 0, ""
	}
	if s[0] == '0' && len(s) > 2 {
		ok := map[byte]func(byte) bool{'x': isHex, 'o': isOct, 'b': isBin}[s[1]|32]
		if ok != nil {
			if n := digits(s[2:], ok); n > 0 {
				return 2 + n, tInteger
			}
		}
	}
	n := digits(s, isDec)
	f := n
	if f+1 < len(s) && s[f] == '.' && isDec(s[f+1]) {
		f += 1 + digits(s[f+1:], isDec)
	}
	if f < len(s) && s[f]|32 == 'e' {
		e := f + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if e < len(s) && isDec(s[e]) {
			f = e + digits(s[e:], isDec)
		}
	}
	if f > n {
		return f, tFloat
	}
	if s[0] == '0' { // a decimal zero may not lead other digits
		n = digits(s, func(c byte) bool { return c == '0' })
	}
	return n, tInteger
}

var simpleEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'",
	'"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\n': ""}

// unescape resolves the escapes of a Python string literal; unknown ones keep
// their backslash.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		if e, ok := simpleEscapes[c]; ok {
			b.WriteString(e)
			continue
		}
		if isOct(c) {
			n := 1
			for n < 3 && i+n < len(s) && isOct(s[i+n]) {
				n++
			}
			v, _ := strconv.ParseUint(s[i:i+n], 8, 32)
			b.WriteRune(rune(v))
			i += n - 1
			continue
		}
		size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if size == 0 {
			if c == 'N' {
				return "", fmt.Errorf(`named characters (\N{…}) are not supported, use \u`)
			}
			b.WriteByte('\\')
			b.WriteByte(c)
			continue
		}
		if i+size >= len(s) {
			return "", fmt.Errorf(`truncated \%c escape`, c)
		}
		v, err := strconv.ParseUint(s[i+1:i+1+size], 16, 32)
		if err != nil || v > utf8.MaxRune {
			return "", fmt.Errorf(`bad \%c escape`, c)
		}
		b.WriteRune(rune(v))
		i += size
	}
	return b.String(), nil
}
