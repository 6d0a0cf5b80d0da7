package jinja

import (
	"strconv"
	"strings"
)

// path follows an attribute path such as "function.name" or "0.id", as the
// attribute arguments of filters do; a missing step becomes otherwise.
func (r *run) path(v, attribute, otherwise Value) (Value, error) {
	parts := []Value{attribute}
	if s, ok := attribute.(Str); ok {
		parts = parts[:0]
		if err := r.list(strings.Count(s.s, ".") + len(s.s)/charBytes); err != nil {
			return nil, err
		}
		for _, p := range s.split(".", -1) {
			if n, err := strconv.ParseInt(p.s, 10, 64); err == nil && p.all(func(c rune) bool { return c >= '0' && c <= '9' }) {
				parts = append(parts, n)
			} else {
				parts = append(parts, p)
			}
		}
	}
	for _, p := range parts {
		var err error
		if v, err = r.item(v, p); err != nil {
			return nil, err
		}
		if _, undef := v.(*Undefined); undef && !isNone(otherwise) {
			v = otherwise
		}
	}
	return v, nil
}

func (r *run) foldCase(v Value, sensitive bool) (Value, error) {
	if s, ok := v.(Str); ok && !sensitive {
		if err := r.chars(len(s.s)); err != nil {
			return nil, err
		}
		return s.lower(), nil
	}
	return v, nil
}

func filterFirst(r *run, v Value, a *args) (Value, error) {
	it, err := r.iter(v)
	if err != nil {
		return nil, err
	}
	x, ok, err := it.next()
	if !ok && err == nil {
		return undefined("No first item, sequence was empty."), nil
	}
	return x, err
}

func filterLast(r *run, v Value, a *args) (Value, error) {
	if it, ok := v.(*Iter); ok {
		return nil, errorf("a %s cannot be reversed: make it a list first", it.name)
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return undefined("No last item, sequence was empty."), nil
	}
	return items[len(items)-1], nil
}

func filterList(r *run, v Value, a *args) (Value, error) {
	items, err := r.items(v)
	return newList(items), err
}

