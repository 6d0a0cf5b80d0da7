package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxFormatWidth bounds the widths and precisions of format strings.
const maxFormatWidth = 1 << 16

// formatSpec is a format specification: [[fill]align][sign][#][0][width][,][.prec][type].
type formatSpec struct {
	fill      string
	align     byte // '<' '>' '^' '=' or 0
	sign      byte // '-', '+' or ' '
	alt       bool
	comma     string
	width     int
	precision int // -1 if not given
	verb      byte
}

func parseSpec(s string) (formatSpec, error) {
	f := formatSpec{fill: " ", sign: '-', precision: -1}
	whole := s
	runes := []rune(s)
	if len(runes) > 1 && strings.ContainsRune("<>^=", runes[1]) {
		f.fill, f.align = string(runes[0]), byte(runes[1])
		s = string(runes[2:])
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		f.align, s = s[0], s[1:]
	}
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		f.sign, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, "#") {
		f.alt, s = true, s[1:]
	}
	if strings.HasPrefix(s, "0") {
		if s = s[1:]; f.align == 0 {
			f.fill, f.align = "0", '='
		}
	}
	var err error
	if f.width, s, err = leadingInt(s, 0); err != nil {
		return f, err
	}
	if s != "" && (s[0] == ',' || s[0] == '_') {
		f.comma, s = s[:1], s[1:]
	}
	if strings.HasPrefix(s, ".") {
		if f.precision, s, err = leadingInt(s[1:], -1); err != nil {
			return f, err
		}
	}
	if s != "" {
		f.verb, s = s[0], s[1:]
	}
	if s != "" {
		return f, errorf("format: bad specification %q", whole)
	}
	return f, nil
}

func leadingInt(s string, otherwise int) (int, string, error) {
	n := 0
	for n < len(s) && isDec(s[n]) {
		n++
	}
	if n == 0 {
		return otherwise, s, nil
	}
	v, err := strconv.Atoi(s[:n])
	if err != nil || v > maxFormatWidth {
		return 0, s, limitf("format: width or precision %s", s[:n])
	}
	return v, s[n:], nil
}

// apply formats a value.
func (f formatSpec) apply(r *run, v Value) (Str, error) {
	if err := r.touch(v); err != nil {
		return Str{}, err
	}
	if s, ok := v.(Str); ok {
		if f.verb != 0 && f.verb != 's' || f.align == '=' && f.fill != "0" {
			return Str{}, errorf("format: %q does not fit a string", string(f.verb))
		}
		if f.precision >= 0 && f.precision < s.runeLen() {
			s = s.slice(0, s.offset(f.precision))
		}
		return f.place(r, "", s, '<')
	}
	i, x, isFloat, ok := toNumber(v)
	_, isBool := v.(bool)
	if !ok || isBool && f.verb == 0 {
		if f.verb != 0 || f.width != 0 && !isBool {
			return Str{}, errorf("format: this specification does not fit a %s", typeName(v))
		}
		s, err := r.str(v)
		if err != nil {
			return Str{}, err
		}
		return f.place(r, "", s, '<')
	}
	if isFloat || strings.IndexByte("eEfFgG%", f.verb) >= 0 && f.verb != 0 {
		if !isFloat {
			x = bigFloat(i)
		}
		sign, body, err := f.float(x)
		if err != nil {
			return Str{}, err
		}
		return f.place(r, sign, lit(body), '>')
	}
	sign, body, err := f.integer(i)
	if err != nil {
		return Str{}, err
	}
	return f.place(r, sign, lit(body), '>')
}

func (f formatSpec) signOf(negative bool) string {
	if negative {
		return "-"
	}
	return strings.TrimPrefix(string(f.sign), "-")
}

func (f formatSpec) integer(i *big.Int) (sign, body string, err error) {
	sign = f.signOf(i.Sign() < 0)
	abs := new(big.Int).Abs(i)
	switch f.verb {
	case 0, 'd', 'i', 'u', 'n':
		return sign, group(abs.String(), f.comma), nil
	case 'c':
		return "", string(rune(i.Int64())), nil
	case 'b', 'o', 'x', 'X':
		base := map[byte]int{'b': 2, 'o': 8, 'x': 16, 'X': 16}[f.verb]
		body = abs.Text(base)
		if f.alt {
			sign += "0" + strings.ToLower(string(f.verb))
		}
		if f.verb == 'X' {
			body = strings.ToUpper(body)
		}
		return sign, body, nil
	}
	return "", "", errorf("format: %q does not fit an integer", string(f.verb))
}

func (f formatSpec) float(x float64) (sign, body string, err error) {
	sign = f.signOf(math.Signbit(x))
	a := math.Abs(x)
	prec := f.precision
	if prec < 0 && f.verb != 0 {
		prec = 6
	}
	switch f.verb {
	case 0:
		if prec < 0 {
			body = floatText(a)
			break
		}
		body = generalFloat(a, prec)
		if !strings.ContainsAny(body, ".en") {
			body += ".0"
		}
	case 'f', 'F':
		body = strconv.FormatFloat(a, 'f', prec, 64)
	case 'e', 'E':
		body = strconv.FormatFloat(a, f.verb, prec, 64)
	case 'g', 'G':
		body = generalFloat(a, prec)
		if f.verb == 'G' {
			body = strings.ToUpper(body)
		}
	case '%':
		body = strconv.FormatFloat(a*100, 'f', prec, 64) + "%"
	default:
		return "", "", errorf("format: %q does not fit a float", string(f.verb))
	}
	if math.IsInf(a, 0) || math.IsNaN(a) {
		body = strings.Trim(strings.ToLower(body), "+")
	}
	whole, rest := body, ""
	if k := strings.IndexAny(body, ".e%"); k >= 0 {
		whole, rest = body[:k], body[k:]
	}
	return sign, group(whole, f.comma) + rest, nil
}

// generalFloat is C's %g: the exponent form only for very small or large values.
func generalFloat(a float64, prec int) string {
	prec = max(prec, 1)
	e := strconv.FormatFloat(a, 'e', prec-1, 64)
	k := strings.IndexByte(e, 'e')
	if k < 0 {
		return e
	}
	exp, _ := strconv.Atoi(e[k+1:])
	if exp < -4 || exp >= prec {
		mant := e[:k]
		if strings.Contains(mant, ".") {
			mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
		}
		return mant + e[k:]
	}
	s := strconv.FormatFloat(a, 'f', prec-1-exp, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func group(digits, comma string) string {
	if comma == "" {
		return digits
	}
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteString(comma)
		}
		b.WriteRune(c)
	}
	return b.String()
}

// place aligns sign and body in the width.
func (f formatSpec) place(r *run, sign string, body Str, align byte) (Str, error) {
	gap := max(f.width-len(sign)-body.runeLen(), 0)
	if f.align != 0 {
		align = f.align
	}
	if err := r.text(len(sign) + len(body.s) + gap*len(f.fill)); err != nil {
		return Str{}, err
	}
	fill := func(n int) Str { return lit(strings.Repeat(f.fill, n)) }
	switch align {
	case '<':
		return concat(lit(sign), body, fill(gap)), nil
	case '^':
		return concat(fill(gap/2), lit(sign), body, fill(gap-gap/2)), nil
	case '=':
		return concat(lit(sign), fill(gap), body), nil
	}
	return concat(fill(gap), lit(sign), body), nil
}
