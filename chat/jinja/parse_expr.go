package jinja

import (
	"math/big"
	"strconv"
)

// tuple parses an expression, or several with commas between as a tuple.
func (p *parser) tuple(cond, parens bool, ends ...string) (expr, error) {
	open := p.cur().pos
	var items []expr
	tuple := false
	for {
		if p.is(tVarEnd) || p.is(tBlkEnd) || p.is(")") || p.atWord(ends) {
			break
		}
		x, err := p.expression(cond)
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
		if len(items) == 1 {
			return items[0], nil
		}
		if !parens {
			return nil, p.fail(open, "expected an expression, got %s", describe(p.cur()))
		}
	}
	return &listExpr{open, items, true}, nil
}

func (p *parser) expression(cond bool) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	open := p.cur().pos
	x, err := p.logic("or")
	for err == nil && cond && p.skipWord("if") {
		c := &condExpr{pos: open, yes: x}
		if c.test, err = p.logic("or"); err != nil {
			return nil, err
		}
		if p.skipWord("else") {
			c.no, err = p.expression(true)
		}
		x = c
	}
	return x, err
}

// logic parses "or" over "and" over "not".
func (p *parser) logic(word string) (expr, error) {
	operand := p.not
	if word == "or" {
		operand = func() (expr, error) { return p.logic("and") }
	}
	x, err := operand()
	for err == nil && p.isWord(word) {
		open := p.next().pos
		var y expr
		y, err = operand()
		x = &logicExpr{open, word == "or", x, y}
	}
	return x, err
}

func (p *parser) not() (expr, error) {
	if !p.isWord("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	open := p.next().pos
	x, err := p.not()
	return &unaryExpr{open, "not", x}, err
}

func (p *parser) compare() (expr, error) {
	open := p.cur().pos
	x, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &compareExpr{pos: open, x: x}
	for {
		op := ""
		switch t := p.cur(); t.kind {
		case "==", "!=", "<", "<=", ">", ">=":
			op = t.kind
		case tName:
			if t.val == "in" {
				op = "in"
			} else if n := p.look(); t.val == "not" && n.kind == tName && n.val == "in" {
				op = "not in"
				p.next()
			}
		}
		if op == "" {
			break
		}
		p.next()
		y, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops, c.ys = append(c.ops, op), append(c.ys, y)
	}
	if len(c.ops) == 0 {
		return x, nil
	}
	return c, nil
}

// binary parses a left-associative chain of the operators.
func (p *parser) binary(operand func() (expr, error), ops ...string) (expr, error) {
	x, err := operand()
	for err == nil {
		op := ""
		for _, o := range ops {
			if p.is(o) {
				op = o
			}
		}
		if op == "" {
			break
		}
		open := p.next().pos
		var y expr
		y, err = operand()
		x = &binaryExpr{open, op, x, y}
	}
	return x, err
}

func (p *parser) sum() (expr, error) { return p.binary(p.concat, "+", "-") }

func (p *parser) concat() (expr, error) {
	open := p.cur().pos
	x, err := p.product()
	if err != nil || !p.is("~") {
		return x, err
	}
	c := &concatExpr{open, []expr{x}}
	for p.skip("~") {
		if x, err = p.product(); err != nil {
			return nil, err
		}
		c.parts = append(c.parts, x)
	}
	return c, nil
}

func (p *parser) product() (expr, error) { return p.binary(p.power, "*", "/", "//", "%") }

func (p *parser) power() (expr, error) {
	return p.binary(func() (expr, error) { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) (expr, error) {
	var x expr
	var err error
	if t := p.cur(); t.kind == "-" || t.kind == "+" {
		if err = p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		p.next()
		x, err = p.unary(false)
		x = &unaryExpr{t.pos, t.kind, x}
	} else {
		x, err = p.primary()
	}
	if err != nil {
		return nil, err
	}
	for {
		switch {
		case p.is(".") || p.is("["):
			x, err = p.subscript(x)
		case p.is("("):
			x, err = p.call(x)
		case filters && p.is("|"):
			x, err = p.filter(x)
		case filters && p.isWord("is"):
			x, err = p.test(x)
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) primary() (expr, error) {
	t := p.next()
	switch t.kind {
	case tName:
		switch t.val {
		case "true", "True":
			return &constExpr{t.pos, true}, nil
		case "false", "False":
			return &constExpr{t.pos, false}, nil
		case "none", "None":
			return &constExpr{t.pos, None{}}, nil
		}
		p.note(t.val)
		return &nameExpr{t.pos, t.val}, nil
	case tString:
		text := t.val
		for p.is(tString) {
			text += p.next().val
		}
		return &constExpr{t.pos, lit(text)}, nil
	case tInteger, tFloat:
		return p.numberLit(t)
	case "(":
		x, err := p.tuple(true, true)
		if err != nil {
			return nil, err
		}
		_, err = p.expect(")")
		return x, err
	case "[":
		return p.list(t.pos)
	case "{":
		return p.dict(t.pos)
	}
	return nil, p.fail(t.pos, "unexpected %s", describe(t))
}

func (p *parser) numberLit(t token) (expr, error) {
	if t.kind == tFloat {
		f, _ := strconv.ParseFloat(t.val, 64) // out of range is inf, as in Python
		return &constExpr{t.pos, f}, nil
	}
	if len(t.val) > maxIntDigits {
		return nil, p.fail(t.pos, "integer of more than %d digits", maxIntDigits)
	}
	base := 10
	if len(t.val) > 2 && !isDec(t.val[1]) {
		base = 0
	}
	n, ok := new(big.Int).SetString(t.val, base)
	if !ok {
		return nil, p.fail(t.pos, "bad integer %s", t.val)
	}
	return &constExpr{t.pos, normInt(n)}, nil
}

func (p *parser) list(open pos) (expr, error) {
	l := &listExpr{pos: open}
	for !p.is("]") {
		x, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, x)
		if !p.skip(",") {
			break
		}
	}
	_, err := p.expect("]")
	return l, err
}

func (p *parser) dict(open pos) (expr, error) {
	d := &dictExpr{pos: open}
	for !p.is("}") {
		k, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		if _, err := p.expect(":"); err != nil {
			return nil, err
		}
		v, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		d.keys, d.vals = append(d.keys, k), append(d.vals, v)
		if !p.skip(",") {
			break
		}
	}
	_, err := p.expect("}")
	return d, err
}
