package jinja

// args are evaluated arguments.
type args struct {
	pos   []Value
	names []string
	named []Value
}

// take removes a named argument.
func (a *args) take(name string) (Value, bool) {
	for i, n := range a.names {
		if n == name {
			v := a.named[i]
			a.names = append(a.names[:i:i], a.names[i+1:]...)
			a.named = append(a.named[:i:i], a.named[i+1:]...)
			return v, true
		}
	}
	return nil, false
}

// bind gives the arguments in the order of the parameters; those not given are
// nil. At least need of them must be.
func (a *args) bind(fn string, need int, params ...string) ([]Value, error) {
	if len(a.pos) > len(params) {
		return nil, errorf("%s takes at most %d arguments, got %d", fn, len(params), len(a.pos))
	}
	out := make([]Value, len(params))
	copy(out, a.pos)
	for i, name := range a.names {
		k := -1
		for j, p := range params {
			if p == name {
				k = j
			}
		}
		if k < 0 {
			return nil, errorf("%s has no parameter %q", fn, name)
		}
		if out[k] != nil {
			return nil, errorf("%s got two values for %q", fn, name)
		}
		out[k] = a.named[i]
	}
	for i := 0; i < need; i++ {
		if out[i] == nil {
			return nil, errorf("%s needs the argument %q", fn, params[i])
		}
	}
	return out, nil
}

func (r *run) args(c *callArgs, sc *scope) (*args, error) {
	a := &args{}
	for _, x := range c.args {
		v, err := r.eval(x, sc)
		if err != nil {
			return nil, err
		}
		a.pos = append(a.pos, v)
	}
	for i, x := range c.named {
		v, err := r.eval(x, sc)
		if err != nil {
			return nil, err
		}
		a.names, a.named = append(a.names, c.names[i]), append(a.named, v)
	}
	if c.star != nil {
		v, err := r.eval(c.star, sc)
		if err != nil {
			return nil, err
		}
		items, err := r.items(v)
		if err != nil {
			return nil, err
		}
		a.pos = append(a.pos, items...)
	}
	if c.starstar != nil {
		v, err := r.eval(c.starstar, sc)
		if err != nil {
			return nil, err
		}
		d, ok := v.(*Dict)
		if !ok {
			return nil, errorf("the argument after ** must be a dict, not %s", typeName(v))
		}
		if err := r.list(len(d.keys)); err != nil {
			return nil, err
		}
		for i, k := range d.keys {
			if _, err := r.key(k); err != nil {
				return nil, err
			}
			name, ok := k.(Str)
			if !ok {
				return nil, errorf("the keys of the argument after ** must be strings")
			}
			a.names, a.named = append(a.names, name.s), append(a.named, d.vals[i])
		}
	}
	return a, nil
}

func (c *callExpr) prepare(r *run, sc *scope) (Value, *args, error) {
	fn, err := r.eval(c.fn, sc)
	if err != nil {
		return nil, nil, err
	}
	a, err := r.args(&c.args, sc)
	if err != nil {
		return nil, nil, at(c.pos, err)
	}
	return fn, a, nil
}

func (c *callExpr) eval(r *run, sc *scope) (Value, error) {
	fn, a, err := c.prepare(r, sc)
	if err != nil {
		return nil, err
	}
	return r.call(fn, a)
}

func (r *run) call(fn Value, a *args) (Value, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	switch f := fn.(type) {
	case *Func:
		if err := r.given(a); err != nil {
			return nil, err
		}
		return f.call(r, a)
	case *Macro:
		if err := r.step(len(a.names) * (1 + len(f.def.params)) / charBytes); err != nil { // each is looked for by name
			return nil, err
		}
		return f.call(r, a)
	case *loopVar:
		if f.recurse == nil {
			return nil, errorf("the loop is not marked recursive")
		}
		v, err := a.bind("loop", 1, "iterable")
		if err != nil {
			return nil, err
		}
		return f.recurse(v[0], f.depth0+1)
	case *Undefined:
		return nil, f.err()
	}
	return nil, errorf("a %s cannot be called", typeName(fn))
}

// call runs a macro: parameters that are not given take their defaults, which
// may use the parameters before them.
func (m *Macro) call(r *run, a *args) (Value, error) {
	d := m.def
	sc := m.scope.inner()
	given := make([]Value, len(d.params))
	n := copy(given, a.pos)
	explicit := false
	for i, name := range d.params {
		explicit = explicit || name == "caller"
		if i >= n {
			given[i], _ = a.take(name)
		}
	}
	if d.uses.caller && !explicit {
		caller, ok := a.take("caller")
		if !ok {
			caller = undefined("No caller defined")
		}
		sc.set("caller", caller)
	}
	if err := m.extras(r, a, n, sc); err != nil {
		return nil, err
	}
	for i, name := range d.params {
		v := given[i]
		if v == nil {
			v = undefined("parameter '" + name + "' was not provided")
			if k := i - (len(d.params) - len(d.defaults)); k >= 0 {
				var err error
				if v, err = r.eval(d.defaults[k], sc); err != nil {
					return nil, err
				}
			}
		}
		sc.set(name, v)
	}
	return r.capture(d.body, sc)
}

// extras deals with arguments beyond the parameters.
func (m *Macro) extras(r *run, a *args, n int, sc *scope) error {
	d := m.def
	if d.uses.kwargs {
		kw := NewDict()
		for i, name := range a.names {
			kw.Set(name, a.named[i])
		}
		sc.set("kwargs", kw)
	} else if len(a.names) > 0 {
		return errorf("macro %q takes no argument named %q", d.name, a.names[0])
	}
	if d.uses.varargs {
		sc.set("varargs", newTuple(a.pos[n:]...))
	} else if len(a.pos) > len(d.params) {
		return errorf("macro %q takes at most %d arguments, got %d", d.name, len(d.params), len(a.pos))
	}
	return nil
}
