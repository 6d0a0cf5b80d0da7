package spec

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// floatKeys are parts of the GGUF keys whose values are float32.
var floatKeys = []string{"epsilon", ".eps", "alibi", "alpha", "freq_base", "scale", "factor", "softcapping", "clamp", "beta", "multiplier", "magnitude", "lower_bound"}

// typed gives a value the type that GGUF's readers expect of a key.
func typed(suffix string, v any) (any, bool) {
	isFloat := slices.ContainsFunc(floatKeys, func(s string) bool { return strings.Contains(suffix, s) })
	switch x := v.(type) {
	case json.Number:
		f, err := x.Float64()
		if err != nil {
			return nil, false
		}
		return typed(suffix, f)
	case int64:
		return typed(suffix, float64(x))
	case int:
		return typed(suffix, float64(x))
	case float64:
		if isFloat || x != math.Trunc(x) || math.Abs(x) > math.MaxInt32 {
			return float32(x), true
		}
		if x < 0 {
			return int32(x), true
		}
		return uint32(x), true
	case bool, string:
		return x, !isFloat || suffix == "rope.scaling.type"
	case []any:
		return typedList(suffix, x)
	}
	return nil, false
}

// typedList makes a list of one type; ok is false for a mixed or empty one.
func typedList(suffix string, list []any) (any, bool) {
	var ints []int32
	var floats []float32
	var bools []bool
	for _, e := range list {
		x, ok := typed(suffix, e)
		if !ok {
			return nil, false
		}
		switch x := x.(type) {
		case uint32:
			ints, floats = append(ints, int32(x)), append(floats, float32(x))
		case int32:
			ints, floats = append(ints, x), append(floats, float32(x))
		case float32:
			floats = append(floats, x)
		case bool:
			bools = append(bools, x)
		}
	}
	switch len(list) {
	case 0:
		return nil, false
	case len(ints):
		return ints, true
	case len(floats):
		return floats, true
	case len(bools):
		return bools, true
	}
	return nil, false
}
