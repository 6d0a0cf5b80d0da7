package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

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
