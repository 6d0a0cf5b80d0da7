package spec

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"
)

// Bounds of what gguf(…) gives for conversions.
const (
	maxAsidePatterns = 1000
	maxWritten       = 1 << 20 // values of a list, bytes of a text
)

// wrong says what is wrong with a part of gguf(…), and where that stands.
func (r *rebinder) wrong(part any, name, format string, a ...any) error {
	err := fmt.Errorf(format, a...)
	return fmt.Errorf("spec: %w: %s: gguf(%s=…): %w", ErrTrace, r.from.asked.lines[part], name, err)
}

// reserved are keys that say how a file is to be read, not what the model is.
func reserved(key string) bool {
	return key == "general.architecture" || key == "general.alignment" || strings.HasPrefix(key, "inferflow.")
}

var errUnwritable = errors.New("GGUF has no form for it")

// written is a value of gguf(write=…) with the type of its key.
func written(suffix string, v starlark.Value) (any, error) {
	if n := starlark.Len(v); n > maxWritten {
		return nil, fmt.Errorf("it has %d values, at most %d are written", n, maxWritten)
	}
	if t, is := v.(starlark.Tuple); is {
		v = starlark.NewList(t)
	}
	if err := writable(v, true); err != nil {
		return nil, err
	}
	x, ok := typed(suffix, plain(v))
	if !ok {
		return nil, fmt.Errorf("%w: %s", errUnwritable, cut(shortValue(v)))
	}
	return x, nil
}

// writable refuses what GGUF has no type for: numbers that are too large or
// none, objects, and lists of lists. Some keys want infinities.
func writable(v starlark.Value, lists bool) error {
	switch x := v.(type) {
	case starlark.Bool, starlark.String:
		return nil
	case starlark.Int:
		if _, ok := x.Int64(); ok {
			return nil
		}
	case starlark.Float:
		if f := float64(x); math.Abs(f) <= math.MaxFloat32 || math.IsInf(f, 0) {
			return nil
		}
	case *starlark.List:
		for i := 0; lists && i < x.Len(); i++ {
			if err := writable(x.Index(i), false); err != nil {
				return fmt.Errorf("value %d: %w", i, err)
			}
		}
		if lists {
			return nil
		}
	}
	return fmt.Errorf("%w: %s", errUnwritable, shortValue(v))
}

// shortValue names a value; what has parts by its type alone.
func shortValue(v starlark.Value) string {
	switch v.(type) {
	case starlark.Bool, starlark.Float, starlark.String, starlark.Int:
		return cut(v.String())
	}
	return "a " + v.Type()
}
