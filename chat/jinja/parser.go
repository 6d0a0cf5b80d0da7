package jinja

import "fmt"

// maxNesting bounds how deep expressions and statements may stand inside each
// other, so that neither parsing nor evaluation can exhaust the stack.
const maxNesting = 200

type parser struct {
	toks  []token
	at    int
	depth int
	loops int // open for loops, which break and continue need
	defs  []*macroDef
	reads map[string]bool
}

func (p *parser) cur() token { return p.toks[p.at] }

func (p *parser) look() token {
	if p.at+1 < len(p.toks) {
		return p.toks[p.at+1]
	}
	return p.toks[len(p.toks)-1]
}

func (p *parser) next() token {
	t := p.toks[p.at]
	if p.at+1 < len(p.toks) {
		p.at++
	}
	return t
}

func (p *parser) is(kind string) bool { return p.cur().kind == kind }

func (p *parser) isWord(word string) bool {
	t := p.cur()
	return t.kind == tName && t.val == word
}

func (p *parser) skipWord(word string) bool {
	if p.isWord(word) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skip(kind string) bool {
	if p.is(kind) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(kind string) (token, error) {
	if !p.is(kind) {
		return token{}, p.fail(p.cur().pos, "expected %s, got %s", kind, describe(p.cur()))
	}
	return p.next(), nil
}

func (p *parser) expectWord(word string) error {
	if !p.skipWord(word) {
		return p.fail(p.cur().pos, "expected %q, got %s", word, describe(p.cur()))
	}
	return nil
}

func describe(t token) string {
	switch t.kind {
	case tName:
		return fmt.Sprintf("%q", t.val)
	case tString, tInteger, tFloat, tEOF, tData:
		return t.kind
	}
	return fmt.Sprintf("%q", t.kind)
}

func (p *parser) fail(at pos, format string, args ...any) error {
	return &Error{Kind: ErrSyntax, Line: at.line, Col: at.col, Msg: brief(fmt.Sprintf(format, args...))}
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxNesting {
		return p.fail(p.cur().pos, "nested deeper than %d levels", maxNesting)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// body parses statements up to a tag that starts with one of the ends (at the
// end of the template if there are none) and gives the end that it met.
func (p *parser) body(open pos, ends ...string) ([]stmt, string, error) {
	if err := p.enter(); err != nil {
		return nil, "", err
	}
	defer p.leave()
	var out []stmt
	for {
		t := p.next()
		switch t.kind {
		case tEOF:
			if len(ends) > 0 {
				return nil, "", p.fail(open, "this block is not closed, expected %v", ends)
			}
			return out, "", nil
		case tData:
			out = append(out, &dataStmt{lit(t.val)})
		case tVarBegin:
			x, err := p.tuple(true, false)
			if err != nil {
				return nil, "", err
			}
			if _, err := p.expect(tVarEnd); err != nil {
				return nil, "", err
			}
			out = append(out, &outStmt{x})
		default:
			if word := p.cur(); word.kind == tName {
				for _, e := range ends {
					if word.val == e {
						p.next()
						return out, e, nil
					}
				}
			}
			s, err := p.statement()
			if err != nil {
				return nil, "", err
			}
			if _, err := p.expect(tBlkEnd); err != nil {
				return nil, "", err
			}
			out = append(out, s...)
		}
	}
}

// block parses "%}" and the statements up to the end tag, whose name it eats.
func (p *parser) block(open pos, ends ...string) ([]stmt, string, error) {
	p.skip(":")
	if _, err := p.expect(tBlkEnd); err != nil {
		return nil, "", err
	}
	return p.body(open, ends...)
}

func (p *parser) statement() ([]stmt, error) {
	t := p.next()
	if t.kind != tName {
		return nil, p.fail(t.pos, "expected the name of a tag, got %s", describe(t))
	}
	var s stmt
	var err error
	switch t.val {
	case "if":
		s, err = p.ifTag(t.pos)
	case "for":
		s, err = p.forTag(t.pos)
	case "set":
		s, err = p.setTag(t.pos)
	case "macro":
		s, err = p.macroTag(t.pos)
	case "call":
		s, err = p.callTag(t.pos)
	case "filter":
		s, err = p.filterTag(t.pos)
	case "with":
		s, err = p.withTag(t.pos)
	case "generation", "autoescape", "block":
		s, err = p.scopeTag(t)
	case "print":
		return p.printTag()
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fail(t.pos, "%s outside a loop", t.val)
		}
		s = &jumpStmt{t.val == "break"}
	case "include", "import", "from", "extends":
		return nil, p.fail(t.pos, "%s: a chat template stands alone and cannot load others", t.val)
	default:
		return nil, p.fail(t.pos, "unknown tag %q", t.val)
	}
	if err != nil {
		return nil, err
	}
	return []stmt{s}, nil
}

func (p *parser) ifTag(open pos) (stmt, error) {
	s := &ifStmt{}
	for {
		test, err := p.tuple(false, false)
		if err != nil {
			return nil, err
		}
		body, end, err := p.block(open, "elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.tests = append(s.tests, test)
		s.bodies = append(s.bodies, body)
		if end == "elif" {
			continue
		}
		if end == "else" {
			s.orelse, _, err = p.block(open, "endif")
		}
		return s, err
	}
}

func (p *parser) forTag(open pos) (stmt, error) {
	s := &forStmt{pos: open}
	var err error
	if s.target, err = p.target(false, "in"); err != nil {
		return nil, err
	}
	if err = p.expectWord("in"); err != nil {
		return nil, err
	}
	if s.iter, err = p.tuple(false, false, "recursive"); err != nil {
		return nil, err
	}
	if p.skipWord("if") {
		if s.test, err = p.expression(true); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipWord("recursive")
	var end string
	p.loops++
	s.body, end, err = p.block(open, "endfor", "else")
	p.loops--
	if err == nil && end == "else" {
		s.orelse, _, err = p.block(open, "endfor")
	}
	return s, err
}

func (p *parser) setTag(open pos) (stmt, error) {
	target, err := p.target(true)
	if err != nil {
		return nil, err
	}
	if p.skip("=") {
		x, err := p.tuple(true, false)
		return &setStmt{open, target, x}, err
	}
	s := &setBlockStmt{pos: open, target: target}
	if s.filter, err = p.filterChain(); err != nil {
		return nil, err
	}
	s.body, _, err = p.block(open, "endset")
	return s, err
}

// filterChain parses the filters of a block set: none, or "| a | b".
func (p *parser) filterChain() (*filterExpr, error) {
	var x expr
	for p.is("|") {
		var err error
		if x, err = p.filter(x); err != nil {
			return nil, err
		}
	}
	f, _ := x.(*filterExpr)
	return f, nil
}
