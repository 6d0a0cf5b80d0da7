package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
)

// jsonStyle holds the options of Python's json.dumps.
type jsonStyle struct {
	item, key Str
	indent    *Str // per level; nil writes one line
	ascii     bool
	sort      bool
}

// filterToJSON is json.dumps with transformers' default of ensure_ascii=False;
// no HTML is escaped.
func filterToJSON(r *run, v Value, a *args) (Value, error) {
	p, err := a.bind("tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys")
	if err != nil {
		return nil, err
	}
	j := &jsonStyle{item: lit(", "), key: lit(": ")}
	j.ascii = p[0] != nil && truth(p[0])
	j.sort = p[3] != nil && truth(p[3])
	if !isNone(p[1]) {
		by, ok := p[1].(Str)
		if !ok {
			n, err := intArg("tojson", p[1], 0)
			if err != nil {
				return nil, err
			}
			by = lit(strings.Repeat(" ", clamp(n, 0, 64)))
		}
		j.indent = &by
		j.item = lit(",")
	}
	if !isNone(p[2]) {
		seps, err := r.items(p[2])
		if err != nil {
			return nil, err
		}
		if len(seps) != 2 {
			return nil, errorf("tojson: separators must be a pair")
		}
		if j.item, err = textArg("tojson", seps[0]); err != nil {
			return nil, err
		}
		if j.key, err = textArg("tojson", seps[1]); err != nil {
			return nil, err
		}
	}
	var b strBuilder
	if err := j.write(r, &b, v, 0); err != nil {
		return nil, err
	}
	return b.str(), r.text(b.len())
}

func (j *jsonStyle) newline(b *strBuilder, depth int) {
	if j.indent == nil {
		return
	}
	b.addText("\n", false)
	for ; depth > 0; depth-- {
		b.add(*j.indent)
	}
}

func (j *jsonStyle) write(r *run, b *strBuilder, v Value, depth int) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	if b.len() > r.lim.Output {
		return limitf("JSON of more than %d bytes", r.lim.Output)
	}
	switch x := v.(type) {
	case Str:
		if err := r.chars(len(x.s)); err != nil {
			return err
		}
		j.text(b, x)
	case *List:
		if x.kind <= kindTuple {
			return j.list(r, b, x, depth)
		}
		return errorf("tojson: a %s has no JSON form", typeName(v))
	case *Dict:
		return j.dict(r, b, x, depth)
	default:
		s, ok := jsonScalar(v)
		if !ok {
			return errorf("tojson: a %s has no JSON form", typeName(v))
		}
		b.addText(s, false)
	}
	return nil
}

func jsonScalar(v Value) (string, bool) {
	switch x := v.(type) {
	case None:
		return "null", true
	case bool:
		return strconv.FormatBool(x), true
	case int64, *big.Int:
		return scalarText(x), true
	case float64:
		switch {
		case math.IsNaN(x):
			return "NaN", true
		case math.IsInf(x, 1):
			return "Infinity", true
		case math.IsInf(x, -1):
			return "-Infinity", true
		}
		return floatText(x), true
	}
	return "", false
}

func (j *jsonStyle) text(b *strBuilder, s Str) {
	b.addText(`"`, false)
	b.add(s.mapRunes(func(_ int, c rune) string {
		switch {
		case c == '"' || c == '\\':
			return `\` + string(c)
		case c == '\n':
			return `\n`
		case c == '\r':
			return `\r`
		case c == '\t':
			return `\t`
		case c == '\b':
			return `\b`
		case c == '\f':
			return `\f`
		case c < 0x20 || j.ascii && c > 0x7e && c < 0x10000:
			return fmt.Sprintf(`\u%04x`, c)
		case j.ascii && c >= 0x10000:
			hi, lo := utf16.EncodeRune(c)
			return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
		}
		return ""
	}))
	b.addText(`"`, false)
}

func (j *jsonStyle) list(r *run, b *strBuilder, l *List, depth int) error {
	if len(l.items) == 0 {
		b.addText("[]", false)
		return nil
	}
	b.addText("[", false)
	for i, it := range l.items {
		if i > 0 {
			b.add(j.item)
		}
		j.newline(b, depth+1)
		if err := j.write(r, b, it, depth+1); err != nil {
			return err
		}
	}
	j.newline(b, depth)
	b.addText("]", false)
	return nil
}

func (j *jsonStyle) dict(r *run, b *strBuilder, d *Dict, depth int) error {
	if len(d.keys) == 0 {
		b.addText("{}", false)
		return nil
	}
	if j.sort {
		view, err := r.dictItems(d)
		if err != nil {
			return err
		}
		items, err := r.sorted(view.items, d.keys, false)
		if err != nil {
			return err
		}
		d = NewDict()
		for _, it := range items {
			if err := r.put(d, it.(*List).items[0], it.(*List).items[1]); err != nil {
				return err
			}
		}
	}
	b.addText("{", false)
	for i, k := range d.keys {
		if i > 0 {
			b.add(j.item)
		}
		j.newline(b, depth+1)
		key, ok := k.(Str)
		if !ok {
			text, ok := jsonScalar(k)
			if !ok {
				return errorf("tojson: a %s cannot be a key", typeName(k))
			}
			key = lit(text)
		}
		if err := r.chars(len(key.s)); err != nil {
			return err
		}
		j.text(b, key)
		b.add(j.key)
		if err := j.write(r, b, d.vals[i], depth+1); err != nil {
			return err
		}
	}
	j.newline(b, depth)
	b.addText("}", false)
	return nil
}

func filterFromJSON(r *run, v Value, a *args) (Value, error) {
	s, err := textArg("from_json", v)
	if err != nil {
		return nil, err
	}
	if err := r.list(len(s.s)); err != nil {
		return nil, err
	}
	out, err := FromJSON([]byte(s.s), s.anyUser())
	if err != nil {
		return nil, errorf("from_json: %v", err)
	}
	return out, nil
}
