package jinja

import "errors"

// errBreak and errContinue travel as errors up to their loop.
var (
	errBreak    = errors.New("jinja: break outside a loop")
	errContinue = errors.New("jinja: continue outside a loop")
)

func (r *run) block(body []stmt, sc *scope) error {
	for _, s := range body {
		if err := r.enter(); err != nil {
			return err
		}
		err := s.exec(r, sc)
		r.leave()
		if err != nil {
			return err
		}
	}
	return nil
}

// capture runs statements with an output of their own and gives what they print.
func (r *run) capture(body []stmt, sc *scope) (Str, error) {
	outer := r.out
	r.out = &strBuilder{}
	err := r.block(body, sc)
	s := r.out.str()
	r.out = outer
	return s, err
}

func (s *dataStmt) exec(r *run, sc *scope) error { return r.write(s.text) }

func (s *outStmt) exec(r *run, sc *scope) error {
	v, err := r.eval(s.x, sc)
	if err != nil {
		return err
	}
	text, err := r.str(v)
	if err != nil {
		return at(s.x.where(), err)
	}
	return at(s.x.where(), r.write(text))
}

func (s *ifStmt) exec(r *run, sc *scope) error {
	for i, test := range s.tests {
		v, err := r.eval(test, sc)
		if err != nil {
			return err
		}
		if truth(v) {
			return r.block(s.bodies[i], sc)
		}
	}
	return r.block(s.orelse, sc)
}

func (s *setStmt) exec(r *run, sc *scope) error {
	v, err := r.eval(s.x, sc)
	if err != nil {
		return err
	}
	return at(s.pos, r.assign(s.target, v, sc))
}

func (s *setBlockStmt) exec(r *run, sc *scope) error {
	text, err := r.capture(s.body, sc.inner())
	if err != nil {
		return err
	}
	var v Value = text
	if s.filter != nil {
		if v, err = s.filter.apply(r, sc, text); err != nil {
			return err
		}
	}
	return at(s.pos, r.assign(s.target, v, sc))
}

func (r *run) assign(target expr, v Value, sc *scope) error {
	switch t := target.(type) {
	case *nameExpr:
		sc.set(t.name, v)
	case *nsTarget:
		x, _ := sc.get(t.name)
		ns, ok := x.(*Namespace)
		if !ok {
			return errorf("cannot set attribute %q of %q: it is no namespace", t.attr, t.name)
		}
		if t.attr[0] == '_' {
			return errorf("a namespace cannot hold %q: names with a leading underscore are refused", t.attr)
		}
		return ns.attrs.set(lit(t.attr), v)
	case *listExpr:
		items, err := r.items(v)
		if err != nil {
			return err
		}
		if len(items) != len(t.items) {
			return errorf("cannot unpack %d values into %d names", len(items), len(t.items))
		}
		for i, it := range t.items {
			if err := r.assign(it, items[i], sc); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *macroStmt) exec(r *run, sc *scope) error {
	sc.set(s.name, &Macro{&s.macroDef, sc})
	return nil
}

func (s *callStmt) exec(r *run, sc *scope) error {
	caller := &Macro{&s.macroDef, sc}
	fn, a, err := s.call.prepare(r, sc)
	if err != nil {
		return err
	}
	a.names, a.named = append(a.names, "caller"), append(a.named, caller)
	v, err := r.call(fn, a)
	if err != nil {
		return at(s.pos, err)
	}
	text, err := r.str(v)
	if err != nil {
		return at(s.pos, err)
	}
	return r.write(text)
}

func (s *filterStmt) exec(r *run, sc *scope) error {
	text, err := r.capture(s.body, sc.inner())
	if err != nil {
		return err
	}
	v, err := s.filter.apply(r, sc, text)
	if err != nil {
		return err
	}
	if text, err = r.str(v); err != nil {
		return at(s.pos, err)
	}
	return r.write(text)
}

func (s *withStmt) exec(r *run, sc *scope) error {
	in := sc.inner()
	for i, t := range s.targets {
		v, err := r.eval(s.vals[i], sc)
		if err != nil {
			return err
		}
		if err := r.assign(t, v, in); err != nil {
			return at(s.pos, err)
		}
	}
	return r.block(s.body, in)
}

func (s *scopeStmt) exec(r *run, sc *scope) error { return r.block(s.body, sc.inner()) }

func (s *jumpStmt) exec(r *run, sc *scope) error {
	if s.brk {
		return errBreak
	}
	return errContinue
}
