package jinja

import (
	"strconv"
	"strings"
)

// format is Python's text.format(…).
func (r *run) format(s Str, a *args) (Value, error) {
	out, err := (&fieldFormatter{r: r, a: a}).expand(s, 0)
	return out, err
}

// fieldFormatter fills the fields of one call of format.
type fieldFormatter struct {
	r    *run
	a    *args
	auto int
	// fields are numbered either all by hand or all in order
	manual bool
}

func (f *fieldFormatter) expand(s Str, depth int) (Str, error) {
	if depth > 2 {
		return Str{}, errorf("format: fields nested too deep")
	}
	var b strBuilder
	for i := 0; i < len(s.s); {
		k := strings.IndexAny(s.s[i:], "{}")
		if k < 0 {
			b.add(s.slice(i, len(s.s)))
			break
		}
		b.add(s.slice(i, i+k))
		i += k
		if i+1 < len(s.s) && s.s[i+1] == s.s[i] {
			b.add(s.slice(i, i+1))
			i += 2
			continue
		}
		if s.s[i] == '}' {
			return Str{}, errorf("format: single '}' in format string")
		}
		end := fieldEnd(s.s[i:])
		if end < 0 {
			return Str{}, errorf("format: expected '}' before end of string")
		}
		text, err := f.field(s.slice(i+1, i+end), depth)
		if err != nil {
			return Str{}, err
		}
		if s.safe {
			if text, err = f.r.escape(text); err != nil {
				return Str{}, err
			}
		}
		if err := f.r.text(b.len() + len(text.s)); err != nil {
			return Str{}, err
		}
		b.add(text)
		i += end + 1
	}
	return b.str().as(s.safe), f.r.text(b.len())
}

func fieldEnd(s string) int {
	open := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// field is one replacement field: name[!conversion][:spec].
func (f *fieldFormatter) field(s Str, depth int) (Str, error) {
	name, spec := s, Str{}
	conv := byte(0)
	if k := strings.IndexByte(s.s, ':'); k >= 0 {
		name, spec = s.slice(0, k), s.slice(k+1, len(s.s))
	}
	if k := strings.IndexByte(name.s, '!'); k >= 0 {
		if k+2 != len(name.s) {
			return Str{}, errorf("format: bad conversion in %q", s.s)
		}
		conv = name.s[k+1]
		name = name.slice(0, k)
	}
	v, err := f.value(name.s)
	if err != nil {
		return Str{}, err
	}
	switch conv {
	case 's':
		v, err = f.r.str(v)
	case 'r', 'a':
		v, err = f.r.repr(v)
	}
	if err != nil {
		return Str{}, err
	}
	if strings.ContainsAny(spec.s, "{}") {
		if spec, err = f.expand(spec, depth+1); err != nil {
			return Str{}, err
		}
	}
	if spec.s == "" {
		return f.r.str(v)
	}
	parsed, err := parseSpec(spec.s)
	if err != nil {
		return Str{}, err
	}
	return parsed.apply(f.r, v)
}

// value finds what a field name such as "0", "user.name" or "x[key]" means.
func (f *fieldFormatter) value(name string) (Value, error) {
	k := strings.IndexAny(name, ".[")
	if k < 0 {
		k = len(name)
	}
	first, rest := name[:k], name[k:]
	v, err := f.argument(first)
	for err == nil && rest != "" {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			v, err = f.r.attrOf(f.r, v, rest[1:1+end])
			rest = rest[1+end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if end < 0 {
			return nil, errorf("format: missing ']' in %q", name)
		}
		key := rest[1:end]
		var index Value = lit(key)
		if n, convErr := strconv.ParseInt(key, 10, 64); convErr == nil {
			index = n
		}
		v, err = f.r.itemOf(f.r, v, index)
		rest = rest[end+1:]
	}
	return v, err
}

func (f *fieldFormatter) argument(name string) (Value, error) {
	i := f.auto
	if name == "" {
		f.auto++
	} else if n, err := strconv.Atoi(name); err == nil {
		i, f.manual = n, true
	} else {
		if err := f.r.step(len(f.a.names) / charBytes); err != nil {
			return nil, err
		}
		for k, n := range f.a.names {
			if n == name {
				return f.a.named[k], nil
			}
		}
		return nil, errorf("format: there is no argument %q", name)
	}
	if f.manual && f.auto > 0 {
		return nil, errorf("format: fields with and without numbers")
	}
	if i < 0 || i >= len(f.a.pos) {
		return nil, errorf("format: there is no argument %d", i)
	}
	return f.a.pos[i], nil
}
