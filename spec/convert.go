package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"

	"go.starlark.net/starlark"
)

// fromGo turns a decoded JSON or metadata value into a Starlark value, frozen.
func fromGo(x any) (starlark.Value, error) {
	switch x := x.(type) {
	case nil:
		return starlark.None, nil
	case bool:
		return starlark.Bool(x), nil
	case string:
		return starlark.String(x), nil
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return starlark.MakeInt64(i), nil
		}
		f, err := x.Float64()
		return starlark.Float(f), err
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return starlark.MakeInt64(int64(x)), nil
		}
		return starlark.Float(x), nil
	case []any:
		return listFromGo(x)
	case map[string]any:
		return dictFromGo(x)
	case starlark.Value:
		return x, nil
	}
	return fromGoNumber(x)
}

func listFromGo(x []any) (starlark.Value, error) {
	items := make([]starlark.Value, len(x))
	for i, e := range x {
		v, err := fromGo(e)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	l := starlark.NewList(items)
	l.Freeze()
	return l, nil
}

func dictFromGo(x map[string]any) (starlark.Value, error) {
	if s, ok := x["__float__"].(string); ok && len(x) == 1 {
		switch s {
		case "Infinity":
			return starlark.Float(math.Inf(1)), nil
		case "-Infinity":
			return starlark.Float(math.Inf(-1)), nil
		case "NaN":
			return starlark.Float(math.NaN()), nil
		}
	}
	keys := make([]string, 0, len(x))
	for k := range x {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	d := starlark.NewDict(len(keys))
	for _, k := range keys {
		v, err := fromGo(x[k])
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(starlark.String(k), v); err != nil {
			return nil, err
		}
	}
	d.Freeze()
	return d, nil
}

// plain turns a Starlark value into one that prints and encodes as JSON.
func plain(v starlark.Value) any {
	switch v := v.(type) {
	case starlark.NoneType:
		return nil
	case starlark.Bool:
		return bool(v)
	case starlark.Int:
		if i, ok := v.Int64(); ok {
			return i
		}
	case starlark.Float:
		return float64(v)
	case starlark.String:
		return string(v)
	case *starlark.List:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	case *starlark.Dict:
		out := map[string]any{}
		for _, item := range v.Items() {
			k, _ := starlark.AsString(item[0])
			out[k] = plain(item[1])
		}
		return out
	}
	return v.String()
}

// maxMetaList bounds the lists of metadata that a specification can read:
// per-layer settings, not vocabularies.
const maxMetaList = 1 << 14

// fromGoNumber handles the number types and typed lists of GGUF readers.
func fromGoNumber(x any) (starlark.Value, error) {
	r := reflect.ValueOf(x)
	switch r.Kind() {
	case reflect.Bool:
		return starlark.Bool(r.Bool()), nil
	case reflect.String:
		return starlark.String(r.String()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return starlark.MakeInt64(r.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return starlark.MakeUint64(r.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return starlark.Float(shortest(r)), nil
	case reflect.Slice:
		if r.Len() > maxMetaList {
			return nil, fmt.Errorf("a list of %d is too long for a specification", r.Len())
		}
		list := make([]any, r.Len())
		for i := range list {
			list[i] = r.Index(i).Interface()
		}
		return listFromGo(list)
	}
	return nil, fmt.Errorf("a value of type %T cannot be read by a specification", x)
}

// shortest reads a float32 as the decimal number it was written from: 1e-6
// stored as float32 is meant as 1e-6.
func shortest(r reflect.Value) float64 {
	if r.Kind() != reflect.Float32 {
		return r.Float()
	}
	f, err := strconv.ParseFloat(strconv.FormatFloat(r.Float(), 'g', -1, 32), 64)
	if err != nil {
		return r.Float()
	}
	return f
}

// encodable replaces what JSON cannot say: numbers that are not finite, long lists.
func encodable(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) {
			return map[string]any{"__float__": "NaN"}
		}
		if math.IsInf(v, 0) {
			return map[string]any{"__float__": map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0]}
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = encodable(x)
		}
		return out
	case []any:
		if len(v) > maxMetaList {
			return nil
		}
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = encodable(x)
		}
		return out
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Float32:
		return encodable(shortest(r))
	case reflect.Slice:
		if r.Len() > maxMetaList {
			return nil
		}
		out := make([]any, r.Len())
		for i := range out {
			out[i] = encodable(r.Index(i).Interface())
		}
		return out
	}
	return v
}
