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

func foldCase(v Value, sensitive bool) Value {
	if s, ok := v.(Str); ok && !sensitive {
		return s.lower()
	}
	return v
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
		keys[i] = foldCase(it.(*List).items[by], p[0] != nil && truth(p[0]))
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
			key.items = []Value{foldCase(it, sensitive)}
		}
		for _, path := range paths {
			k, err := r.path(it, path, nil)
			if err != nil {
				return nil, err
			}
			key.items = append(key.items, foldCase(k, sensitive))
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
		k := it
		if !isNone(attribute) {
			var err error
			if k, err = r.path(it, attribute, otherwise); err != nil {
				return nil, err
			}
		}
		keys[i] = foldCase(k, sensitive)
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
		k, err := hashKey(keys[i])
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
		key := foldCase(real, sensitive)
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

func filterMap(r *run, v Value, a *args) (Value, error) {
	attribute, byAttr := a.take("attribute")
	otherwise, _ := a.take("default")
	if byAttr && (len(a.pos) > 0 || len(a.names) > 0) || !byAttr && (len(a.pos) == 0 || otherwise != nil) {
		return nil, errorf("map wants the name of a filter, or attribute=")
	}
	if !truth(v) {
		return iterOf(nil), nil
	}
	it, err := r.iter(v)
	if err != nil {
		return failing(err), nil
	}
	apply := func(x Value) (Value, error) { return r.path(x, attribute, otherwise) }
	if !byAttr {
		name, err := textArg("map", a.pos[0])
		if err != nil {
			return nil, err
		}
		fn, ok := r.filters[name.s]
		if !ok {
			return nil, errorf("there is no filter named %q", name.s)
		}
		apply = func(x Value) (Value, error) {
			return fn(r, x, &args{pos: a.pos[1:], names: a.names, named: a.named})
		}
	}
	return r.lazily(it, func(x Value) (Value, bool, error) {
		y, err := apply(x)
		return y, true, err
	}), nil
}

// failing is an iterator that tells an error when it is used: Jinja2's filters
// that are generators look at their input no sooner.
func failing(err error) *Iter {
	return &Iter{name: "generator", next: func() (Value, bool, error) { return nil, false, err }}
}

// lazily yields what f gives for those items that it keeps.
func (r *run) lazily(it *Iter, f func(Value) (Value, bool, error)) *Iter {
	return &Iter{name: "generator", next: func() (Value, bool, error) {
		if err := r.enter(); err != nil { // chains of iterators nest
			return nil, false, err
		}
		defer r.leave()
		for {
			x, ok, err := it.next()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := r.step(1); err != nil {
				return nil, false, err
			}
			y, keep, err := f(x)
			if err != nil {
				return nil, false, err
			}
			if keep {
				return y, true, nil
			}
		}
	}}
}

// selecting makes select, reject, selectattr and rejectattr.
func selecting(want, byAttr bool) filterFunc {
	return func(r *run, v Value, a *args) (Value, error) {
		if !truth(v) {
			return iterOf(nil), nil
		}
		rest := a.pos
		var attribute Value
		if byAttr {
			if len(rest) == 0 {
				return nil, errorf("selectattr wants the name of an attribute")
			}
			attribute, rest = rest[0], rest[1:]
		}
		test := func(x Value) (bool, error) { return truth(x), nil }
		if len(rest) > 0 {
			name, err := textArg("select", rest[0])
			if err != nil {
				return nil, err
			}
			fn, ok := r.tests[name.s]
			if !ok {
				return nil, errorf("there is no test named %q", name.s)
			}
			test = func(x Value) (bool, error) {
				return fn(r, x, &args{pos: rest[1:], names: a.names, named: a.named})
			}
		}
		it, err := r.iter(v)
		if err != nil {
			return failing(err), nil
		}
		return r.lazily(it, func(x Value) (Value, bool, error) {
			y := x
			if byAttr {
				var err error
				if y, err = r.path(x, attribute, nil); err != nil {
					return nil, false, err
				}
			}
			ok, err := test(y)
			return x, ok == want, err
		}), nil
	}
}

func filterBatch(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("batch", 1, "linecount", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := intArg("batch", p[0], 1)
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > 1<<20 {
		return nil, errorf("batch of %d items", n)
	}
	var out []Value
	for len(items) > 0 {
		k := min(int(n), len(items))
		row := newList(items[:k:k])
		items = items[k:]
		for !isNone(p[1]) && len(row.items) < int(n) {
			if err := r.list(1); err != nil {
				return nil, err
			}
			row.items = append(row.items, p[1])
		}
		out = append(out, row)
	}
	return iterOf(out), nil
}

func filterSlice(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("slice", 1, "slices", "fill_with")
	if err != nil {
		return nil, err
	}
	n, err := intArg("slice", p[0], 1)
	if err != nil {
		return nil, err
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > 1<<16 {
		return nil, errorf("slice into %d parts", n)
	}
	if err := r.list(2 * int(n)); err != nil {
		return nil, err
	}
	per, extra, at := len(items)/int(n), len(items)%int(n), 0
	var out []Value
	for i := 0; i < int(n); i++ {
		k := per
		if i < extra {
			k++
		}
		row := newList(append([]Value(nil), items[at:at+k]...))
		if !isNone(p[1]) && i >= extra {
			row.items = append(row.items, p[1])
		}
		out = append(out, row)
		at += k
	}
	return iterOf(out), nil
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
	return missing(v, strings.Clone(name.s)), nil
}