func filterReverse(r *run, v Value, a *args) (Value, error) {
	if s, ok := v.(Str); ok {
		all := &sliceExpr{step: &constExpr{v: int64(-1)}}
		return all.text(r, nil, s)
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	if _, lazy := v.(*Iter); lazy {
		return newList(items), nil
	}
	it := iterOf(items)
	it.name = "list_reverseiterator"
	return it, nil
}

func filterItems(r *run, v Value, a *args) (Value, error) {
	switch d := v.(type) {
	case *Undefined:
		return iterOf(nil), nil
	case *Dict:
		view, err := r.dictItems(d)
		if err != nil {
			return nil, err
		}
		return iterOf(view.items), nil
	}
	return failing(errorf("items wants a mapping, not a %s", typeName(v))), nil
}

func filterDictSort(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("dictsort", 0, "case_sensitive", "by", "reverse")
	if err != nil {
		return nil, err
	}
	d, ok := v.(*Dict)
	if !ok {
		if u, isU := v.(*Undefined); isU {
			return nil, u.err()
		}
		return nil, errorf("dictsort wants a dict, not a %s", typeName(v))
	}
	by := 0
	if s, ok := p[1].(Str); ok && s.s == "value" {
		by = 1
	} else if p[1] != nil && (!ok || s.s != "key") {
		return nil, errorf(`dictsort sorts by "key" or "value" only`)
	}
	view, err := r.dictItems(d)
	if err != nil {
		return nil, err
	}
	keys := make([]Value, len(view.items))
	for i, it := range view.items {
		if keys[i], err = r.foldCase(it.(*List).items[by], p[0] != nil && truth(p[0])); err != nil {
			return nil, err
		}
	}
	items, err := r.sorted(view.items, keys, p[2] != nil && truth(p[2]))
	return newList(items), err
}

func filterSort(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("sort", 0, "reverse", "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	var paths []Value
	if s, ok := p[2].(Str); ok {
		if err := r.list(strings.Count(s.s, ",")); err != nil {
			return nil, err
		}
		for _, part := range s.split(",", -1) {
			paths = append(paths, part)
		}
	} else if !isNone(p[2]) {
		paths = append(paths, p[2])
	}
	sensitive := p[1] != nil && truth(p[1])
	keys := make([]Value, len(items))
	for i, it := range items {
		key := newList(nil)  // of one item even without an attribute: lists
		if len(paths) == 0 { // compare for equality before they compare for order
			k, err := r.foldCase(it, sensitive)
			if err != nil {
				return nil, err
			}
			key.items = []Value{k}
		}
		for _, path := range paths {
			k, err := r.path(it, path, nil)
			if err != nil {
				return nil, err
			}
			if k, err = r.foldCase(k, sensitive); err != nil {
				return nil, err
			}
			key.items = append(key.items, k)
		}
		keys[i] = key
	}
	items, err = r.sorted(items, keys, p[0] != nil && truth(p[0]))
	return newList(items), err
}

// keyed gives for each item the value that unique, min, max and groupby go by.
func (r *run) keyed(items []Value, attribute, otherwise Value, sensitive bool) ([]Value, error) {
	keys := make([]Value, len(items))
	for i, it := range items {
		k, err := it, error(nil)
		if !isNone(attribute) {
			if k, err = r.path(it, attribute, otherwise); err != nil {
				return nil, err
			}
		}
		if keys[i], err = r.foldCase(k, sensitive); err != nil {
			return nil, err
		}
	}
	return keys, r.list(len(items))
}

func filterUnique(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("unique", 0, "case_sensitive", "attribute")
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	keys, err := r.keyed(items, p[1], nil, p[0] != nil && truth(p[0]))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var out []Value
	for i, it := range items {
		k, err := r.hash(keys[i])
		if err != nil {
			return nil, err
		}
		if !seen[k] {
			seen[k] = true
			out = append(out, it)
		}
	}
	return iterOf(out), nil
}

func extreme(sign int) filterFunc {
	return func(r *run, v Value, a *args) (Value, error) {
		p, err := a.bind("min", 0, "case_sensitive", "attribute")
		if err != nil {
			return nil, err
		}
		items, err := r.items(v)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return undefined("No aggregated item, sequence was empty."), nil
		}
		keys, err := r.keyed(items, p[1], nil, p[0] != nil && truth(p[0]))
		if err != nil {
			return nil, err
		}
		best := 0
		for i := 1; i < len(items); i++ {
			c, nan, err := r.order(keys[i], keys[best])
			if err != nil {
				return nil, err
			}
			if c*sign > 0 && !nan {
				best = i
			}
		}
		return items[best], nil
	}
}

func filterGroupBy(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("groupby", 1, "attribute", "default", "case_sensitive")
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	sensitive := p[2] != nil && truth(p[2])
	keys, err := r.keyed(items, p[0], p[1], sensitive)
	if err != nil {
		return nil, err
	}
	if items, err = r.sorted(items, keys, false); err != nil {
		return nil, err
	}
	out := newList(nil)
	var last Value
	for _, it := range items {
		real, err := r.path(it, p[0], p[1])
		if err != nil {
			return nil, err
		}
		key, err := r.foldCase(real, sensitive)
		if err != nil {
			return nil, err
		}
		same := false
		if last != nil {
			if same, err = r.equal(last, key); err != nil {
				return nil, err
			}
		}
		if !same {
			group := newTuple(real, newList(nil))
			group.names = []string{"grouper", "list"}
			out.items = append(out.items, group)
			last = key
		}
		members := out.items[len(out.items)-1].(*List).items[1].(*List)
		members.items = append(members.items, it)
	}
	return out, nil
}

func filterSum(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("sum", 0, "attribute", "start")
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	total := p[1]
	if total == nil {
		total = int64(0)
	}
	if _, text := total.(Str); text {
		return nil, errorf("sum does not add strings: use join")
	}
	for _, it := range items {
		if !isNone(p[0]) {
			if it, err = r.path(it, p[0], nil); err != nil {
				return nil, err
			}
		}
		if total, err = r.binary("+", total, it); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// filterAttr is attr(name): an attribute, never an item.
func filterAttr(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("attr", 1, "name")
	if err != nil {
		return nil, err
	}
	name, err := textArg("attr", p[0])
	if err != nil {
		return nil, err
	}
	if u, ok := v.(*Undefined); ok {
		return nil, u.err()
	}
	if x, ok, err := r.own(v, name.s); ok || err != nil {
		return x, err
	}
	return missing(v, name.s), nil
}
