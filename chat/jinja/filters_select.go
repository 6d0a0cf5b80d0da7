package jinja

func filterMap(r *run, v Value, a *args) (Value, error) {
	attribute, byAttr := a.take("attribute")
	otherwise, _ := a.take("default")
	if byAttr && (len(a.pos) > 0 || len(a.names) > 0) || !byAttr && (len(a.pos) == 0 || otherwise != nil) {
		return nil, errorf("map wants the name of a filter, or attribute=")
	}
	if !truth(v) {
		return iterOf(nil), nil
	}
	it, err := r.iter(v)
	if err != nil {
		return failing(err), nil
	}
	apply := func(x Value) (Value, error) { return r.path(x, attribute, otherwise) }
	if !byAttr {
		name, err := textArg("map", a.pos[0])
		if err != nil {
			return nil, err
		}
		fn, ok := r.filters[name.s]
		if !ok {
			return nil, errorf("there is no filter named %q", name.s)
		}
		apply = func(x Value) (Value, error) {
			return r.filter(fn, x, &args{pos: a.pos[1:], names: a.names, named: a.named})
		}
	}
	return r.lazily(it, func(x Value) (Value, bool, error) {
		y, err := apply(x)
		return y, true, err
	}), nil
}

// failing is an iterator that tells an error when it is used: Jinja2's filters
// that are generators look at their input no sooner.
func failing(err error) *Iter {
	return &Iter{name: "generator", next: func() (Value, bool, error) { return nil, false, err }}
}

// lazily yields what f gives for those items that it keeps.
func (r *run) lazily(it *Iter, f func(Value) (Value, bool, error)) *Iter {
	return &Iter{name: "generator", next: func() (Value, bool, error) {
		if err := r.enter(); err != nil { // chains of iterators nest
			return nil, false, err
		}
		defer r.leave()
		for {
			x, ok, err := it.next()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := r.step(1); err != nil {
				return nil, false, err
			}
			y, keep, err := f(x)
			if err != nil {
				return nil, false, err
			}
			if keep {
				return y, true, nil
			}
		}
	}}
}

// selecting makes select, reject, selectattr and rejectattr.
func selecting(want, byAttr bool) filterFunc {
	return func(r *run, v Value, a *args) (Value, error) {
		if !truth(v) {
			return iterOf(nil), nil
		}
		rest := a.pos
		var attribute Value
		if byAttr {
			if len(rest) == 0 {
				return nil, errorf("selectattr wants the name of an attribute")
			}
			attribute, rest = rest[0], rest[1:]
		}
		test := func(x Value) (bool, error) { return truth(x), nil }
		if len(rest) > 0 {
			name, err := textArg("select", rest[0])
			if err != nil {
				return nil, err
			}
			fn, ok := r.tests[name.s]
			if !ok {
				return nil, errorf("there is no test named %q", name.s)
			}
			test = func(x Value) (bool, error) {
				return r.test(fn, x, &args{pos: rest[1:], names: a.names, named: a.named})
			}
		}
		it, err := r.iter(v)
		if err != nil {
			return failing(err), nil
		}
		return r.lazily(it, func(x Value) (Value, bool, error) {
			y := x
			if byAttr {
				var err error
				if y, err = r.path(x, attribute, nil); err != nil {
					return nil, false, err
				}
			}
			ok, err := test(y)
			return x, ok == want, err
		}), nil
	}
}

func filterBatch(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("batch", 1, "linecount", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := intArg("batch", p[0], 1)
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return failing(err), nil
	}
	if n < 1 || n > 1<<20 {
		return nil, errorf("batch of %d items", n)
	}
	var out []Value
	for len(items) > 0 {
		k := min(int(n), len(items))
		row := newList(items[:k:k])
		items = items[k:]
		for !isNone(p[1]) && len(row.items) < int(n) {
			if err := r.list(1); err != nil {
				return nil, err
			}
			row.items = append(row.items, p[1])
		}
		out = append(out, row)
	}
	return iterOf(out), nil
}

func filterSlice(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("slice", 1, "slices", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := intArg("slice", p[0], 1)
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return failing(err), nil
	}
	if n < 1 || n > 1<<16 {
		return nil, errorf("slice into %d parts", n)
	}
	if err := r.list(2 * int(n)); err != nil {
		return nil, err
	}
	per, extra, at := len(items)/int(n), len(items)%int(n), 0
	var out []Value
	for i := 0; i < int(n); i++ {
		k := per
		if i < extra {
			k++
		}
		row := newList(append([]Value(nil), items[at:at+k]...))
		if !isNone(p[1]) && i >= extra {
			row.items = append(row.items, p[1])
		}
		out = append(out, row)
		at += k
	}
	return iterOf(out), nil
}
