package jinja

import (
	"math"
	"math/big"
	"strings"
)

// maxIntBits bounds integers, whose size a template could otherwise double in
// every step.
const maxIntBits = 1 << 14

// number gives v as an int or a float; booleans are numbers in Python.
func toNumber(v Value) (i *big.Int, f float64, isFloat, ok bool) {
	switch x := v.(type) {
	case bool:
		if x {
			return big.NewInt(1), 0, false, true
		}
		return new(big.Int), 0, false, true
	case int64:
		return big.NewInt(x), 0, false, true
	case *big.Int:
		return x, 0, false, true
	case float64:
		return nil, x, true, true
	}
	return nil, 0, false, false
}

func bigFloat(i *big.Int) float64 {
	f, _ := new(big.Float).SetInt(i).Float64()
	return f
}

func negate(v Value, minus bool) (Value, error) {
	i, f, isFloat, ok := toNumber(v)
	switch {
	case !ok:
		if u, isU := v.(*Undefined); isU {
			return nil, u.err()
		}
		return nil, errorf("a %s has no sign", typeName(v))
	case isFloat && minus:
		return -f, nil
	case isFloat:
		return f, nil
	case minus:
		return normInt(new(big.Int).Neg(i)), nil
	}
	return normInt(i), nil
}

// binary is Python's x op y.
func (r *run) binary(op string, x, y Value) (Value, error) {
	if a, ok := x.(int64); ok { // the common case without big numbers
		if b, ok := y.(int64); ok && a == int64(int32(a)) && b == int64(int32(b)) {
			switch op {
			case "+":
				return a + b, nil
			case "-":
				return a - b, nil
			case "*":
				return a * b, nil
			}
		}
	}
	for _, v := range []Value{x, y} {
		if u, ok := v.(*Undefined); ok {
			if s, isText := x.(Str); isText && op == "%" {
				return r.percent(s, y)
			}
			return nil, u.err()
		}
	}
	if a, f, aFloat, ok := toNumber(x); ok {
		if b, g, bFloat, ok := toNumber(y); ok {
			if !aFloat && !bFloat {
				return r.intOp(op, a, b)
			}
			if !aFloat {
				f = bigFloat(a)
			}
			if !bFloat {
				g = bigFloat(b)
			}
			return floatOp(op, f, g)
		}
	}
	switch op {
	case "+":
		return r.add(x, y)
	case "*":
		return r.repeat(x, y)
	case "%":
		if s, ok := x.(Str); ok {
			return r.percent(s, y)
		}
	}
	return nil, errorf("%s %s %s has no meaning", typeName(x), op, typeName(y))
}

func (r *run) add(x, y Value) (Value, error) {
	switch a := x.(type) {
	case Str:
		if b, ok := y.(Str); ok {
			if err := r.text(len(a.s) + len(b.s)); err != nil {
				return nil, err
			}
			out := concat(a, b)
			if a.safe || b.safe {
				a, err := r.escape(a)
				if err != nil {
					return nil, err
				}
				if b, err = r.escape(b); err != nil {
					return nil, err
				}
				out = concat(a, b).as(true)
			}
			return out, r.made(out)
		}
	case *List:
		if b, ok := y.(*List); ok && a.kind == b.kind && a.kind <= kindTuple {
			if err := r.list(len(a.items) + len(b.items)); err != nil {
				return nil, err
			}
			items := make([]Value, 0, len(a.items)+len(b.items))
			items = append(append(items, a.items...), b.items...)
			return &List{items: items, kind: a.kind}, nil
		}
	}
	return nil, errorf("cannot add %s to %s", typeName(y), typeName(x))
}

func (r *run) repeat(x, y Value) (Value, error) {
	if _, ok := intIndex(x); ok {
		x, y = y, x
	}
	n, ok := intIndex(y)
	if !ok {
		return nil, errorf("%s * %s has no meaning", typeName(x), typeName(y))
	}
	n = max(n, 0)
	switch a := x.(type) {
	case Str:
		if n > int64(r.lim.Output) && len(a.s) > 0 {
			return nil, limitf("a string repeated %d times", n)
		}
		if err := r.text(len(a.s) * int(n)); err != nil {
			return nil, err
		}
		if !a.anyUser() {
			return lit(strings.Repeat(a.s, int(n))).as(a.safe), nil
		}
		if err := r.step(int(n) / charBytes); err != nil {
			return nil, err
		}
		var b strBuilder
		for ; n > 0 && len(a.s) > 0; n-- {
			b.add(a)
		}
		return b.str().as(a.safe), r.made(b.str())
	case *List:
		if a.kind > kindTuple {
			break
		}
		if n > 1<<24 && len(a.items) > 0 {
			return nil, limitf("a list repeated %d times", n)
		}
		if err := r.list(len(a.items) * int(n)); err != nil {
			return nil, err
		}
		out := &List{kind: a.kind}
		for ; n > 0 && len(a.items) > 0; n-- {
			out.items = append(out.items, a.items...)
		}
		return out, nil
	}
	return nil, errorf("%s * int has no meaning", typeName(x))
}

// intOp pays for the digits of both, and a power for those of its result.
func (r *run) intOp(op string, a, b *big.Int) (Value, error) {
	n := a.BitLen() + b.BitLen()
	if op == "**" {
		n = maxIntBits
		if a.BitLen() <= 8 && b.BitLen() <= 8 {
			n = a.BitLen() << 8
		}
	}
	if err := r.step(n / scanBytes); err != nil {
		return nil, err
	}
	return intOp(op, a, b)
}

func intOp(op string, a, b *big.Int) (Value, error) {
	out := new(big.Int)
	switch op {
	case "+":
		out.Add(a, b)
	case "-":
		out.Sub(a, b)
	case "*":
		out.Mul(a, b)
	case "**":
		return intPow(a, b)
	default:
		if b.Sign() == 0 {
			return nil, errorf("division by zero")
		}
		if op == "/" {
			f, _ := new(big.Rat).SetFrac(a, b).Float64()
			if f == 0 && b.Sign() < 0 {
				f = math.Copysign(0, -1)
			}
			return f, nil
		}
		// Python rounds the quotient down, so the rest has the divisor's sign
		m := new(big.Int)
		out.QuoRem(a, b, m)
		if m.Sign() != 0 && m.Sign() != b.Sign() {
			out.Sub(out, big.NewInt(1))
			m.Add(m, b)
		}
		if op == "%" {
			out = m
		}
	}
	if out.BitLen() > maxIntBits {
		return nil, limitf("an integer of %d bits", out.BitLen())
	}
	return normInt(out), nil
}

func intPow(a, b *big.Int) (Value, error) {
	if b.Sign() < 0 {
		if a.Sign() == 0 {
			return nil, errorf("zero to a negative power")
		}
		return math.Pow(bigFloat(a), bigFloat(b)), nil
	}
	if a.BitLen() > 1 && (!b.IsInt64() || b.Int64() > maxIntBits || int64(a.BitLen())*b.Int64() > maxIntBits) {
		return nil, limitf("an integer power of more than %d bits", maxIntBits)
	}
	return normInt(new(big.Int).Exp(a, b, nil)), nil
}

func floatOp(op string, f, g float64) (Value, error) {
	switch op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	case "**":
		return math.Pow(f, g), nil
	}
	if g == 0 {
		return nil, errorf("division by zero")
	}
	m := math.Mod(f, g)
	if m != 0 && (m < 0) != (g < 0) {
		m += g
	}
	switch op {
	case "/":
		return f / g, nil
	case "//":
		return math.Round((f - m) / g), nil
	}
	return m, nil
}
