package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// FieldError tells which field of a JSON value has another type than it should.
type FieldError struct {
	Field     string // its path, such as "content[2].text"; "" is the value itself
	Want, Got string // types of JSON in words
}

// Error tells field and types.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %s is expected, not %s", e.Field, e.Want, e.Got)
}

// FieldErrorOf tells an error of package json about a type in words, with field
// in front of its path. It is nil for any other error.
func FieldErrorOf(field string, err error) *FieldError {
	var typ *json.UnmarshalTypeError
	if !errors.As(err, &typ) {
		return nil
	}
	f := &FieldError{pathOf(field, typ.Field), wanted(typ.Type), got(typ.Value)}
	if f.Want == "a number" && strings.HasPrefix(typ.Value, "number") {
		f.Want = "a number that 64 bits of floating point hold"
	}
	return f
}

// fieldError puts a path in front of an error's own: inner in addition where the
// error comes from a value that reads itself.
func fieldError(field, inner string, err error) error {
	var own *FieldError
	if errors.As(err, &own) {
		return &FieldError{pathOf(field, pathOf(inner, own.Field)), own.Want, own.Got}
	}
	if f := FieldErrorOf(field, err); f != nil {
		return f
	}
	return fmt.Errorf("chat: message: %w", err)
}

func pathOf(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "." + b
}

// wanted names the JSON type that a Go type is read from.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a whole number"
}

// got names a JSON value as package json describes it.
func got(value string) string {
	kind, rest, _ := strings.Cut(value, " ")
	switch kind {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	case "number":
		if rest != "" {
			return rest
		}
	}
	return "a " + kind
}
