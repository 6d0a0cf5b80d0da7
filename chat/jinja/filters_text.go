package jinja

import (
	"html"
	"strings"
	"unicode"
)

func filterWordCount(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	if err := r.step(len(s.s) / charBytes); err != nil {
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
	return n, nil
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

// filterStripTags removes comments and tags, collapses whitespace and resolves
// entities.
func filterStripTags(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	if err := r.chars(len(s.s)); err != nil {
		return nil, err
	}
	var b strBuilder
	at := 0
	for at < len(s.s) {
		open := strings.IndexByte(s.s[at:], '<')
		if open < 0 {
			break
		}
		open += at
		skip, closer := 1, ">"
		if strings.HasPrefix(s.s[open:], "<!--") {
			skip, closer = 4, "-->"
		}
		k := strings.Index(s.s[open+skip:], closer)
		if k < 0 {
			break
		}
		b.add(s.slice(at, open))
		at = open + skip + k + len(closer)
	}
	b.add(s.slice(at, len(s.s)))
	text := b.str()
	if err := r.list(text.countFields()); err != nil {
		return nil, err
	}
	out, err := r.join(lit(" "), strList(text.fields(-1)).items)
	if err != nil || !strings.Contains(out.s, "&") {
		return out, err
	}
	return tainted(html.UnescapeString(out.s), out.anyUser()), nil
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
