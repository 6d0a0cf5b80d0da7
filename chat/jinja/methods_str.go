package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type strMethod func(r *run, s Str, a *args) (Value, error)

// strMethods are the methods of Python's str that templates may call.
var strMethods = map[string]strMethod{
	"capitalize":   plain(Str.capitalize),
	"casefold":     plain(Str.casefold),
	"center":       pad(true, true),
	"count":        strCount,
	"endswith":     affix(strings.HasSuffix),
	"find":         strFind(strings.Index, false),
	"format":       func(r *run, s Str, a *args) (Value, error) { return r.format(s, a) },
	"index":        strFind(strings.Index, true),
	"isalnum":      all(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
	"isalpha":      all(unicode.IsLetter),
	"isascii":      func(r *run, s Str, a *args) (Value, error) { return s.ascii(), r.step(len(s.s) / charBytes) },
	"isdecimal":    all(unicode.IsDigit),
	"isdigit":      all(unicode.IsDigit),
	"islower":      func(r *run, s Str, a *args) (Value, error) { return r.isCase(s, false) },
	"isnumeric":    all(unicode.IsNumber),
	"isspace":      all(isSpace),
	"isupper":      func(r *run, s Str, a *args) (Value, error) { return r.isCase(s, true) },
	"join":         func(r *run, s Str, a *args) (Value, error) { return strJoin(r, s, a) },
	"ljust":        pad(false, true),
	"lower":        plain(Str.lower),
	"lstrip":       strStrip(true, false),
	"partition":    partition(strings.Index, false),
	"removeprefix": removeAffix(strings.HasPrefix, true),
	"removesuffix": removeAffix(strings.HasSuffix, false),
	"replace":      strReplace,
	"rfind":        strFind(strings.LastIndex, false),
	"rindex":       strFind(strings.LastIndex, true),
	"rjust":        pad(true, false),
	"rpartition":   partition(strings.LastIndex, true),
	"rsplit":       strSplit(true),
	"rstrip":       strStrip(false, true),
	"split":        strSplit(false),
	"splitlines":   strLines,
	"startswith":   affix(strings.HasPrefix),
	"strip":        strStrip(true, true),
	"swapcase":     plain(Str.swapcase),
	"title":        plain(Str.title),
	"upper":        plain(Str.upper),
	"zfill":        zfill,
}

func plain(f func(Str) Str) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		if err := r.chars(len(s.s)); err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

func all(f func(rune) bool) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		if err := r.step(len(s.s) / charBytes); err != nil {
			return nil, err
		}
		return s.all(f), nil
	}
}

func (r *run) isCase(s Str, upper bool) (bool, error) {
	if err := r.step(len(s.s) / charBytes); err != nil {
		return false, err
	}
	return s.isCase(upper), nil
}

// textArg wants a string.
func textArg(fn string, v Value) (Str, error) {
	s, ok := v.(Str)
	if !ok {
		if u, isU := v.(*Undefined); isU {
			return Str{}, u.err()
		}
		return Str{}, errorf("%s wants a string, not a %s", fn, typeName(v))
	}
	return s, nil
}

// intArg wants an integer; nil gives the default.
func intArg(fn string, v Value, otherwise int64) (int64, error) {
	if v == nil {
		return otherwise, nil
	}
	i, ok := intIndex(v)
	if !ok {
		return 0, errorf("%s wants an integer, not a %s", fn, typeName(v))
	}
	return i, nil
}

func isNone(v Value) bool {
	_, none := v.(None)
	return v == nil || none
}

func strStrip(left, right bool) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		v, err := a.bind("strip", 0, "chars")
		if err != nil {
			return nil, err
		}
		if isNone(v[0]) {
			return s.strip(nil, left, right), nil
		}
		cut, err := textArg("strip", v[0])
		if err != nil {
			return nil, err
		}
		if err := r.step(len(cut.s) / charBytes); err != nil {
			return nil, err
		}
		return s.strip(&cut, left, right), nil
	}
}

func strSplit(right bool) strMethod {
	return func(r *run, s Str, a *args) (Value, error) {
		v, err := a.bind("split", 0, "sep", "maxsplit")
		if err != nil {
			return nil, err
		}
		n, err := intArg("split", v[1], -1)
		if err != nil {
			return nil, err
		}
		limit := clamp(n, -1, len(s.s)+1)
		var parts []Str
		if isNone(v[0]) {
			if err := r.list(s.countFields()); err != nil {
				return nil, err
			}
			if right {
				parts = s.rfields(limit)
			} else {
				parts = s.fields(limit)
			}
			return strList(parts), nil
		}
		sep, err := textArg("split", v[0])
		if err != nil {
			return nil, err
		}
		if sep.s == "" {
			return nil, errorf("split: the separator is empty")
		}
		if err := r.list(strings.Count(s.s, sep.s) + 1); err != nil {
			return nil, err
		}
		if right && limit >= 0 {
			parts = s.rsplit(sep.s, limit)
		} else {
			parts = s.split(sep.s, limit)
		}
		return strList(parts), nil
	}
}

func strList(parts []Str) *List {
	out := newList(make([]Value, len(parts)))
	for i, p := range parts {
		out.items[i] = p
	}
	return out
}

func strLines(r *run, s Str, a *args) (Value, error) {
	v, err := a.bind("splitlines", 0, "keepends")
	if err != nil {
		return nil, err
	}
	if err := r.list(strings.Count(s.s, "\n") + len(s.s)/64 + 1); err != nil {
		return nil, err
	}
	return strList(s.lines(v[0] != nil && truth(v[0]))), nil
}

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
