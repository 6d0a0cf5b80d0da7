package jinja

func (p *parser) macroTag(open pos) (stmt, error) {
	s := &macroStmt{pos: open}
	name, err := p.expect(tName)
	if err != nil {
		return nil, err
	}
	s.name = name.val
	if err := p.signature(&s.macroDef); err != nil {
		return nil, err
	}
	return s, p.function(open, &s.macroDef, "endmacro")
}

// function parses a body that a loop outside cannot be broken from.
func (p *parser) function(open pos, d *macroDef, end string) error {
	loops := p.loops
	p.loops = 0
	p.defs = append(p.defs, d)
	var err error
	d.body, _, err = p.block(open, end)
	p.defs = p.defs[:len(p.defs)-1]
	p.loops = loops
	return err
}

// note records the use of a name that macros get for free.
func (p *parser) note(name string) {
	p.reads[name] = true
	for _, d := range p.defs {
		switch name {
		case "caller":
			d.uses.caller = true
		case "kwargs":
			d.uses.kwargs = true
		case "varargs":
			d.uses.varargs = true
		}
	}
}

func (p *parser) signature(d *macroDef) error {
	if _, err := p.expect("("); err != nil {
		return err
	}
	for !p.is(")") {
		if len(d.params) > 0 {
			if _, err := p.expect(","); err != nil {
				return err
			}
		}
		t, err := p.expect(tName)
		if err != nil {
			return err
		}
		if p.skip("=") {
			x, err := p.expression(true)
			if err != nil {
				return err
			}
			d.defaults = append(d.defaults, x)
		} else if len(d.defaults) > 0 {
			return p.fail(t.pos, "parameter %q without a default follows one with a default", t.val)
		}
		d.params = append(d.params, t.val)
	}
	p.next()
	return nil
}

func (p *parser) callTag(open pos) (stmt, error) {
	s := &callStmt{pos: open}
	s.name = "caller"
	if p.is("(") {
		if err := p.signature(&s.macroDef); err != nil {
			return nil, err
		}
	}
	at := p.cur().pos
	x, err := p.expression(true)
	if err != nil {
		return nil, err
	}
	call, ok := x.(*callExpr)
	if !ok {
		return nil, p.fail(at, "expected a call")
	}
	s.call = call
	return s, p.function(open, &s.macroDef, "endcall")
}

func (p *parser) filterTag(open pos) (stmt, error) {
	x, err := p.filterName(nil)
	for err == nil && p.is("|") {
		x, err = p.filter(x)
	}
	if err != nil {
		return nil, err
	}
	s := &filterStmt{pos: open, filter: x.(*filterExpr)}
	s.body, _, err = p.block(open, "endfilter")
	return s, err
}

func (p *parser) withTag(open pos) (stmt, error) {
	s := &withStmt{pos: open}
	for !p.is(tBlkEnd) {
		if len(s.targets) > 0 {
			if _, err := p.expect(","); err != nil {
				return nil, err
			}
		}
		t, err := p.target(false)
		if err != nil {
			return nil, err
		}
		if _, err := p.expect("="); err != nil {
			return nil, err
		}
		x, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		s.targets, s.vals = append(s.targets, t), append(s.vals, x)
	}
	var err error
	s.body, _, err = p.block(open, "endwith")
	return s, err
}

// scopeTag parses the tags that only open a scope here: generation (which marks
// the model's replies in training), autoescape (never on) and block (there is
// no inheritance).
func (p *parser) scopeTag(t token) (stmt, error) {
	switch t.val {
	case "autoescape":
		if _, err := p.expression(true); err != nil {
			return nil, err
		}
	case "block":
		if _, err := p.expect(tName); err != nil {
			return nil, err
		}
		p.skipWord("scoped")
	}
	s := &scopeStmt{pos: t.pos}
	var err error
	s.body, _, err = p.block(t.pos, "end"+t.val)
	if err == nil && t.val == "block" && p.is(tName) {
		p.next()
	}
	return s, err
}

func (p *parser) printTag() ([]stmt, error) {
	var out []stmt
	for !p.is(tBlkEnd) {
		if len(out) > 0 {
			if _, err := p.expect(","); err != nil {
				return nil, err
			}
		}
		x, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		out = append(out, &outStmt{x})
	}
	return out, nil
}

// target parses what an assignment or a loop may assign to: names, tuples of
// names and, if ns is set, attributes of namespaces.
func (p *parser) target(ns bool, ends ...string) (expr, error) {
	var items []expr
	open, tuple := p.cur().pos, false
	for {
		if len(items) > 0 && (p.is("=") || p.is(tBlkEnd) || p.is(")") || p.atWord(ends)) {
			break
		}
		x, err := p.targetItem(ns)
		if err != nil {
			return nil, err
		}
		items = append(items, x)
		if !p.skip(",") {
			break
		}
		tuple = true
	}
	if !tuple {
		return items[0], nil
	}
	return &listExpr{open, items, true}, nil
}

func (p *parser) atWord(words []string) bool {
	for _, w := range words {
		if p.isWord(w) {
			return true
		}
	}
	return false
}

func (p *parser) targetItem(ns bool) (expr, error) {
	t := p.next()
	if t.kind == "(" {
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		x, err := p.target(ns)
		if err != nil {
			return nil, err
		}
		_, err = p.expect(")")
		return x, err
	}
	if t.kind != tName || reserved[t.val] {
		return nil, p.fail(t.pos, "cannot assign to %s", describe(t))
	}
	if ns && p.skip(".") {
		attr, err := p.expect(tName)
		return &nsTarget{t.pos, t.val, attr.val}, err
	}
	return &nameExpr{t.pos, t.val}, nil
}

var reserved = map[string]bool{"true": true, "false": true, "none": true, "True": true, "False": true, "None": true}
