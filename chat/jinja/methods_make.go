package jinja

import (
	"strings"
	"unicode/utf8"
)

func strReplace(r *run, s Str, a *args) (Value, error) {
	v, err := a.bind("replace", 2, "old", "new", "count")
	if err != nil {
		return nil, err
	}
	from, err := textArg("replace", v[0])
	if err != nil {
		return nil, err
	}
	to, err := textArg("replace", v[1])
	if err != nil {
		return nil, err
	}
	n := int64(-1)
	if !isNone(v[2]) {
		if n, err = intArg("replace", v[2], -1); err != nil {
			return nil, err
		}
	}
	if s.safe {
		if to, err = r.escape(to); err != nil {
			return nil, err
		}
	}
	out, err := r.replace(s, from, to, n)
	return out.as(s.safe), err
}

func (r *run) replace(s, from, to Str, n int64) (Str, error) {
	found := strings.Count(s.s, from.s) // with an empty from, one per rune and one more
	if n >= 0 {
		found = clamp(n, 0, found)
	}
	if found == 0 {
		return s, nil
	}
	if err := r.step(found / charBytes); err != nil {
		return Str{}, err
	}
	if len(to.s) > 0 && found > r.lim.Output/len(to.s) {
		return Str{}, limitf("replace makes a string of more than %d bytes", r.lim.Output)
	}
	if err := r.text(len(s.s) + found*len(to.s)); err != nil {
		return Str{}, err
	}
	var b strBuilder
	at := 0
	for i := 0; i < found; i++ {
		k := at
		if from.s != "" {
			k += strings.Index(s.s[at:], from.s)
		} else if i > 0 {
			_, w := utf8.DecodeRuneInString(s.s[at:])
			k = at + w
		}
		b.add(s.slice(at, k))
		b.add(to)
		at = k + len(from.s)
	}
	b.add(s.slice(at, len(s.s)))
	return b.str(), r.made(b.str())
}

func strJoin(r *run, s Str, a *args) (Value, error) {
	v, err := a.bind("join", 1, "iterable")
	if err != nil {
		return nil, err
	}
	items, err := r.items(v[0])
	if err != nil {
		return nil, err
	}
	for i, it := range items {
		if s.safe { // Markup joins anything, escaped
			text, err := r.str(it)
			if err != nil {
				return nil, err
			}
			if items[i], err = r.escape(text); err != nil {
				return nil, err
			}
		} else if _, ok := it.(Str); !ok {
			return nil, errorf("join: item %d is a %s, not a string", i, typeName(it))
		}
	}
	out, err := r.join(s, items)
	return out.as(s.safe), err
}

func (r *run) join(sep Str, items []Value) (Str, error) {
	var b strBuilder
	for i, it := range items {
		if i > 0 {
			b.add(sep)
		}
		s, err := r.str(it)
		if err != nil {
			return Str{}, err
		}
		if b.len()+len(s.s)+len(sep.s) > r.lim.Output {
			return Str{}, limitf("join makes a string of more than %d bytes", r.lim.Output)
		}
		b.add(s)
	}
	if err := r.text(b.len()); err != nil {
		return Str{}, err
	}
	return b.str(), r.made(b.str())
}

func pad(left, right bool) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		v, err := a.bind("center", 1, "width", "fillchar")
		if err != nil {
			return nil, err
		}
		width, err := intArg("center", v[0], 0)
		if err != nil {
			return nil, err
		}
		fill := lit(" ")
		if v[1] != nil {
			if fill, err = textArg("center", v[1]); err != nil {
				return nil, err
			}
		}
		if fill.runeLen() != 1 {
			return nil, errorf("center: the fill must be one character")
		}
		return r.pad(s, width, fill, left, right)
	}
}

func (r *run) pad(s Str, width int64, fill Str, left, right bool) (Value, error) {
	gap := width - int64(s.runeLen())
	if gap <= 0 {
		return s, nil
	}
	if gap > int64(r.lim.Output) {
		return nil, limitf("padding to %d characters", width)
	}
	if err := r.text(len(s.s) + int(gap)*len(fill.s)); err != nil {
		return nil, err
	}
	before := int64(0)
	if left && right {
		before = gap/2 + gap&width&1 // CPython's rule for odd gaps
	} else if left {
		before = gap
	}
	return concat(lit(strings.Repeat(fill.s, int(before))), s, lit(strings.Repeat(fill.s, int(gap-before)))).as(s.safe), nil
}

func zfill(r *run, s Str, a *args) (Value, error) {
	v, err := a.bind("zfill", 1, "width")
	if err != nil {
		return nil, err
	}
	width, err := intArg("zfill", v[0], 0)
	if err != nil {
		return nil, err
	}
	sign := 0
	if s.s != "" && (s.s[0] == '-' || s.s[0] == '+') {
		sign = 1
	}
	rest, err := r.pad(s.slice(sign, len(s.s)), width-int64(sign), lit("0"), true, false)
	if err != nil {
		return nil, err
	}
	return concat(s.slice(0, sign), rest.(Str)).as(s.safe), nil
}
