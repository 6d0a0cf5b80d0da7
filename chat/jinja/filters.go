package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
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
	if err := r.chars(len(s.s)); err != nil {
		return nil, err
	}
	return s.escape(), nil
}

func filterAbs(r *run, v Value, a *args) (Value, error) {
	i, f, isFloat, ok := toNumber(v)
	if !ok {
		return nil, errorf("abs wants a number, not a %s", typeName(v))
	}
	if isFloat {
		return math.Abs(f), nil
	}
	return normInt(new(big.Int).Abs(i)), nil
}

func filterInt(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("int", 0, "default", "base")
	if err != nil {
		return nil, err
	}
	otherwise := p[0]
	if otherwise == nil {
		otherwise = int64(0)
	}
	base, err := intArg("int", p[1], 10)
	if err != nil {
		return nil, err
	}
	f := 0.0
	switch x := v.(type) {
	case int64, *big.Int:
		return x, nil
	case bool:
		i, _ := intIndex(x)
		return i, nil
	case float64:
		f = x
	case *Undefined:
		return nil, x.err()
	case Str:
		if n, ok := parseInt(x.s, int(base)); ok {
			return n, nil
		}
		var ok bool
		if f, ok = parseFloat(x.s); !ok {
			return otherwise, nil
		}
	default:
		return otherwise, nil
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return otherwise, nil
	}
	i, _ := big.NewFloat(f).Int(nil)
	return normInt(i), nil
}

// parseInt is Python's int(text, base).
func parseInt(s string, base int) (Value, bool) {
	s = strings.TrimFunc(s, isSpace)
	if len(s) > maxIntDigits || base < 0 || base > 36 || base == 1 || strings.Contains(s, "__") || strings.HasSuffix(s, "_") || strings.HasPrefix(s, "_") {
		return nil, false
	}
	s = strings.ReplaceAll(s, "_", "")
	if p := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]; p != "" {
		s = strings.TrimPrefix(strings.ToLower(s), p)
	}
	n, ok := new(big.Int).SetString(s, base)
	if !ok {
		return nil, false
	}
	return normInt(n), true
}

// parseFloat is Python's float(text).
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsAny(s, "xXpP") || len(s) > maxIntDigits {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func filterFloat(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("float", 0, "default")
	if err != nil {
		return nil, err
	}
	if u, ok := v.(*Undefined); ok {
		return nil, u.err()
	}
	if i, f, isFloat, ok := toNumber(v); ok {
		if isFloat {
			return f, nil
		}
		return bigFloat(i), nil
	}
	if s, ok := v.(Str); ok {
		if f, ok := parseFloat(s.s); ok {
			return f, nil
		}
	}
	if p[0] != nil {
		return p[0], nil
	}
	return 0.0, nil
}

func filterRound(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("round", 0, "precision", "method")
	if err != nil {
		return nil, err
	}
	prec, err := intArg("round", p[0], 0)
	if err != nil {
		return nil, err
	}
	method := "common"
	if s, ok := p[1].(Str); ok {
		method = s.s
	}
	i, f, isFloat, ok := toNumber(v)
	if !ok {
		return nil, errorf("round wants a number, not a %s", typeName(v))
	}
	if !isFloat {
		if method == "common" && prec >= 0 {
			return normInt(i), nil
		}
		f = bigFloat(i)
	}
	scale := math.Pow(10, float64(clamp(prec, -308, 308)))
	switch method {
	case "common":
		if prec >= 0 && prec < 300 {
			f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(prec), 64), 64)
			return f, nil
		}
		return math.RoundToEven(f*scale) / scale, nil
	case "ceil":
		return math.Ceil(f*scale) / scale, nil
	case "floor":
		return math.Floor(f*scale) / scale, nil
	}
	return nil, errorf("round: method %q is none of common, ceil, floor", method)
}

func filterWordCount(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	n, in := int64(0), false
	for _, c := range s.s {
		word := c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c)
		if word && !in {
			n++
		}
		in = word
	}
	return n, r.step(len(s.s) / 256)
}

