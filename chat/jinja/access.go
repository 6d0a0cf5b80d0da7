package jinja

import (
	"errors"
	"unicode/utf8"
)

// attr is x.name: a method or attribute first, then an item.
func (r *run) attr(x Value, name string) (Value, error) {
	if u, ok := x.(*Undefined); ok {
		return nil, u.err()
	}
	if v, ok, err := r.own(x, name); ok || err != nil {
		return v, err
	}
	if d, ok := x.(*Dict); ok {
		if v, ok := d.getText(name); ok {
			return v, nil
		}
	}
	return missing(x, name), nil
}

// item is x[k]: an item first, then a method or attribute.
func (r *run) item(x, k Value) (Value, error) {
	switch c := x.(type) {
	case *Undefined:
		return nil, c.err()
	case *Dict:
		v, ok, err := r.lookup(c, k)
		if ok && err == nil {
			return v, nil
		}
		if err != nil && !errors.Is(err, ErrRuntime) { // what cannot be a key is none of its keys
			return nil, err
		}
	case *List:
		if v, ok := c.at(k); ok {
			return v, nil
		}
	case Str:
		if v, ok, err := c.at(r, k); ok || err != nil {
			return v, err
		}
	}
	if err := r.touch(k); err != nil {
		return nil, err
	}
	name, ok := k.(Str)
	if !ok {
		text, err := r.repr(k)
		return undefined(typeName(x) + " has no element " + brief(text.s)), err
	}
	if v, ok, err := r.own(x, name.s); ok || err != nil {
		return v, err
	}
	return missing(x, name.s), nil
}

func missing(x Value, name string) Value {
	return undefined("'" + typeName(x) + " object' has no attribute '" + brief(name) + "'")
}

// own gives a method or attribute that belongs to the type of x.
func (r *run) own(x Value, name string) (Value, bool, error) {
	switch c := x.(type) {
	case Str:
		if m, ok := strMethods[name]; ok {
			return &Func{name, func(r *run, a *args) (Value, error) {
				if err := r.touch(c); err != nil {
					return nil, err
				}
				return m(r, c, a)
			}}, true, nil
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			return &Func{name, func(r *run, a *args) (Value, error) { return m(r, c, a) }}, true, nil
		}
	case *List:
		for i, n := range c.names {
			if n == name {
				return c.items[i], true, nil
			}
		}
		m, ok := listMethods[name]
		if ok && (c.kind == kindList || (c.kind == kindTuple || c.kind == kindRange) && (name == "index" || name == "count")) {
			return &Func{name, func(r *run, a *args) (Value, error) { return m(r, c, a) }}, true, nil
		}
	case *Namespace:
		v, ok := c.attrs.getText(name)
		return v, ok, nil
	case *loopVar:
		return c.attr(r, name)
	case *Macro:
		if name == "name" {
			return lit(c.def.name), true, nil
		}
	case int64, float64, bool:
		if name == "is_integer" {
			f, isFloat := x.(float64)
			return &Func{name, func(r *run, a *args) (Value, error) {
				return !isFloat || f == float64(int64(f)), nil
			}}, true, nil
		}
	}
	return nil, false, nil
}

