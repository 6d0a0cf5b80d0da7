package jinja

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Token kinds carry Jinja2's names, which error messages show.
const (
	tData     = "template data"
	tVarBegin = "{{"
	tVarEnd   = "}}"
	tBlkBegin = "{%"
	tBlkEnd   = "%}"
	tName     = "name"
	tString   = "string"
	tInteger  = "integer"
	tFloat    = "float"
	tEOF      = "end of template"
)

type token struct {
	kind string // one of the constants above, or the operator itself
	val  string
	pos  pos
}

// operators, longest first so that "//" wins over "/".
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~",
	"[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

var closers = map[byte]byte{'(': ')', '[': ']', '{': '}'}

type lexer struct {
	src       string
	at        int
	line, col int  // of at, from 1 and 0
	lineOpen  bool // the last match ended with a newline: lstrip applies
	out       []token
}

func (l *lexer) pos() pos { return pos{l.line, l.col + 1} }

func (l *lexer) fail(p pos, format string, args ...any) error {
	return &Error{Kind: ErrSyntax, Line: p.line, Col: p.col, Msg: brief(fmt.Sprintf(format, args...))}
}

// skip moves n bytes on, counting lines.
func (l *lexer) skip(n int) {
	chunk := l.src[l.at : l.at+n]
	if k := strings.Count(chunk, "\n"); k > 0 {
		l.line += k
		l.col = 0
	}
	l.col += utf8.RuneCountInString(chunk[strings.LastIndexByte(chunk, '\n')+1:])
	l.at += n
	if n > 0 {
		l.lineOpen = chunk[n-1] == '\n'
	}
}

func (l *lexer) emit(kind, val string, p pos) { l.out = append(l.out, token{kind, val, p}) }

// lex turns a source into tokens as Jinja2's lexer does with trim_blocks and
// lstrip_blocks set and keep_trailing_newline off.
func lex(source string) ([]token, error) {
	source = strings.ToValidUTF8(source, "\uFFFD")
	source = strings.ReplaceAll(source, "\r\n", "\n")
	source = strings.ReplaceAll(source, "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	l := &lexer{src: source, line: 1, lineOpen: true}
	for l.at < len(l.src) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.emit(tEOF, "", l.pos())
	return l.out, nil
}

// root reads text up to the next tag and then that tag.
func (l *lexer) root() error {
	rest := l.src[l.at:]
	n, kind := nextTag(rest)
	if n < 0 {
		l.emit(tData, rest, l.pos())
		l.skip(len(rest))
		return nil
	}
	tag := rest[n:]
	sign, tagLen := byte(0), 2
	if len(tag) > 2 && (tag[2] == '-' || tag[2] == '+') {
		sign, tagLen = tag[2], 3
	}
	text := rest[:n]
	kept := stripBefore(text, sign, kind, l.lineOpen)
	if kept != "" {
		l.emit(tData, kept, l.pos())
	}
	l.skip(n)
	if kind == '%' {
		if m := rawBegin(tag, tagLen); m > 0 {
			l.skip(m)
			return l.raw()
		}
	}
	p := l.pos()
	l.skip(tagLen)
	switch kind {
	case '#':
		return l.comment(p)
	case '{':
		l.emit(tVarBegin, "", p)
		return l.inside(tVarEnd, p)
	}
	l.emit(tBlkBegin, "", p)
	return l.inside(tBlkEnd, p)
}

// nextTag finds the first {{, {% or {# and says which by its second byte.
func nextTag(s string) (int, byte) {
	for i := 0; ; {
		k := strings.IndexByte(s[i:], '{')
		if k < 0 || i+k+1 >= len(s) {
			return -1, 0
		}
		i += k
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i, c
		}
		i++
	}
}

// stripBefore applies "-" and lstrip_blocks to the text in front of a tag.
func stripBefore(text string, sign, kind byte, lineOpen bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == '+' || kind == '{' {
		return text
	}
	start := strings.LastIndexByte(text, '\n') + 1
	if (start > 0 || lineOpen) && strings.TrimFunc(text[start:], isSpace) == "" {
		return text[:start]
	}
	return text
}

func spaces(s string) int { return len(s) - len(strings.TrimLeftFunc(s, isSpace)) }

// rawBegin gives the length of a raw tag at the start of s, or 0.
func rawBegin(s string, n int) int {
	n += spaces(s[n:])
	if !strings.HasPrefix(s[n:], "raw") {
		return 0
	}
	n += 3
	n += spaces(s[n:])
	if strings.HasPrefix(s[n:], "-%}") {
		n += 3
		return n + spaces(s[n:])
	}
	if strings.HasPrefix(s[n:], "%}") {
		return n + 2
	}
	return 0
}

