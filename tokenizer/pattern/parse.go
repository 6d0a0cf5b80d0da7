package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type nodeKind uint8

const (
	nodeEmpty nodeKind = iota
	nodeSet
	nodeConcat
	nodeAlternate
	nodeRepeat
	nodeLook   // lookahead
	nodeBehind // lookbehind of one character
	nodeAssert
)

type assertKind uint8

const (
	assertLineStart assertKind = iota
	assertLineEnd
	assertTextStart
	assertTextEnd
	assertTextEndOrNewline
	assertBoundary
	assertNoBoundary
)

type repeatMode uint8

const (
	greedy repeatMode = iota
	lazy
	possessive
)

type node struct {
	kind     nodeKind
	set      *set
	subs     []*node
	min, max int // nodeRepeat; max < 0 is unbounded
	mode     repeatMode
	negated  bool
	assert   assertKind
}

// Limits on what a file may ask: well above any pattern in use.
const (
	maxPattern = 1 << 16 // bytes
	maxDepth   = 64      // nested groups and classes
	maxRepeat  = 4096    // a repeat's count
)

type parser struct {
	src   string
	pos   int
	depth int
	fold  bool
}

func parse(src string) (*node, error) {
	if len(src) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes is longer than %d", len(src), maxPattern)
	}
	if !utf8.ValidString(src) {
		return nil, fmt.Errorf("pattern is not valid UTF-8")
	}
	p := &parser{src: src}
	n, err := p.alternation()
	if err == nil && p.pos < len(p.src) {
		err = p.errorf("unexpected %q", p.src[p.pos])
	}
	return n, err
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %s", p.pos, fmt.Sprintf(format, args...))
}

func (p *parser) more() bool { return p.pos < len(p.src) }

// eat consumes prefix if the source goes on with it.
func (p *parser) eat(prefix string) bool {
	if strings.HasPrefix(p.src[p.pos:], prefix) {
		p.pos += len(prefix)
		return true
	}
	return false
}

func (p *parser) rune() rune {
	r, w := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += w
	return r
}

// alternation parses a|b|… up to the end or a closing parenthesis. Flags set inside end with it.
func (p *parser) alternation() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("groups nest deeper than %d", maxDepth)
	}
	fold := p.fold
	defer func() { p.depth--; p.fold = fold }()
	alt := &node{kind: nodeAlternate}
	for {
		n, err := p.concat()
		if err != nil {
			return nil, err
		}
		alt.subs = append(alt.subs, n)
		if !p.eat("|") {
			break
		}
	}
	if len(alt.subs) == 1 {
		return alt.subs[0], nil
	}
	return alt, nil
}

func (p *parser) concat() (*node, error) {
	cat := &node{kind: nodeConcat}
	for p.more() && p.src[p.pos] != '|' && p.src[p.pos] != ')' {
		n, err := p.repeated()
		if err != nil {
			return nil, err
		}
		if n != nil {
			cat.subs = append(cat.subs, n)
		}
	}
	switch len(cat.subs) {
	case 0:
		return &node{kind: nodeEmpty}, nil
	case 1:
		return cat.subs[0], nil
	}
	return cat, nil
}

// repeated parses an atom and the quantifiers behind it.
func (p *parser) repeated() (*node, error) {
	n, err := p.atom()
	if err != nil || n == nil {
		return n, err
	}
	for p.more() {
		lo, hi, braces, ok, err := p.quantifier()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if n.kind == nodeLook || n.kind == nodeBehind || n.kind == nodeAssert {
			return nil, p.errorf("a repeat of an assertion is not supported")
		}
		r := &node{kind: nodeRepeat, subs: []*node{n}, min: lo, max: hi}
		switch {
		case p.eat("?"):
			r.mode = lazy
		case !braces && p.eat("+"): // behind braces Ruby syntax reads + as one more repeat
			r.mode = possessive
		}
		n = r
	}
	return n, nil
}

