package server

import (
	"encoding/json"
	"slices"
	"strings"
)

// got says in words what a client sent where something else is expected; raw is valid JSON.
func got(raw json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return kind(raw)
	}
	var kinds []string
	for _, x := range list[:min(len(list), 64)] {
		if k := kind(x); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return "an empty list"
	}
	return "a list with " + strings.Join(kinds, " and ")
}

// kind is the kind of a value.
func kind(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	if strings.ContainsAny(string(raw), ".eE") {
		return "a number that is not whole"
	}
	return "a number"
}
