package jinja

// loopVar is the "loop" of a for tag. It reads ahead only if asked for what
// comes next, as Jinja2's does: a condition may depend on what the body did.
type loopVar struct {
	it             *Iter
	known          int // number of items, -1 while unknown
	index0         int
	depth0         int
	cur, prev      Value
	ahead          []Value
	changed        Value
	recurse        func(items Value, depth int) (Value, error)
	started, ended bool
}

func (l *loopVar) pull() (Value, bool, error) {
	if len(l.ahead) > 0 {
		v := l.ahead[0]
		l.ahead = l.ahead[1:]
		return v, true, nil
	}
	if l.ended {
		return nil, false, nil
	}
	v, ok, err := l.it.next()
	if !ok {
		l.ended = true
	}
	return v, ok, err
}

// advance moves to the next item.
func (l *loopVar) advance() (bool, error) {
	v, ok, err := l.pull()
	if !ok || err != nil {
		return false, err
	}
	if l.started {
		l.prev = l.cur
		l.index0++
	}
	l.started = true
	l.cur = v
	return true, nil
}

func (l *loopVar) peek() (Value, bool, error) {
	if len(l.ahead) > 0 {
		return l.ahead[0], true, nil
	}
	v, ok, err := l.pull()
	if ok {
		l.ahead = append(l.ahead, v)
	}
	return v, ok, err
}

func (l *loopVar) length(r *run) (int, error) {
	if l.known >= 0 {
		return l.known, nil
	}
	for !l.ended {
		v, ok, err := l.it.next()
		if err != nil {
			return 0, err
		}
		if !ok {
			l.ended = true
			break
		}
		if err := r.list(1); err != nil {
			return 0, err
		}
		l.ahead = append(l.ahead, v)
	}
	l.known = l.index0 + 1 + len(l.ahead)
	return l.known, nil
}

func (l *loopVar) attr(r *run, name string) (Value, bool, error) {
	switch name {
	case "index":
		return int64(l.index0 + 1), true, nil
	case "index0":
		return int64(l.index0), true, nil
	case "first":
		return l.index0 == 0, true, nil
	case "last":
		_, ok, err := l.peek()
		return !ok, true, err
	case "length", "revindex", "revindex0":
		n, err := l.length(r)
		if name == "revindex" {
			n -= l.index0
		} else if name == "revindex0" {
			n -= l.index0 + 1
		}
		return int64(n), true, err
	case "previtem":
		if l.index0 == 0 {
			return undefined("there is no previous item"), true, nil
		}
		return l.prev, true, nil
	case "nextitem":
		v, ok, err := l.peek()
		if !ok {
			return undefined("there is no next item"), true, err
		}
		return v, true, err
	case "depth":
		return int64(l.depth0 + 1), true, nil
	case "depth0":
		return int64(l.depth0), true, nil
	case "cycle":
		return &Func{"cycle", func(r *run, a *args) (Value, error) {
			if len(a.pos) == 0 {
				return nil, errorf("cycle: no items")
			}
			return a.pos[l.index0%len(a.pos)], nil
		}}, true, nil
	case "changed":
		return &Func{"changed", func(r *run, a *args) (Value, error) {
			now := newTuple(a.pos...)
			same := false
			if l.changed != nil {
				var err error
				if same, err = r.equal(now, l.changed); err != nil {
					return nil, err
				}
			}
			l.changed = now
			return !same, nil
		}}, true, nil
	}
	return nil, false, nil
}

func (s *forStmt) exec(r *run, sc *scope) error {
	v, err := r.eval(s.iter, sc)
	if err != nil {
		return err
	}
	return s.loop(r, sc, v, 0)
}

func (s *forStmt) loop(r *run, sc *scope, v Value, depth int) error {
	it, err := r.iter(v)
	if err != nil {
		return at(s.iter.where(), err)
	}
	l := &loopVar{it: it, known: -1, depth0: depth}
	if n, err := r.length(v); err == nil && s.test == nil {
		l.known = n
	}
	if s.test != nil {
		l.it = s.filtered(r, sc, it)
	}
	if s.recursive {
		l.recurse = func(items Value, depth int) (Value, error) {
			outer := r.out
			r.out = &strBuilder{}
			err := s.loop(r, sc, items, depth)
			out := r.out.str()
			r.out = outer
			return out, err
		}
	}
	orelse := true
	for {
		ok, err := l.advance()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := r.step(2); err != nil { // a turn makes a scope as well
			return at(s.pos, err)
		}
		err = s.once(r, sc, l)
		if err == errBreak {
			break
		}
		if err == errContinue {
			continue
		}
		if err != nil {
			return err
		}
		orelse = false // only a body that ran to its end counts, as in Jinja2
	}
	if orelse {
		return r.block(s.orelse, sc.inner())
	}
	return nil
}

func (s *forStmt) once(r *run, sc *scope, l *loopVar) error {
	in := sc.inner()
	in.set("loop", l)
	if err := r.assign(s.target, l.cur, in); err != nil {
		return at(s.pos, err)
	}
	return r.block(s.body, in)
}

// filtered yields the items that pass the loop's condition, testing each only
// when it is reached.
func (s *forStmt) filtered(r *run, sc *scope, it *Iter) *Iter {
	return &Iter{name: "generator", next: func() (Value, bool, error) {
		for {
			v, ok, err := it.next()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := r.step(1); err != nil {
				return nil, false, at(s.pos, err)
			}
			in := sc.inner()
			if err := r.assign(s.target, v, in); err != nil {
				return nil, false, at(s.pos, err)
			}
			t, err := r.eval(s.test, in)
			if err != nil {
				return nil, false, err
			}
			if truth(t) {
				return v, true, nil
			}
		}
	}}
}
