package jinja

import (
	"strings"
	"unicode"
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
