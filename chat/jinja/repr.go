package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// str is Python's str(v): what printing and joining show.
func (r *run) str(v Value) (Str, error) {
	switch x := v.(type) {
	case Str:
		return x, nil
	case *Undefined:
		return Str{}, nil
	}
	return r.repr(v)
}

// repr is Python's repr(v).
func (r *run) repr(v Value) (Str, error) {
	if err := r.touch(v); err != nil {
		return Str{}, err
	}
	var b strBuilder
	if err := r.writeRepr(&b, v); err != nil {
		return Str{}, err
	}
	if err := r.text(b.len()); err != nil {
		return Str{}, err
	}
	return b.str(), nil
}

func (r *run) writeRepr(b *strBuilder, v Value) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	if b.len() > r.lim.Output {
		return limitf("a value prints as more than %d bytes", r.lim.Output)
	}
	switch x := v.(type) {
	case Str:
		if err := r.chars(len(x.s)); err != nil {
			return err
		}
		if x.safe {
			b.addText("Markup(", false)
			b.add(quote(x))
			b.addText(")", false)
			break
		}
		b.add(quote(x))
	case *List:
		return r.reprList(b, x)
	case *Dict:
		return r.reprDict(b, x)
	case *Namespace:
		b.addText("<Namespace ", false)
		if err := r.reprDict(b, x.attrs); err != nil {
			return err
		}
		b.addText(">", false)
	default:
		b.addText(scalarText(v), false)
	}
	return nil
}

func scalarText(v Value) string {
	switch x := v.(type) {
	case None:
		return "None"
	case bool:
		if x {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(x, 10)
	case *big.Int:
		return x.String()
	case float64:
		return floatText(x)
	case *Undefined:
		return "Undefined"
	case *Macro:
		return "<Macro '" + x.def.name + "'>"
	case *Func:
		return "<function " + x.name + ">"
	}
	return fmt.Sprintf("<%s object>", typeName(v))
}

func (r *run) reprList(b *strBuilder, l *List) error {
	open, end := "[", "]"
	switch l.kind {
	case kindTuple:
		open, end = "(", ")"
		if len(l.items) == 1 {
			end = ",)"
		}
	case kindView:
		open, end = l.view+"([", "])"
	case kindRange:
		text := fmt.Sprintf("range(%d, %d", l.ends[0], l.ends[1])
		if l.ends[2] != 1 {
			text += fmt.Sprintf(", %d", l.ends[2])
		}
		b.addText(text+")", false)
		return nil
	}
	b.addText(open, false)
	for i, it := range l.items {
		if i > 0 {
			b.addText(", ", false)
		}
		if err := r.writeRepr(b, it); err != nil {
			return err
		}
	}
	b.addText(end, false)
	return nil
}

func (r *run) reprDict(b *strBuilder, d *Dict) error {
	b.addText("{", false)
	for i, k := range d.keys {
		if i > 0 {
			b.addText(", ", false)
		}
		if err := r.writeRepr(b, k); err != nil {
			return err
		}
		b.addText(": ", false)
		if err := r.writeRepr(b, d.vals[i]); err != nil {
			return err
		}
	}
	b.addText("}", false)
	return nil
}

// quote is Python's repr of a string.
func quote(s Str) Str {
	q := '\''
	if strings.ContainsRune(s.s, '\'') && !strings.ContainsRune(s.s, '"') {
		q = '"'
	}
	var b strBuilder
	b.addText(string(q), false)
	b.add(s.mapRunes(func(_ int, c rune) string {
		switch {
		case c == q || c == '\\':
			return `\` + string(c)
		case c == '\n':
			return `\n`
		case c == '\r':
			return `\r`
		case c == '\t':
			return `\t`
		case unicode.IsPrint(c):
			return ""
		case c < 0x100:
			return fmt.Sprintf(`\x%02x`, c)
		case c < 0x10000:
			return fmt.Sprintf(`\u%04x`, c)
		}
		return fmt.Sprintf(`\U%08x`, c)
	}))
	b.addText(string(q), false)
	return b.str()
}

// floatText is Python's repr of a float: the shortest digits that read back,
// with an exponent below 1e-4 and from 1e16 on.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
