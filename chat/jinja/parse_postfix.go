package jinja

func (p *parser) subscript(x expr) (expr, error) {
	t := p.next()
	if t.kind == "." {
		a := p.next()
		switch a.kind {
		case tName:
			return &attrExpr{t.pos, x, a.val}, nil
		case tInteger:
			n, err := p.numberLit(a)
			return &itemExpr{t.pos, x, n}, err
		}
		return nil, p.fail(a.pos, "expected a name or number after the dot, got %s", describe(a))
	}
	var items []expr
	for !p.is("]") {
		if len(items) > 0 {
			if _, err := p.expect(","); err != nil {
				return nil, err
			}
		}
		i, err := p.subscribed()
		if err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	p.next()
	if len(items) == 1 {
		return &itemExpr{t.pos, x, items[0]}, nil
	}
	return &itemExpr{t.pos, x, &listExpr{t.pos, items, true}}, nil
}

// subscribed parses an index or a slice.
func (p *parser) subscribed() (expr, error) {
	s := &sliceExpr{pos: p.cur().pos}
	parts := []*expr{&s.lo, &s.hi, &s.step}
	for i, part := range parts {
		if !p.is(":") && !p.is("]") && !p.is(",") {
			x, err := p.expression(true)
			if err != nil {
				return nil, err
			}
			*part = x
		}
		if i == 0 && !p.is(":") {
			if s.lo == nil {
				return nil, p.fail(s.pos, "expected an index")
			}
			return s.lo, nil
		}
		if i == 2 || !p.skip(":") {
			break
		}
	}
	return s, nil
}

func (p *parser) call(fn expr) (expr, error) {
	open := p.cur().pos
	args, err := p.arguments()
	return &callExpr{open, fn, args}, err
}

func (p *parser) arguments() (callArgs, error) {
	var a callArgs
	open, err := p.expect("(")
	if err != nil {
		return a, err
	}
	bad := func() error { return p.fail(open.pos, "these arguments are out of order") }
	for !p.is(")") {
		switch t := p.cur(); {
		case t.kind == "*":
			if a.star != nil || a.starstar != nil {
				return a, bad()
			}
			p.next()
			a.star, err = p.expression(true)
		case t.kind == "**":
			if a.starstar != nil {
				return a, bad()
			}
			p.next()
			a.starstar, err = p.expression(true)
		case t.kind == tName && p.look().kind == "=":
			if a.starstar != nil {
				return a, bad()
			}
			p.next()
			p.next()
			a.names = append(a.names, t.val)
			var x expr
			x, err = p.expression(true)
			a.named = append(a.named, x)
		default:
			if a.star != nil || a.starstar != nil || len(a.named) > 0 {
				return a, bad()
			}
			var x expr
			x, err = p.expression(true)
			a.args = append(a.args, x)
		}
		if err != nil {
			return a, err
		}
		if !p.skip(",") {
			break
		}
	}
	_, err = p.expect(")")
	return a, err
}

func (p *parser) filter(x expr) (expr, error) {
	if _, err := p.expect("|"); err != nil {
		return nil, err
	}
	return p.filterName(x)
}

// dotted parses a name that may have dots in it.
func (p *parser) dotted() (token, error) {
	t, err := p.expect(tName)
	for err == nil && p.skip(".") {
		var more token
		more, err = p.expect(tName)
		t.val += "." + more.val
	}
	return t, err
}

func (p *parser) filterName(x expr) (expr, error) {
	t, err := p.dotted()
	if err != nil {
		return nil, err
	}
	f := &filterExpr{pos: t.pos, x: x, name: t.val}
	if p.is("(") {
		f.args, err = p.arguments()
	}
	return f, err
}

func (p *parser) test(x expr) (expr, error) {
	open := p.next().pos
	negated := p.skipWord("not")
	name, err := p.dotted()
	if err != nil {
		return nil, err
	}
	t := &testExpr{pos: open, x: x, name: name.val}
	switch c := p.cur(); c.kind {
	case "(":
		t.args, err = p.arguments()
	case tName, tString, tInteger, tFloat, "[", "{":
		if p.isWord("else") || p.isWord("or") || p.isWord("and") {
			break
		}
		if p.isWord("is") {
			return nil, p.fail(c.pos, "tests cannot be chained with is")
		}
		var arg expr
		if arg, err = p.testArgument(); err == nil {
			t.args.args = []expr{arg}
		}
	}
	if err != nil {
		return nil, err
	}
	if negated {
		return &unaryExpr{open, "not", t}, nil
	}
	return t, nil
}

// testArgument parses the argument of a test without parentheses.
func (p *parser) testArgument() (expr, error) {
	x, err := p.primary()
	for err == nil {
		switch {
		case p.is(".") || p.is("["):
			x, err = p.subscript(x)
		case p.is("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
	}
	return nil, err
}
