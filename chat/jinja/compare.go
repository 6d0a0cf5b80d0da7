package jinja

import (
	"math/big"
	"sort"
	"strings"
)

func (r *run) compare(op string, x, y Value) (bool, error) {
	switch op {
	case "==", "!=":
		eq, err := r.equal(x, y)
		return eq == (op == "=="), err
	case "in":
		return r.contains(y, x)
	case "not in":
		in, err := r.contains(y, x)
		return !in, err
	}
	c, nan, err := r.order(x, y)
	if err != nil || nan {
		return false, err
	}
	switch op {
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	}
	return c >= 0, nil
}

// equal is Python's ==.
func (r *run) equal(x, y Value) (bool, error) {
	if err := r.enter(); err != nil {
		return false, err
	}
	defer r.leave()
	if a, f, aFloat, ok := toNumber(x); ok {
		b, g, bFloat, ok := toNumber(y)
		if !ok {
			return false, nil
		}
		c, nan := compareNumbers(a, f, aFloat, b, g, bFloat)
		return c == 0 && !nan, nil
	}
	switch a := x.(type) {
	case Str:
		b, ok := y.(Str)
		if !ok || len(a.s) != len(b.s) {
			return false, nil
		}
		return a.s == b.s, r.step(len(a.s) / 256)
	case None:
		_, ok := y.(None)
		return ok, nil
	case *Undefined:
		_, ok := y.(*Undefined)
		return ok, nil
	case *List:
		b, ok := y.(*List)
		if !ok || a.kind != b.kind || len(a.items) != len(b.items) {
			return false, nil
		}
		for i := range a.items {
			if eq, err := r.equal(a.items[i], b.items[i]); !eq || err != nil {
				return false, err
			}
		}
		return true, nil
	case *Dict:
		b, ok := y.(*Dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false, nil
		}
		for i, k := range a.keys {
			v, ok, err := r.lookup(b, k)
			if !ok || err != nil {
				return false, err
			}
			if eq, err := r.equal(a.vals[i], v); !eq || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return x == y, nil
}

func compareNumbers(a *big.Int, f float64, aFloat bool, b *big.Int, g float64, bFloat bool) (c int, nan bool) {
	if !aFloat && !bFloat {
		return a.Cmp(b), false
	}
	if !aFloat {
		f = bigFloat(a)
	}
	if !bFloat {
		g = bigFloat(b)
	}
	switch {
	case f < g:
		return -1, false
	case f > g:
		return 1, false
	}
	return 0, f != g
}

// order compares what Python can order: numbers, strings, lists and tuples.
func (r *run) order(x, y Value) (c int, nan bool, err error) {
	if err := r.enter(); err != nil {
		return 0, false, err
	}
	defer r.leave()
	if a, f, aFloat, ok := toNumber(x); ok {
		if b, g, bFloat, ok := toNumber(y); ok {
			c, nan = compareNumbers(a, f, aFloat, b, g, bFloat)
			return c, nan, nil
		}
	}
	switch a := x.(type) {
	case *Undefined:
		return 0, false, a.err()
	case Str:
		if b, ok := y.(Str); ok {
			return strings.Compare(a.s, b.s), false, r.step(min(len(a.s), len(b.s)) / 256)
		}
	case *List:
		if b, ok := y.(*List); ok && a.kind == b.kind && a.kind <= kindTuple {
			for i := 0; i < len(a.items) && i < len(b.items); i++ {
				eq, err := r.equal(a.items[i], b.items[i])
				if err != nil {
					return 0, false, err
				}
				if !eq {
					return r.order(a.items[i], b.items[i])
				}
			}
			return len(a.items) - len(b.items), false, nil
		}
	}
	if u, ok := y.(*Undefined); ok {
		return 0, false, u.err()
	}
	return 0, false, errorf("%s and %s have no order", typeName(x), typeName(y))
}

// contains is Python's "x in box".
func (r *run) contains(box, x Value) (bool, error) {
	switch b := box.(type) {
	case Str:
		s, ok := x.(Str)
		if !ok {
			return false, errorf("only a string can be in a string, not a %s", typeName(x))
		}
		if err := r.touch(b, s); err != nil {
			return false, err
		}
		return strings.Contains(b.s, s.s), nil
	case *Dict:
		_, ok, err := r.lookup(b, x)
		return ok, err
	case *Undefined:
		return false, nil
	}
	it, err := r.iter(box)
	if err != nil {
		return false, errorf("nothing can be in a %s", typeName(box))
	}
	for {
		v, ok, err := it.next()
		if !ok || err != nil {
			return false, err
		}
		if eq, err := r.equal(v, x); eq || err != nil {
			return eq, err
		}
	}
}

// sorted sorts items by their keys, stably; the first failure to compare two
// keys is the error.
func (r *run) sorted(items, keys []Value, reverse bool) ([]Value, error) {
	if err := r.list(2 * len(items)); err != nil {
		return nil, err
	}
	index := make([]int, len(items))
	for i := range index {
		index[i] = i
	}
	var failed error
	sort.SliceStable(index, func(i, j int) bool {
		if failed != nil {
			return false
		}
		a, b := keys[index[i]], keys[index[j]]
		if reverse {
			a, b = b, a
		}
		c, nan, err := r.order(a, b)
		if err != nil {
			failed = err
		}
		return c < 0 && !nan
	})
	out := make([]Value, len(items))
	for i, k := range index {
		out[i] = items[k]
	}
	return out, failed
}
