package jinja

import (
	"strings"
)

// window applies the optional start and end of find, count and the like.
func window(fn string, s Str, lo, hi Value) (Str, int, error) {
	if isNone(lo) && isNone(hi) {
		return s, 0, nil
	}
	n := s.runeLen()
	edge := func(v Value, otherwise int) (int, error) {
		if isNone(v) {
			return otherwise, nil
		}
		i, err := intArg(fn, v, 0)
		if i < 0 {
			i += int64(n)
		}
		return clamp(i, 0, n), err
	}
	from, err := edge(lo, 0)
	if err != nil {
		return s, 0, err
	}
	to, err := edge(hi, n)
	if err != nil {
		return s, 0, err
	}
	return s.slice(s.offset(from), max(s.offset(from), s.offset(to))), from, nil
}

func strFind(index func(string, string) int, strict bool) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		v, err := a.bind("find", 1, "sub", "start", "end")
		if err != nil {
			return nil, err
		}
		sub, err := textArg("find", v[0])
		if err != nil {
			return nil, err
		}
		w, from, err := window("find", s, v[1], v[2])
		if err != nil {
			return nil, err
		}
		k := index(w.s, sub.s)
		if k < 0 {
			if strict {
				return nil, errorf("index: the text does not hold %q", sub.s)
			}
			return int64(-1), nil
		}
		return int64(from + w.slice(0, k).runeLen()), nil
	}
}

func strCount(r *run, s Str, a *args) (Value, error) {
	v, err := a.bind("count", 1, "sub", "start", "end")
	if err != nil {
		return nil, err
	}
	sub, err := textArg("count", v[0])
	if err != nil {
		return nil, err
	}
	w, _, err := window("count", s, v[1], v[2])
	if err != nil {
		return nil, err
	}
	return int64(strings.Count(w.s, sub.s)), nil
}

// affix is startswith or endswith, of one string or any of a tuple.
func affix(has func(string, string) bool) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		v, err := a.bind("startswith", 1, "prefix", "start", "end")
		if err != nil {
			return nil, err
		}
		w, _, err := window("startswith", s, v[1], v[2])
		if err != nil {
			return nil, err
		}
		options := []Value{v[0]}
		if l, ok := v[0].(*List); ok && l.kind == kindTuple {
			options = l.items
		}
		for _, o := range options {
			t, err := textArg("startswith", o)
			if err != nil {
				return nil, err
			}
			if err := r.step(1 + min(len(w.s), len(t.s))/256); err != nil {
				return nil, err
			}
			if has(w.s, t.s) {
				return true, nil
			}
		}
		return false, nil
	}
}

func removeAffix(has func(string, string) bool, front bool) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		v, err := a.bind("removeprefix", 1, "prefix")
		if err != nil {
			return nil, err
		}
		t, err := textArg("removeprefix", v[0])
		if err != nil || !has(s.s, t.s) {
			return s, err
		}
		if front {
			return s.slice(len(t.s), len(s.s)), nil
		}
		return s.slice(0, len(s.s)-len(t.s)), nil
	}
}

func partition(index func(string, string) int, right bool) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		v, err := a.bind("partition", 1, "sep")
		if err != nil {
			return nil, err
		}
		sep, err := textArg("partition", v[0])
		if err != nil {
			return nil, err
		}
		if sep.s == "" {
			return nil, errorf("partition: the separator is empty")
		}
		k := index(s.s, sep.s)
		if k < 0 {
			if right {
				return newTuple(Str{}.as(s.safe), Str{}.as(s.safe), s), nil
			}
			return newTuple(s, Str{}.as(s.safe), Str{}.as(s.safe)), nil
		}
		end := k + len(sep.s)
		return newTuple(s.slice(0, k), s.slice(k, end), s.slice(end, len(s.s))), nil
	}
}
