package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// ValueText is a value of a configuration as JSON in one line, as --set takes
// it: numbers that are not finite stand there as Python writes them.
func ValueText(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case json.Number:
		return x.String()
	case starlark.Value:
		return ValueText(plain(x))
	case map[string]any:
		if s, ok := x["__float__"].(string); ok && len(x) == 1 {
			return s
		}
		var list []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			list = append(list, ValueText(k)+": "+ValueText(x[k]))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Float32, reflect.Float64:
		switch f := shortest(r); {
		case math.IsNaN(f):
			return "NaN"
		case math.IsInf(f, 0):
			return map[bool]string{true: "Infinity", false: "-Infinity"}[f > 0]
		case f == math.Trunc(f) && math.Abs(f) < 1e15: // classes tell 0.0 and 0 apart
			return fmt.Sprintf("%.1f", f)
		default:
			v = f
		}
	case reflect.Slice:
		list := make([]string, r.Len())
		for i := range list {
			list[i] = ValueText(r.Index(i).Interface())
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v))
	}
	return string(raw)
}

// setText is a value in a notice, "not set" for one that says nothing.
func setText(v any) string {
	if r := reflect.ValueOf(v); !r.IsValid() || (r.Kind() == reflect.String || r.Kind() == reflect.Slice || r.Kind() == reflect.Map) && r.Len() == 0 {
		return "not set"
	}
	return cut(ValueText(v))
}