// raw reads up to endraw; what it holds is data.
func (l *lexer) raw() error {
	p := l.pos()
	rest := l.src[l.at:]
	for i := 0; ; i += 2 {
		k := strings.Index(rest[i:], "{%")
		if k < 0 {
			return l.fail(p, "missing end of raw directive")
		}
		i += k
		m, sign := i+2, byte(0)
		if m < len(rest) && (rest[m] == '-' || rest[m] == '+') {
			sign = rest[m]
			m++
		}
		m += spaces(rest[m:])
		if !strings.HasPrefix(rest[m:], "endraw") {
			continue
		}
		m += len("endraw")
		m += spaces(rest[m:])
		end := tagEnd(rest[m:], "%}", true)
		if end == 0 {
			continue
		}
		if kept := stripBefore(rest[:i], sign, '%', l.lineOpen); kept != "" {
			l.emit(tData, kept, p)
		}
		l.skip(m + end)
		return nil
	}
}

// tagEnd gives the length of an end of tag at the start of s with the
// whitespace that goes with it, or 0.
func tagEnd(s, closer string, trim bool) int {
	switch {
	case strings.HasPrefix(s, "-"+closer):
		return 3 + spaces(s[3:])
	case trim && strings.HasPrefix(s, "+"+closer):
		return 3
	case strings.HasPrefix(s, closer):
		if trim && len(s) > 2 && s[2] == '\n' {
			return 3
		}
		return 2
	}
	return 0
}

func (l *lexer) comment(p pos) error {
	rest := l.src[l.at:]
	k := strings.Index(rest, "#}")
	if k < 0 {
		return l.fail(p, "missing end of comment tag")
	}
	if k > 0 && (rest[k-1] == '-' || rest[k-1] == '+') {
		k--
	}
	l.skip(k + tagEnd(rest[k:], "#}", true))
	return nil
}

// inside reads the tokens of an expression up to its closing tag.
func (l *lexer) inside(closer string, open pos) error {
	var stack []byte
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		if len(stack) == 0 {
			if n := tagEnd(rest, closer, closer == tBlkEnd); n > 0 {
				l.emit(closer, "", l.pos())
				l.skip(n)
				return nil
			}
		}
		if n := spaces(rest); n > 0 {
			l.skip(n)
			continue
		}
		var err error
		if stack, err = l.lexeme(rest, stack); err != nil {
			return err
		}
	}
	return l.fail(open, "this tag is not closed, expected %q", closer)
}

// maxName bounds the bytes of a name, which is looked up again and again.
const maxName = 1024

// lexeme reads one number, name, string or operator.
func (l *lexer) lexeme(s string, stack []byte) ([]byte, error) {
	p := l.pos()
	if n, kind := number(s); n > 0 {
		l.emit(kind, strings.ReplaceAll(s[:n], "_", ""), p)
		l.skip(n)
		return stack, nil
	}
	if n := identifier(s); n > 0 {
		if n > maxName {
			return nil, l.fail(p, "a name of %d bytes, more than the limit of %d", n, maxName)
		}
		l.emit(tName, s[:n], p)
		l.skip(n)
		return stack, nil
	}
	if s[0] == '\'' || s[0] == '"' {
		n := stringEnd(s)
		if n == 0 {
			return nil, l.fail(p, "this string is not closed")
		}
		val, err := unescape(s[1 : n-1])
		if err != nil {
			return nil, l.fail(p, "%v", err)
		}
		l.emit(tString, val, p)
		l.skip(n)
		return stack, nil
	}
	for _, op := range operators {
		if !strings.HasPrefix(s, op) {
			continue
		}
		switch c := op[0]; {
		case closers[c] != 0:
			stack = append(stack, closers[c])
		case c == ')' || c == ']' || c == '}':
			if len(stack) == 0 {
				return nil, l.fail(p, "unexpected %q", op)
			}
			if want := stack[len(stack)-1]; want != c {
				return nil, l.fail(p, "unexpected %q, expected %q", op, string(want))
			}
			stack = stack[:len(stack)-1]
		}
		l.emit(op, "", p)
		l.skip(len(op))
		return stack, nil
	}
	r, _ := utf8.DecodeRuneInString(s)
	return nil, l.fail(p, "unexpected character %q", r)
}

func identifier(s string) int {
	for i, r := range s {
		if r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) || i > 0 && (unicode.IsDigit(r) || unicode.IsMark(r)) {
			continue
		}
		return i
	}
	return len(s)
}

func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return 0
}