// quantifier parses *, +, ?, {n}, {n,}, {,m} or {n,m}. A brace that is none of these is a literal.
func (p *parser) quantifier() (lo, hi int, braces, ok bool, err error) {
	switch {
	case p.eat("*"):
		return 0, -1, false, true, nil
	case p.eat("+"):
		return 1, -1, false, true, nil
	case p.eat("?"):
		return 0, 1, false, true, nil
	case p.src[p.pos] != '{':
		return 0, 0, false, false, nil
	}
	end := strings.IndexByte(p.src[p.pos:], '}')
	if end < 0 {
		return 0, 0, false, false, nil
	}
	low, high, comma := strings.Cut(p.src[p.pos+1:p.pos+end], ",")
	if !comma {
		high = low
	}
	lo, hi = 0, -1
	if low != "" {
		if lo, err = strconv.Atoi(low); err != nil || lo < 0 {
			return 0, 0, false, false, nil
		}
	}
	if high != "" {
		if hi, err = strconv.Atoi(high); err != nil || hi < 0 {
			return 0, 0, false, false, nil
		}
	}
	if low == "" && high == "" {
		return 0, 0, false, false, nil
	}
	if lo > maxRepeat || hi > maxRepeat || hi >= 0 && lo > hi {
		return 0, 0, false, false, p.errorf("bad repeat {%s}: counts go up to %d and must not fall", p.src[p.pos+1:p.pos+end], maxRepeat)
	}
	p.pos += end + 1
	return lo, hi, true, true, nil
}

func (p *parser) atom() (*node, error) {
	switch {
	case p.eat("("):
		return p.group()
	case p.eat("["):
		s, err := p.class()
		if err != nil {
			return nil, err
		}
		return &node{kind: nodeSet, set: s}, nil
	case p.eat("^"):
		return &node{kind: nodeAssert, assert: assertLineStart}, nil
	case p.eat("$"):
		return &node{kind: nodeAssert, assert: assertLineEnd}, nil
	case p.eat("."):
		s := &set{negated: true}
		s.addRune('\n')
		return &node{kind: nodeSet, set: s}, nil
	case p.eat(`\`):
		return p.escape()
	}
	switch c := p.src[p.pos]; c {
	case '*', '+', '?':
		return nil, p.errorf("%q repeats nothing", c)
	}
	return p.literal(p.rune()), nil
}

func (p *parser) literal(r rune) *node {
	s := &set{fold: p.fold}
	s.addRune(r)
	return &node{kind: nodeSet, set: s}
}

// group parses what follows an opening parenthesis. It returns nil for a group that only sets flags.
func (p *parser) group() (*node, error) {
	var wrap *node
	fold := p.fold
	switch {
	case p.eat("?:"):
	case p.eat("?="):
		wrap = &node{kind: nodeLook}
	case p.eat("?!"):
		wrap = &node{kind: nodeLook, negated: true}
	case p.eat("?<="):
		wrap = &node{kind: nodeBehind}
	case p.eat("?<!"):
		wrap = &node{kind: nodeBehind, negated: true}
	case p.eat("?i:"):
		p.fold = true
	case p.eat("?-i:"):
		p.fold = false
	case p.eat("?i)"):
		p.fold = true
		return nil, nil
	case p.eat("?-i)"):
		p.fold = false
		return nil, nil
	case p.eat("?"):
		return nil, p.errorf("group (?%.8s… is not supported", p.src[p.pos:])
	}
	n, err := p.alternation()
	p.fold = fold
	if err != nil {
		return nil, err
	}
	if !p.eat(")") {
		return nil, p.errorf("a group is not closed")
	}
	if wrap == nil {
		return n, nil
	}
	wrap.subs = []*node{n}
	if wrap.kind == nodeBehind && asSet(n) == nil {
		return nil, p.errorf("a lookbehind of more than one character is not supported")
	}
	return wrap, nil
}

// asSet returns the set of a node that matches exactly one character, or nil.
func asSet(n *node) *set {
	switch n.kind {
	case nodeSet:
		return n.set
	case nodeAlternate:
		s := &set{}
		for _, sub := range n.subs {
			m := asSet(sub)
			if m == nil {
				return nil
			}
			s.subs = append(s.subs, m)
		}
		return s
	}
	return nil
}
