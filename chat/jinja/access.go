package jinja

import (
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
		if v, ok, err := c.get(k); ok && err == nil {
			return v, nil
		}
	case *List:
		if v, ok := c.at(k); ok {
			return v, nil
		}
	case Str:
		if v, ok := c.at(k); ok {
			return v, nil
		}
	}
	name, ok := k.(Str)
	if !ok {
		text, err := r.repr(k)
		return undefined(typeName(x) + " has no element " + text.s), err
	}
	if v, ok, err := r.own(x, name.s); ok || err != nil {
		return v, err
	}
	return missing(x, name.s), nil
}

func missing(x Value, name string) Value {
	return undefined("'" + typeName(x) + " object' has no attribute '" + name + "'")
}

// own gives a method or attribute that belongs to the type of x.
func (r *run) own(x Value, name string) (Value, bool, error) {
	switch c := x.(type) {
	case Str:
		if m, ok := strMethods[name]; ok {
			return &Func{name, func(r *run, a *args) (Value, error) { return m(r, c, a) }}, true, nil
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

// at gives one code point.
func (s Str) at(k Value) (Value, bool) {
	i, ok := intIndex(k)
	if !ok {
		return nil, false
	}
	if i < 0 {
		i += int64(s.runeLen())
	}
	if i < 0 || i >= int64(len(s.s)) {
		return nil, false
	}
	lo := s.offset(int(i))
	if lo >= len(s.s) {
		return nil, false
	}
	_, w := utf8.DecodeRuneInString(s.s[lo:])
	return s.slice(lo, lo+w), true
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
	n := c.runeLen()
	lo, hi, step, err := s.bounds(r, sc, n)
	if err != nil {
		return nil, err
	}
	if err := r.step(len(c.s) / 256); err != nil {
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
	if err := r.text(len(c.s)); err != nil {
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