// intIndex gives an index as an int64; booleans count as in Python.
func intIndex(k Value) (int64, bool) {
	switch i := k.(type) {
	case int64:
		return i, true
	case bool:
		if i {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func (l *List) at(k Value) (Value, bool) {
	i, ok := intIndex(k)
	if !ok || l.kind == kindView {
		return nil, false
	}
	if i < 0 {
		i += int64(len(l.items))
	}
	if i < 0 || i >= int64(len(l.items)) {
		return nil, false
	}
	return l.items[i], true
}

// at gives one code point; it pays for those that it passes on the way there.
func (s Str) at(r *run, k Value) (Value, bool, error) {
	i, ok := intIndex(k)
	if !ok || i >= int64(len(s.s)) || i < -int64(len(s.s)) {
		return nil, false, nil
	}
	if err := r.step(int(max(i, -i)) / scanBytes); err != nil {
		return nil, false, err
	}
	lo, hi := 0, 0
	if i >= 0 {
		lo = s.offset(int(i))
		_, w := utf8.DecodeRuneInString(s.s[lo:])
		hi = lo + w
	} else {
		for lo = len(s.s); i < 0 && lo > 0; i++ {
			_, w := utf8.DecodeLastRuneInString(s.s[:lo])
			lo, hi = lo-w, lo
		}
		if i < 0 {
			return nil, false, nil
		}
	}
	return s.slice(lo, hi), lo < hi, nil
}

// bounds resolves a slice over n items as Python does.
func (s *sliceExpr) bounds(r *run, sc *scope, n int) (lo, hi, step int, err error) {
	var given [3]*int64
	for i, x := range []expr{s.lo, s.hi, s.step} {
		if x == nil {
			continue
		}
		v, err := r.eval(x, sc)
		if err != nil {
			return 0, 0, 0, err
		}
		if _, none := v.(None); none {
			continue
		}
		k, ok := intIndex(v)
		if !ok {
			return 0, 0, 0, errorf("a slice needs integers, not %s", typeName(v))
		}
		given[i] = &k
	}
	step = 1
	if given[2] != nil {
		step = clamp(*given[2], -1<<40, 1<<40)
	}
	if step == 0 {
		return 0, 0, 0, errorf("a slice cannot have step 0")
	}
	first, last := 0, n
	if step < 0 {
		first, last = -1, n-1
	}
	edge := func(k *int64, otherwise int) int {
		if k == nil {
			return otherwise
		}
		i := *k
		if i < 0 {
			i += int64(n)
		}
		return clamp(i, first, last)
	}
	if step > 0 {
		return edge(given[0], 0), edge(given[1], n), step, nil
	}
	return edge(given[0], n-1), edge(given[1], -1), step, nil
}

func clamp(i int64, lo, hi int) int { return int(min(max(i, int64(lo)), int64(hi))) }

func (s *sliceExpr) apply(r *run, sc *scope, x Value) (Value, error) {
	switch c := x.(type) {
	case *Undefined:
		return nil, c.err()
	case Str:
		return s.text(r, sc, c)
	case *List:
		if c.kind == kindView {
			break
		}
		lo, hi, step, err := s.bounds(r, sc, len(c.items))
		if err != nil {
			return nil, err
		}
		out := &List{kind: c.kind}
		if c.kind == kindRange {
			at := func(i int) int64 { return c.ends[0] + int64(i)*c.ends[2] }
			out.ends = [3]int64{at(lo), at(hi), c.ends[2] * int64(step)}
		}
		for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
			if err := r.list(1); err != nil {
				return nil, err
			}
			out.items = append(out.items, c.items[i])
		}
		return out, nil
	}
	return nil, errorf("a %s cannot be sliced", typeName(x))
}

func (s *sliceExpr) text(r *run, sc *scope, c Str) (Value, error) {
	if err := r.touch(c); err != nil {
		return nil, err
	}
	n := c.runeLen()
	lo, hi, step, err := s.bounds(r, sc, n)
	if err != nil {
		return nil, err
	}
	if step == 1 {
		if hi <= lo {
			return Str{}, nil
		}
		if n == len(c.s) {
			return c.slice(lo, hi), nil
		}
		return c.slice(c.offset(lo), c.offset(hi)), nil
	}
	if err := r.chars(len(c.s)); err != nil {
		return nil, err
	}
	if err := r.list(len(c.s) / 8); err != nil { // a list item has room for eight offsets
		return nil, err
	}
	offsets := make([]int, 0, n+1)
	for i := range c.s {
		offsets = append(offsets, i)
	}
	offsets = append(offsets, len(c.s))
	var b strBuilder
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		b.add(c.slice(offsets[i], offsets[i+1]))
	}
	return b.str().as(c.safe), nil
}
