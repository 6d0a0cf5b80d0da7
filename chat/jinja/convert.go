package jinja

import (
	"encoding/json"
	"fmt"
	"math/big"
	"sort"
	"strings"
)

// Text is a template value for a string; user says that it came from the caller.
func Text(s string, user bool) Value {
	return tainted(strings.ToValidUTF8(s, "\uFFFD"), user)
}

// ListOf is a template value for a list.
func ListOf(items ...Value) Value { return newList(items) }

// FromGo converts what encoding/json decodes to (nil, bool, numbers, string,
// []any, map[string]any, json.Number, json.RawMessage) and also []string,
// map[string]string and Values. All text counts as the caller's if user is set.
// The keys of a Go map come in sorted order; to keep an order, give RawMessage.
func FromGo(x any, user bool) (Value, error) {
	switch v := x.(type) {
	case nil:
		return None{}, nil
	case bool, int64, float64, None, Str, *List, *Dict:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint64:
		return normInt(new(big.Int).SetUint64(v)), nil
	case float32:
		return float64(v), nil
	case string:
		return Text(v, user), nil
	case json.RawMessage:
		return FromJSON(v, user)
	case json.Number:
		return FromJSON([]byte(v), user)
	case []string:
		out := newList(nil)
		for _, s := range v {
			out.items = append(out.items, Text(s, user))
		}
		return out, nil
	case []any:
		return listFromGo(v, user)
	case map[string]any:
		return dictFromGo(v, user)
	case map[string]string:
		m := make(map[string]any, len(v))
		for k, s := range v {
			m[k] = s
		}
		return dictFromGo(m, user)
	}
	return nil, fmt.Errorf("jinja: a value of Go type %T cannot be given to a template: pass it as JSON", x)
}

func listFromGo(v []any, user bool) (Value, error) {
	out := newList(make([]Value, 0, len(v)))
	for _, x := range v {
		item, err := FromGo(x, user)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, item)
	}
	return out, nil
}

func dictFromGo(m map[string]any, user bool) (Value, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	out := NewDict()
	for _, k := range keys {
		v, err := FromGo(m[k], user)
		if err != nil {
			return nil, err
		}
		if err := out.set(Text(k, user), v); err != nil {
			return nil, err
		}
	}
	return out, nil
}
