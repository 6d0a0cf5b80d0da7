package jinja

// maxRange is the sandbox's bound on the items of a range.
const maxRange = 100000

// globals are the functions every template has.
var globals = map[string]Value{
	"range":           &Func{"range", globalRange},
	"namespace":       &Func{"namespace", globalNamespace},
	"dict":            &Func{"dict", globalDict},
	"raise_exception": &Func{"raise_exception", globalRaise},
	"strftime_now":    &Func{"strftime_now", globalStrftime},
	"cycler":          &Func{"cycler", globalCycler},
	"joiner":          &Func{"joiner", globalJoiner},
}

func globalRange(r *run, a *args) (Value, error) {
	if len(a.names) > 0 || len(a.pos) == 0 || len(a.pos) > 3 {
		return nil, errorf("range wants one to three integers")
	}
	n := make([]int64, len(a.pos))
	for i, v := range a.pos {
		k, ok := intIndex(v)
		if !ok {
			if u, isU := v.(*Undefined); isU {
				return nil, u.err()
			}
			return nil, errorf("range wants integers, not a %s", typeName(v))
		}
		n[i] = k
	}
	lo, hi, step := int64(0), n[0], int64(1)
	if len(n) > 1 {
		lo, hi = n[0], n[1]
	}
	if len(n) > 2 {
		step = n[2]
	}
	if step == 0 {
		return nil, errorf("range cannot have step 0")
	}
	out := &List{kind: kindRange, ends: [3]int64{lo, hi, step}}
	count := rangeLen(lo, hi, step)
	if count > maxRange {
		return nil, limitf("a range of more than %d items", maxRange)
	}
	if err := r.list(int(count)); err != nil {
		return nil, err
	}
	out.items = make([]Value, count)
	for i := range out.items {
		out.items[i] = lo + int64(i)*step
	}
	return out, nil
}

// rangeLen is the number of items of a range; differences are taken without a
// sign, where they cannot overflow.
func rangeLen(lo, hi, step int64) uint64 {
	switch {
	case step > 0 && lo < hi:
		return (uint64(hi)-uint64(lo)-1)/uint64(step) + 1
	case step < 0 && lo > hi:
		return (uint64(lo)-uint64(hi)-1)/-uint64(step) + 1
	}
	return 0
}

func globalNamespace(r *run, a *args) (Value, error) {
	d := NewDict()
	if err := r.fill(d, a); err != nil {
		return nil, err
	}
	for _, k := range d.keys {
		if s, ok := k.(Str); ok && len(s.s) > 0 && s.s[0] == '_' {
			return nil, errorf("a namespace cannot hold %q: names with a leading underscore are refused", s.s)
		}
	}
	return &Namespace{d}, nil
}

func globalDict(r *run, a *args) (Value, error) {
	d := NewDict()
	return d, r.fill(d, a)
}

func globalRaise(r *run, a *args) (Value, error) {
	v, err := a.bind("raise_exception", 1, "message")
	if err != nil {
		return nil, err
	}
	s, err := r.str(v[0])
	if err != nil {
		return nil, err
	}
	return nil, &Error{Kind: ErrRaised, Msg: brief(s.s)}
}

func globalStrftime(r *run, a *args) (Value, error) {
	v, err := a.bind("strftime_now", 1, "format")
	if err != nil {
		return nil, err
	}
	s, err := textArg("strftime_now", v[0])
	if err != nil {
		return nil, err
	}
	if err := r.text(32 * len(s.s)); err != nil {
		return nil, err
	}
	return tainted(strftime(s.s, r.now), s.anyUser()), nil
}

// globalCycler makes an object that goes round its items: next(), current, reset().
func globalCycler(r *run, a *args) (Value, error) {
	if len(a.pos) == 0 {
		return nil, errorf("cycler: no items")
	}
	items, at := a.pos, 0
	d := NewDict()
	d.Set("current", items[0])
	move := func(to int) {
		at = to % len(items)
		d.Set("current", items[at])
	}
	d.Set("next", &Func{"next", func(r *run, _ *args) (Value, error) {
		v := items[at]
		move(at + 1)
		return v, nil
	}})
	d.Set("reset", &Func{"reset", func(r *run, _ *args) (Value, error) {
		move(0)
		return None{}, nil
	}})
	return &Namespace{d}, nil
}

// globalJoiner makes a function that gives nothing once and then the separator.
func globalJoiner(r *run, a *args) (Value, error) {
	v, err := a.bind("joiner", 0, "sep")
	if err != nil {
		return nil, err
	}
	sep, used := v[0], false
	if sep == nil {
		sep = lit(", ")
	}
	return &Func{"joiner", func(r *run, _ *args) (Value, error) {
		if !used {
			used = true
			return Str{}, nil
		}
		return sep, nil
	}}, nil
}
