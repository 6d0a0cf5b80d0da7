package jinja

// eval evaluates a node; an error gets the place of the innermost node.
func (r *run) eval(x expr, sc *scope) (Value, error) {
	if err := r.enter(); err != nil {
		return nil, at(x.where(), err)
	}
	v, err := x.eval(r, sc)
	r.leave()
	if err != nil {
		return nil, at(x.where(), err)
	}
	return v, nil
}

func (c *constExpr) eval(r *run, sc *scope) (Value, error) { return c.v, nil }

func (n *nameExpr) eval(r *run, sc *scope) (Value, error) {
	if v, ok := sc.get(n.name); ok {
		return v, nil
	}
	return undefined("'" + n.name + "' is undefined"), nil
}

func (l *listExpr) eval(r *run, sc *scope) (Value, error) {
	if err := r.list(len(l.items)); err != nil {
		return nil, err
	}
	out := newList(make([]Value, len(l.items)))
	if l.tuple {
		out.kind = kindTuple
	}
	for i, x := range l.items {
		v, err := r.eval(x, sc)
		if err != nil {
			return nil, err
		}
		out.items[i] = v
	}
	return out, nil
}

func (d *dictExpr) eval(r *run, sc *scope) (Value, error) {
	if err := r.list(2 * len(d.keys)); err != nil {
		return nil, err
	}
	out := NewDict()
	for i, x := range d.keys {
		k, err := r.eval(x, sc)
		if err != nil {
			return nil, err
		}
		v, err := r.eval(d.vals[i], sc)
		if err != nil {
			return nil, err
		}
		if err := r.put(out, k, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (a *attrExpr) eval(r *run, sc *scope) (Value, error) {
	x, err := r.eval(a.x, sc)
	if err != nil {
		return nil, err
	}
	return r.attr(x, a.name)
}

func (i *itemExpr) eval(r *run, sc *scope) (Value, error) {
	x, err := r.eval(i.x, sc)
	if err != nil {
		return nil, err
	}
	if s, ok := i.index.(*sliceExpr); ok {
		return s.apply(r, sc, x)
	}
	k, err := r.eval(i.index, sc)
	if err != nil {
		return nil, err
	}
	return r.item(x, k)
}

func (s *sliceExpr) eval(r *run, sc *scope) (Value, error) {
	return nil, errorf("a slice stands alone between brackets")
}

func (f *filterExpr) eval(r *run, sc *scope) (Value, error) {
	x, err := r.eval(f.x, sc)
	if err != nil {
		return nil, err
	}
	return f.run(r, sc, x)
}

// apply runs the chain of filters of a block over its text.
func (f *filterExpr) apply(r *run, sc *scope, text Str) (Value, error) {
	var v Value = text
	if inner, ok := f.x.(*filterExpr); ok {
		var err error
		if v, err = inner.apply(r, sc, text); err != nil {
			return nil, err
		}
	}
	v, err := f.run(r, sc, v)
	return v, at(f.pos, err)
}

func (f *filterExpr) run(r *run, sc *scope, v Value) (Value, error) {
	fn, ok := r.filters[f.name]
	if !ok {
		return nil, errorf("there is no filter named %q", f.name)
	}
	a, err := r.args(&f.args, sc)
	if err != nil {
		return nil, err
	}
	return r.filter(fn, v, a)
}

func (t *testExpr) eval(r *run, sc *scope) (Value, error) {
	x, err := r.eval(t.x, sc)
	if err != nil {
		return nil, err
	}
	fn, ok := r.tests[t.name]
	if !ok {
		return nil, errorf("there is no test named %q", t.name)
	}
	a, err := r.args(&t.args, sc)
	if err != nil {
		return nil, err
	}
	return r.test(fn, x, a)
}

// filter and test pay for what a filter or a test may read.
func (r *run) filter(fn filterFunc, v Value, a *args) (Value, error) {
	if err := r.touch(v); err != nil {
		return nil, err
	}
	if err := r.given(a); err != nil {
		return nil, err
	}
	return fn(r, v, a)
}

func (r *run) test(fn testFunc, v Value, a *args) (bool, error) {
	if err := r.touch(v); err != nil {
		return false, err
	}
	if err := r.given(a); err != nil {
		return false, err
	}
	return fn(r, v, a)
}

func (u *unaryExpr) eval(r *run, sc *scope) (Value, error) {
	x, err := r.eval(u.x, sc)
	if err != nil {
		return nil, err
	}
	if u.op == "not" {
		return !truth(x), nil
	}
	return negate(x, u.op == "-")
}

func (b *binaryExpr) eval(r *run, sc *scope) (Value, error) {
	x, err := r.eval(b.x, sc)
	if err != nil {
		return nil, err
	}
	y, err := r.eval(b.y, sc)
	if err != nil {
		return nil, err
	}
	return r.binary(b.op, x, y)
}

func (l *logicExpr) eval(r *run, sc *scope) (Value, error) {
	x, err := r.eval(l.x, sc)
	if err != nil || truth(x) == l.or {
		return x, err
	}
	return r.eval(l.y, sc)
}

func (c *concatExpr) eval(r *run, sc *scope) (Value, error) {
	// all are evaluated before any is printed: a later part may change a list
	vals := make([]Value, len(c.parts))
	for i, x := range c.parts {
		var err error
		if vals[i], err = r.eval(x, sc); err != nil {
			return nil, err
		}
	}
	var b strBuilder
	for _, v := range vals {
		s, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if err := r.text(len(s.s)); err != nil {
			return nil, err
		}
		if b.len()+len(s.s) > r.lim.Output {
			return nil, limitf("a string of more than %d bytes", r.lim.Output)
		}
		b.add(s)
	}
	return b.str(), r.made(b.str())
}

func (c *compareExpr) eval(r *run, sc *scope) (Value, error) {
	x, err := r.eval(c.x, sc)
	if err != nil {
		return nil, err
	}
	for i, op := range c.ops {
		y, err := r.eval(c.ys[i], sc)
		if err != nil {
			return nil, err
		}
		ok, err := r.compare(op, x, y)
		if err != nil || !ok {
			return false, err
		}
		x = y
	}
	return true, nil
}

func (c *condExpr) eval(r *run, sc *scope) (Value, error) {
	t, err := r.eval(c.test, sc)
	if err != nil {
		return nil, err
	}
	if truth(t) {
		return r.eval(c.yes, sc)
	}
	if c.no == nil {
		return undefined("the inline if-expression evaluated to false and no else section was defined"), nil
	}
	return r.eval(c.no, sc)
}
