package jinja

import (
	"math/big"
)

type testFunc func(r *run, v Value, a *args) (bool, error)

// tests are Jinja2's, for "is" and for select and reject.
var tests = map[string]testFunc{
	"boolean":     kind(func(v Value) bool { _, ok := v.(bool); return ok }),
	"callable":    kind(isCallable),
	"defined":     kind(func(v Value) bool { return !isUndefined(v) }),
	"divisibleby": testDivisible,
	"escaped":     kind(func(v Value) bool { s, ok := v.(Str); return ok && s.safe }),
	"even":        parity(0),
	"false":       kind(func(v Value) bool { b, ok := v.(bool); return ok && !b }),
	"filter":      testFilter,
	"float":       kind(func(v Value) bool { _, ok := v.(float64); return ok }),
	"in":          testIn,
	"integer":     kind(isInteger),
	"iterable":    kind(isIterable),
	"lower":       testCase(false),
	"mapping":     kind(func(v Value) bool { _, ok := v.(*Dict); return ok }),
	"none":        kind(func(v Value) bool { _, ok := v.(None); return ok }),
	"number":      kind(func(v Value) bool { _, _, _, ok := toNumber(v); return ok }),
	"odd":         parity(1),
	"sameas":      testSame,
	"sequence":    kind(isSequence),
	"string":      kind(func(v Value) bool { _, ok := v.(Str); return ok }),
	"test":        testTest,
	"true":        kind(func(v Value) bool { b, ok := v.(bool); return ok && b }),
	"undefined":   kind(isUndefined),
	"upper":       testCase(true),

	"==": comparing("=="), "eq": comparing("=="), "equalto": comparing("=="),
	"!=": comparing("!="), "ne": comparing("!="),
	">": comparing(">"), "gt": comparing(">"), "greaterthan": comparing(">"),
	">=": comparing(">="), "ge": comparing(">="),
	"<": comparing("<"), "lt": comparing("<"), "lessthan": comparing("<"),
	"<=": comparing("<="), "le": comparing("<="),
}

func kind(f func(Value) bool) testFunc {
	return func(r *run, v Value, a *args) (bool, error) { return f(v), nil }
}

func isUndefined(v Value) bool { _, ok := v.(*Undefined); return ok }

func isCallable(v Value) bool {
	switch v.(type) {
	case *Func, *Macro, *loopVar, *Undefined: // Jinja2's Undefined has a __call__
		return true
	}
	return false
}

func isInteger(v Value) bool {
	switch v.(type) {
	case int64, *big.Int:
		return true
	}
	return false
}

func isIterable(v Value) bool {
	switch v.(type) {
	case Str, *List, *Dict, *Iter, *Undefined, *loopVar:
		return true
	}
	return false
}

func isSequence(v Value) bool {
	switch x := v.(type) {
	case Str, *Dict, *Undefined:
		return true
	case *List:
		return x.kind != kindView
	}
	return false
}

func one(fn string, a *args) (Value, error) {
	p, err := a.bind(fn, 1, "other")
	if err != nil {
		return nil, err
	}
	return p[0], nil
}

func comparing(op string) testFunc {
	return func(r *run, v Value, a *args) (bool, error) {
		y, err := one(op, a)
		if err != nil {
			return false, err
		}
		return r.compare(op, v, y)
	}
}

func testIn(r *run, v Value, a *args) (bool, error) {
	box, err := one("in", a)
	if err != nil {
		return false, err
	}
	return r.contains(box, v)
}

// testSame is Python's "is", which for values without identity is equality of
// type and value.
func testSame(r *run, v Value, a *args) (bool, error) {
	y, err := one("sameas", a)
	if err != nil {
		return false, err
	}
	switch v.(type) {
	case Str, bool, int64, float64, None:
		if typeName(v) != typeName(y) {
			return false, nil
		}
		return r.equal(v, y)
	}
	return v == y, nil
}

func parity(want int64) testFunc {
	return func(r *run, v Value, a *args) (bool, error) {
		m, err := r.binary("%", v, int64(2))
		if err != nil {
			return false, err
		}
		return r.equal(m, want)
	}
}

func testDivisible(r *run, v Value, a *args) (bool, error) {
	p, err := a.bind("divisibleby", 1, "num")
	if err != nil {
		return false, err
	}
	m, err := r.binary("%", v, p[0])
	if err != nil {
		return false, err
	}
	return r.equal(m, int64(0))
}

func testCase(upper bool) testFunc {
	return func(r *run, v Value, a *args) (bool, error) {
		s, err := r.str(v)
		if err != nil {
			return false, err
		}
		return r.isCase(s, upper)
	}
}

func testFilter(r *run, v Value, a *args) (bool, error) {
	s, ok := v.(Str)
	return ok && r.filters[s.s] != nil, nil
}

func testTest(r *run, v Value, a *args) (bool, error) {
	s, ok := v.(Str)
	return ok && r.tests[s.s] != nil, nil
}
