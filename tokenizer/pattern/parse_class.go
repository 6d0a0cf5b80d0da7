package pattern

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// escape parses what follows a backslash outside a class.
func (p *parser) escape() (*node, error) {
	if !p.more() {
		return nil, p.errorf("the pattern ends in a backslash")
	}
	asserts := map[byte]assertKind{'b': assertBoundary, 'B': assertNoBoundary, 'A': assertTextStart, 'z': assertTextEnd, 'Z': assertTextEndOrNewline}
	if kind, ok := asserts[p.src[p.pos]]; ok {
		p.pos++
		return &node{kind: nodeAssert, assert: kind}, nil
	}
	s, r, err := p.escaped(false)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return &node{kind: nodeSet, set: s}, nil
	}
	return p.literal(r), nil
}

// escaped parses an escape that stands for a set or for one rune, within brackets or outside of them.
func (p *parser) escaped(inside bool) (*set, rune, error) {
	if !p.more() {
		return nil, 0, p.errorf("the pattern ends in a backslash")
	}
	switch c := p.rune(); c {
	case 's':
		return &set{mask: maskSpace}, 0, nil
	case 'S':
		return &set{mask: maskSpace, negated: true}, 0, nil
	case 'd':
		return &set{mask: 1 << catNd}, 0, nil
	case 'D':
		return &set{mask: 1 << catNd, negated: true}, 0, nil
	case 'w':
		return wordSet(inside), 0, nil
	case 'W':
		return &set{subs: []*set{wordSet(inside)}, negated: true}, 0, nil
	case 'p', 'P':
		s, err := p.property(inside)
		if err == nil && c == 'P' {
			s = &set{negated: true, subs: []*set{s}}
		}
		return s, 0, err
	case 'h':
		return bracketNames["xdigit"], 0, nil
	case 'H':
		return &set{subs: []*set{bracketNames["xdigit"]}, negated: true}, 0, nil
	case 'n':
		return nil, '\n', nil
	case 't':
		return nil, '\t', nil
	case 'r':
		return nil, '\r', nil
	case 'f':
		return nil, '\f', nil
	case 'v':
		return nil, '\v', nil
	case 'a':
		return nil, '\a', nil
	case 'e':
		return nil, 0x1b, nil
	case '0':
		return nil, 0, nil
	case 'x', 'u':
		r, err := p.hex(c)
		return nil, r, err
	default:
		if c < utf8.RuneSelf && (c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			return nil, 0, p.errorf("escape \\%c is not supported", c)
		}
		return nil, c, nil
	}
}

func (p *parser) property(inside bool) (*set, error) {
	name := ""
	switch {
	case p.eat("{"):
		end := strings.IndexByte(p.src[p.pos:], '}')
		if end < 0 {
			return nil, p.errorf("\\p{ is not closed")
		}
		name = p.src[p.pos : p.pos+end]
		p.pos += end + 1
	case p.more():
		name = string(p.rune())
	}
	s, err := property(name, inside)
	if err != nil {
		return nil, p.errorf("%v", err)
	}
	return s, nil
}

// hex parses the digits of \xHH, \x{H…} or \uHHHH.
func (p *parser) hex(kind rune) (rune, error) {
	digits := 4
	if kind == 'x' {
		digits = 2
	}
	rest := p.src[p.pos:]
	skip := 0
	if strings.HasPrefix(rest, "{") {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return 0, p.errorf("\\%c{ is not closed", kind)
		}
		rest, digits, skip = rest[1:], end-1, 2
	}
	if len(rest) < digits {
		return 0, p.errorf("\\%c lacks digits", kind)
	}
	v, err := strconv.ParseUint(rest[:digits], 16, 21)
	if err != nil || v > utf8.MaxRune {
		return 0, p.errorf("\\%c%s is not a code point", kind, rest[:digits])
	}
	p.pos += digits + skip
	return rune(v), nil
}

// class parses a bracketed class; the opening bracket is behind.
func (p *parser) class() (*set, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("classes nest deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	whole := &set{}
	whole.negated = p.eat("^")
	part := &set{fold: p.fold}
	parts := []*set{part}
	for first := true; ; first = false {
		switch {
		case !p.more():
			return nil, p.errorf("a class is not closed")
		case !first && p.eat("]"):
			whole.subs, whole.with = parts[:1], parts[1:]
			return whole, nil
		case p.eat("&&"):
			part = &set{fold: p.fold}
			parts = append(parts, part)
			continue
		}
		if err := p.classItem(part); err != nil {
			return nil, err
		}
	}
}

// classItem parses one member of a class into s: a nested class, an escape, a range or a rune.
func (p *parser) classItem(s *set) error {
	if p.eat("[:") {
		end := strings.Index(p.src[p.pos:], ":]")
		if end < 0 {
			return p.errorf("[: is not closed")
		}
		name, negated := strings.CutPrefix(p.src[p.pos:p.pos+end], "^")
		named := bracketNames[name]
		if named == nil {
			return p.errorf("unknown class [:%s:]", name)
		}
		p.pos += end + 2
		s.subs = append(s.subs, &set{subs: []*set{named}, negated: negated})
		return nil
	}
	if p.eat("[") {
		sub, err := p.class()
		s.subs = append(s.subs, sub)
		return err
	}
	sub, lo, err := p.classRune()
	if err != nil {
		return err
	}
	if sub != nil {
		s.subs = append(s.subs, sub)
		return nil
	}
	rest := p.src[p.pos:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' || rest[1] == '[' {
		s.addRune(lo)
		return nil
	}
	p.pos++
	sub, hi, err := p.classRune()
	if err != nil {
		return err
	}
	if sub != nil { // "a-\d": the dash is a literal
		s.addRune(lo)
		s.addRune('-')
		s.subs = append(s.subs, sub)
		return nil
	}
	if hi < lo {
		return p.errorf("range %q-%q falls", lo, hi)
	}
	s.ranges = append(s.ranges, runeRange{lo, hi})
	return nil
}

func (p *parser) classRune() (*set, rune, error) {
	if !p.more() {
		return nil, 0, p.errorf("a class is not closed")
	}
	if !p.eat(`\`) {
		return nil, p.rune(), nil
	}
	if p.eat("b") {
		return nil, '\b', nil
	}
	return p.escaped(true)
}
