package jinja

import (
	"math"
	"math/big"
	"strings"
)

// percent is Python's text % values.
func (r *run) percent(format Str, v Value) (Value, error) {
	values := []Value{v}
	if l, ok := v.(*List); ok && l.kind == kindTuple {
		values = l.items
	}
	dict, _ := v.(*Dict)
	var b strBuilder
	used, at := 0, 0
	for {
		k := strings.IndexByte(format.s[at:], '%')
		if k < 0 {
			break
		}
		b.add(format.slice(at, at+k))
		at += k + 1
		d := &percentDirective{text: format.s, at: at}
		if err := d.parse(values, &used); err != nil {
			return nil, err
		}
		at = d.at
		if d.verb == '%' {
			b.addText("%", format.isUser(at-1))
			continue
		}
		var x Value
		switch {
		case d.named && dict == nil:
			return nil, errorf("format requires a mapping")
		case d.named:
			var ok bool
			if err := r.keyBytes(len(d.key)); err != nil {
				return nil, err
			}
			if x, ok = dict.getText(d.key); !ok {
				return nil, errorf("format: the mapping has no %q", d.key)
			}
		case used >= len(values):
			return nil, errorf("not enough arguments for format string")
		default:
			x = values[used]
			used++
		}
		s, err := d.apply(r, x)
		if err != nil {
			return nil, err
		}
		if format.safe {
			if s, err = r.escape(s); err != nil {
				return nil, err
			}
		}
		if err := r.text(b.len() + len(s.s)); err != nil {
			return nil, err
		}
		b.add(s)
	}
	b.add(format.slice(at, len(format.s)))
	if used < len(values) && dict == nil {
		if l, isList := v.(*List); !isUndefined(v) && (!isList || l.kind == kindTuple) {
			return nil, errorf("not all arguments converted during string formatting")
		}
	}
	return b.str().as(format.safe), r.text(b.len())
}

// percentDirective is one %[(key)][flags][width][.precision]type.
type percentDirective struct {
	text  string
	at    int
	key   string
	named bool
	left  bool
	zero  bool
	formatSpec
}

func (d *percentDirective) parse(values []Value, used *int) error {
	d.fill, d.sign, d.precision = " ", '-', -1
	if d.at < len(d.text) && d.text[d.at] == '(' {
		k := strings.IndexByte(d.text[d.at:], ')')
		if k < 0 {
			return errorf("incomplete format key")
		}
		d.named, d.key = true, d.text[d.at+1:d.at+k]
		d.at += k + 1
	}
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; c {
		case '-':
			d.left = true
			continue
		case '0':
			d.zero = true
			continue
		case '#':
			d.alt = true
			continue
		case '+', ' ':
			if d.sign != '+' {
				d.sign = c
			}
			continue
		}
		break
	}
	var err error
	if d.width, err = d.count(values, used, 0); err != nil {
		return err
	}
	if d.at < len(d.text) && d.text[d.at] == '.' {
		d.at++
		if d.precision, err = d.count(values, used, 0); err != nil {
			return err
		}
	}
	for d.at < len(d.text) && strings.IndexByte("hlL", d.text[d.at]) >= 0 {
		d.at++
	}
	if d.at >= len(d.text) {
		return errorf("incomplete format")
	}
	d.verb = d.text[d.at]
	d.at++
	return nil
}

// count reads a width or precision, which "*" takes from the values.
func (d *percentDirective) count(values []Value, used *int, otherwise int) (int, error) {
	if d.at < len(d.text) && d.text[d.at] == '*' {
		d.at++
		if *used >= len(values) {
			return 0, errorf("not enough arguments for format string")
		}
		n, ok := intIndex(values[*used])
		*used++
		if !ok {
			return 0, errorf("* wants int")
		}
		if n < 0 {
			d.left, n = true, -n
		}
		if n > maxFormatWidth {
			return 0, limitf("format: width or precision %d", n)
		}
		return int(n), nil
	}
	n, rest, err := leadingInt(d.text[d.at:], otherwise)
	d.at = len(d.text) - len(rest)
	return n, err
}

func (d *percentDirective) apply(r *run, x Value) (Str, error) {
	f := d.formatSpec
	f.align = '>'
	if d.zero && strings.IndexByte("diuxXofFeEgG", f.verb) >= 0 {
		f.fill, f.align = "0", '='
	}
	if d.left {
		f.fill, f.align = " ", '<'
	}
	switch f.verb {
	case 's', 'r', 'a':
		s, err := r.str(x)
		if f.verb != 's' {
			s, err = r.repr(x)
		}
		if err != nil {
			return Str{}, err
		}
		f.verb = 's'
		return f.apply(r, s)
	case 'c':
		if err := r.touch(x); err != nil {
			return Str{}, err
		}
		if s, ok := x.(Str); ok && s.runeLen() == 1 {
			return f.place(r, "", s, '>')
		}
	}
	i, v, isFloat, ok := toNumber(x)
	if !ok {
		if u, isU := x.(*Undefined); isU {
			return Str{}, u.err()
		}
		return Str{}, errorf("%%%c format: a number is required, not %s", f.verb, typeName(x))
	}
	if strings.IndexByte("diuxXoc", f.verb) >= 0 {
		if isFloat {
			if f.verb == 'x' || f.verb == 'X' || f.verb == 'o' || math.IsNaN(v) || math.IsInf(v, 0) {
				return Str{}, errorf("%%%c format: an integer is required, not float", f.verb)
			}
			i, _ = big.NewFloat(v).Int(nil)
		}
		f.precision = -1
		return f.apply(r, normInt(i))
	}
	if strings.IndexByte("fFeEgG", f.verb) < 0 {
		return Str{}, errorf("unsupported format character %q", string(f.verb))
	}
	if !isFloat {
		v = bigFloat(i)
	}
	return f.apply(r, v)
}

func filterFormat(r *run, v Value, a *args) (Value, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	if len(a.names) == 0 {
		return r.percent(s, newTuple(a.pos...))
	}
	if len(a.pos) > 0 {
		return nil, errorf("format: positional and named arguments at the same time")
	}
	d := NewDict()
	if err := r.fill(d, a); err != nil {
		return nil, err
	}
	return r.percent(s, d)
}
