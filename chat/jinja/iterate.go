package jinja

import "unicode/utf8"

// length is Python's len.
func (r *run) length(v Value) (int, error) {
	switch x := v.(type) {
	case Str:
		return x.runeLen(), r.touch(x)
	case *List:
		return len(x.items), nil
	case *Dict:
		return len(x.keys), nil
	case *Undefined:
		return 0, nil
	case *loopVar:
		return x.length(r)
	}
	return 0, errorf("a %s has no length", typeName(v))
}

// iter gives the items of anything iterable.
func (r *run) iter(v Value) (*Iter, error) {
	switch x := v.(type) {
	case *Iter:
		return x, nil
	case *List:
		i := 0
		return &Iter{name: "list_iterator", next: func() (Value, bool, error) {
			if i >= len(x.items) { // the list may grow meanwhile
				return nil, false, nil
			}
			i++
			return x.items[i-1], true, nil
		}}, nil
	case *Dict:
		if err := r.list(len(x.keys)); err != nil {
			return nil, err
		}
		return iterOf(append([]Value(nil), x.keys...)), nil
	case Str:
		whole, at := x.as(false), 0
		return &Iter{name: "str_iterator", next: func() (Value, bool, error) {
			if at == len(whole.s) {
				return nil, false, nil
			}
			_, w := utf8.DecodeRuneInString(whole.s[at:])
			at += w
			return whole.slice(at-w, at), true, r.step(1)
		}}, nil
	case *Undefined:
		return iterOf(nil), nil
	}
	return nil, errorf("a %s cannot be iterated over", typeName(v))
}

// items gives all items of anything iterable, as a slice of its own.
func (r *run) items(v Value) ([]Value, error) {
	it, err := r.iter(v)
	if err != nil {
		return nil, err
	}
	var out []Value
	for {
		x, ok, err := it.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		if err := r.list(1); err != nil {
			return nil, err
		}
		if err := r.step(1); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
}