func filterTruncate(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("truncate", 0, "length", "killwords", "end", "leeway")
	if err != nil {
		return nil, err
	}
	end := lit("...")
	if p[2] != nil {
		if end, err = textArg("truncate", p[2]); err != nil {
			return nil, err
		}
	}
	length, err := intArg("truncate", p[0], 255)
	if err != nil {
		return nil, err
	}
	leeway := int64(5)
	if !isNone(p[3]) {
		if leeway, err = intArg("truncate", p[3], 5); err != nil {
			return nil, err
		}
	}
	size, err := r.length(v)
	if err != nil {
		return nil, err
	}
	n := int64(size)
	keep := length - int64(end.runeLen())
	if keep < 0 || leeway < 0 {
		return nil, errorf("truncate: length %d is shorter than the end, or the leeway negative", length)
	}
	if n <= length || n-length <= leeway {
		return v, nil
	}
	s, err := textArg("truncate", v)
	if err != nil {
		return nil, err
	}
	cut := s.slice(0, s.offset(int(keep)))
	if p[1] == nil || !truth(p[1]) {
		cut = cut.rsplit(" ", 1)[0]
	}
	return r.add(cut, end)
}

func filterCenter(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("center", 0, "width")
	if err != nil {
		return nil, err
	}
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	width, err := intArg("center", p[0], 80)
	if err != nil {
		return nil, err
	}
	return r.pad(s, width, lit(" "), true, true)
}

// filterStripTags removes comments and tags and collapses whitespace.
func filterStripTags(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	var b strBuilder
	for s.s != "" {
		open := strings.IndexByte(s.s, '<')
		if open < 0 {
			break
		}
		skip, closer := 1, ">"
		if strings.HasPrefix(s.s[open:], "<!--") {
			skip, closer = 4, "-->"
		}
		k := strings.Index(s.s[open+skip:], closer)
		if k < 0 {
			break
		}
		b.add(s.slice(0, open))
		s = s.slice(open+skip+k+len(closer), len(s.s))
	}
	b.add(s)
	var words []Value
	for _, w := range b.str().fields(-1) {
		words = append(words, w)
	}
	if err := r.list(len(words)); err != nil {
		return nil, err
	}
	return r.join(lit(" "), words)
}

// filterURLEncode quotes text for a path, or pairs for a query.
func filterURLEncode(r *run, v Value, a *args) (Value, error) {
	if d, ok := v.(*Dict); ok {
		view, err := r.dictItems(d)
		if err != nil {
			return nil, err
		}
		v = view
	}
	if _, text := v.(Str); text || !isIterable(v) {
		return r.urlQuote(v, false)
	}
	pairs, err := r.items(v)
	if err != nil {
		return nil, err
	}
	var out []Value
	for _, p := range pairs {
		kv, err := r.items(p)
		if err != nil {
			return nil, err
		}
		if len(kv) != 2 {
			return nil, errorf("urlencode wants pairs, got %d items", len(kv))
		}
		key, err := r.urlQuote(kv[0], true)
		if err != nil {
			return nil, err
		}
		val, err := r.urlQuote(kv[1], true)
		if err != nil {
			return nil, err
		}
		out = append(out, concat(key, lit("="), val))
	}
	return r.join(lit("&"), out)
}

func (r *run) urlQuote(v Value, query bool) (Str, error) {
	s, err := r.str(v)
	if err != nil {
		return Str{}, err
	}
	if err := r.chars(3 * len(s.s)); err != nil {
		return Str{}, err
	}
	const hex = "0123456789ABCDEF"
	return s.mapRunes(func(_ int, c rune) string {
		if c < 0x80 && (isDec(byte(c)) || c|32 >= 'a' && c|32 <= 'z' || strings.ContainsRune("_.-~", c)) || c == '/' && !query {
			return ""
		}
		if c == ' ' && query {
			return "+"
		}
		var out []byte
		for _, x := range []byte(string(c)) {
			out = append(out, '%', hex[x>>4], hex[x&15])
		}
		return string(out)
	}), nil
}
