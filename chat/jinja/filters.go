package jinja

import (
	"strings"
)

type filterFunc func(r *run, v Value, a *args) (Value, error)

// filters are Jinja2's, without those that make no sense in a prompt (random,
// pprint, urlize, xmlattr, filesizeformat, wordwrap); from_json is an extension
// that some templates of other engines use.
var filters = map[string]filterFunc{
	"abs":         filterAbs,
	"attr":        filterAttr,
	"batch":       filterBatch,
	"capitalize":  textFilter(Str.capitalize),
	"center":      filterCenter,
	"count":       filterLength,
	"d":           filterDefault,
	"default":     filterDefault,
	"dictsort":    filterDictSort,
	"e":           filterEscape,
	"escape":      filterEscape,
	"first":       filterFirst,
	"float":       filterFloat,
	"forceescape": filterForceEscape,
	"format":      filterFormat,
	"from_json":   filterFromJSON,
	"fromjson":    filterFromJSON,
	"groupby":     filterGroupBy,
	"indent":      filterIndent,
	"int":         filterInt,
	"items":       filterItems,
	"join":        filterJoin,
	"last":        filterLast,
	"length":      filterLength,
	"list":        filterList,
	"lower":       textFilter(Str.lower),
	"map":         filterMap,
	"max":         extreme(1),
	"min":         extreme(-1),
	"reject":      selecting(false, false),
	"rejectattr":  selecting(false, true),
	"replace":     filterReplace,
	"reverse":     filterReverse,
	"round":       filterRound,
	"safe":        filterSafe,
	"select":      selecting(true, false),
	"selectattr":  selecting(true, true),
	"slice":       filterSlice,
	"sort":        filterSort,
	"string":      filterString,
	"striptags":   filterStripTags,
	"sum":         filterSum,
	"title":       textFilter(jinjaTitle),
	"tojson":      filterToJSON,
	"trim":        filterTrim,
	"truncate":    filterTruncate,
	"unique":      filterUnique,
	"upper":       textFilter(Str.upper),
	"urlencode":   filterURLEncode,
	"wordcount":   filterWordCount,
}

func textFilter(f func(Str) Str) filterFunc {
	return func(r *run, v Value, a *args) (Value, error) {
		s, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if err := r.chars(len(s.s)); err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

// jinjaTitle is Jinja2's title filter: words begin after spaces, dashes and
// opening brackets.
func jinjaTitle(s Str) Str {
	start := true
	return s.mapRunes(func(i int, r rune) string {
		first := start
		start = isSpace(r) || strings.ContainsRune("-({[<", r)
		if first && !start {
			return upperRune(r)
		}
		return lowerAt(s.s, i, r)
	})
}

func filterSafe(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	return s.as(true), err
}

func filterForceEscape(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return filterEscape(r, s.as(false), a)
}

func filterString(r *run, v Value, a *args) (Value, error) { return r.str(v) }

func filterLength(r *run, v Value, a *args) (Value, error) {
	n, err := r.length(v)
	return int64(n), err
}

func filterDefault(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("default", 0, "default_value", "boolean")
	if err != nil {
		return nil, err
	}
	_, undef := v.(*Undefined)
	if undef || p[1] != nil && truth(p[1]) && !truth(v) {
		if p[0] == nil {
			return Str{}, nil
		}
		return p[0], nil
	}
	return v, nil
}

func filterTrim(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return strStrip(true, true)(r, s, a)
}

func filterReplace(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("replace", 2, "old", "new", "count")
	if err != nil {
		return nil, err
	}
	var s [3]Str
	for i, x := range []Value{v, p[0], p[1]} {
		if s[i], err = r.str(x); err != nil {
			return nil, err
		}
	}
	n := int64(-1)
	if !isNone(p[2]) {
		if n, err = intArg("replace", p[2], -1); err != nil {
			return nil, err
		}
	}
	out, err := r.replace(s[0], s[1], s[2], n)
	return out.as(false), err
}

func filterJoin(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("join", 0, "d", "attribute")
	if err != nil {
		return nil, err
	}
	var sep Str
	if p[0] != nil {
		if sep, err = r.str(p[0]); err != nil {
			return nil, err
		}
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	if !isNone(p[1]) {
		for i, it := range items {
			if items[i], err = r.path(it, p[1], nil); err != nil {
				return nil, err
			}
		}
	}
	return r.join(sep, items)
}

func filterIndent(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("indent", 0, "width", "first", "blank")
	if err != nil {
		return nil, err
	}
	s, err := textArg("indent", v)
	if err != nil {
		return nil, err
	}
	by := lit("    ")
	if w, ok := p[0].(Str); ok {
		by = w
	} else if p[0] != nil {
		n, err := intArg("indent", p[0], 4)
		if err != nil {
			return nil, err
		}
		if n > 1<<16 {
			return nil, limitf("indent by %d", n)
		}
		by = lit(strings.Repeat(" ", int(max(n, 0))))
	}
	first, blank := p[1] != nil && truth(p[1]), p[2] != nil && truth(p[2])
	if err := r.text(len(s.s)); err != nil {
		return nil, err
	}
	if err := r.list(strings.Count(s.s, "\n") + len(s.s)/charBytes); err != nil {
		return nil, err
	}
	lines := concat(s, lit("\n")).lines(false)
	if err := r.text(len(s.s) + len(lines)*(len(by.s)+1)); err != nil {
		return nil, err
	}
	var b strBuilder
	if first {
		b.add(by)
	}
	for i, line := range lines {
		if i > 0 {
			b.addText("\n", s.anyUser())
			if blank || line.s != "" {
				b.add(by)
			}
		}
		b.add(line)
	}
	return b.str().as(s.safe), nil
}

func filterEscape(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return r.escape(s)
}
