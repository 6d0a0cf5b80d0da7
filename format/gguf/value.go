package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/inferflow/inferflow/format/shelf"
)

// Kind is the type of a metadata value, with the format's numbers.
type Kind uint32

// The kinds of GGUF's gguf_metadata_value_type.
const (
	Uint8 Kind = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

var kinds = [...]struct {
	name string
	size uint64 // bytes of a scalar; 0 where it varies
}{
	{"uint8", 1}, {"int8", 1}, {"uint16", 2}, {"int16", 2}, {"uint32", 4}, {"int32", 4}, {"float32", 4},
	{"bool", 1}, {"string", 0}, {"array", 0}, {"uint64", 8}, {"int64", 8}, {"float64", 8},
}

// String is the format's name of the kind, such as "uint32".
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// Value is one metadata value as it lies in the file: it aliases the mapping,
// so that a vocabulary costs nothing until it is asked for.
type Value struct {
	kind Kind
	elem Kind // of an array
	n    int  // elements of an array
	raw  []byte
}

// Kind is the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Elem is the type of the elements of an array; the value's own type otherwise.
func (v Value) Elem() Kind {
	if v.kind == Array {
		return v.elem
	}
	return v.kind
}

// Len is the number of elements of an array, 1 for any other value.
func (v Value) Len() int {
	if v.kind == Array {
		return v.n
	}
	return 1
}

// TypeName describes the type in words, such as "array of 3 int32".
func (v Value) TypeName() string {
	if v.kind == Array {
		return fmt.Sprintf("array of %d %s", v.n, v.elem)
	}
	return v.kind.String()
}

// Any returns the value as the Go type of its kind (uint8 … float64, bool,
// string), an array as a slice of it. It copies.
func (v Value) Any() any {
	switch v.Elem() {
	case Uint8:
		return pick(v, func(b []byte) uint8 { return b[0] })
	case Int8:
		return pick(v, func(b []byte) int8 { return int8(b[0]) })
	case Uint16:
		return pick(v, binary.LittleEndian.Uint16)
	case Int16:
		return pick(v, func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) })
	case Uint32:
		return pick(v, binary.LittleEndian.Uint32)
	case Int32:
		return pick(v, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case Float32:
		return pick(v, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case Uint64:
		return pick(v, binary.LittleEndian.Uint64)
	case Int64:
		return pick(v, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	case Float64:
		return pick(v, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	case Bool:
		return pick(v, func(b []byte) bool { return b[0] != 0 })
	case String:
		if v.kind == Array {
			return v.strings()
		}
		return string(v.raw)
	}
	return nil
}

// String renders the value for people; a long array or string is cut.
func (v Value) String() string {
	const most = 8
	if v.kind != Array {
		if v.kind == String && len(v.raw) > 200 {
			return fmt.Sprintf("%q… (%d bytes)", v.raw[:200], len(v.raw))
		}
		if v.kind == String {
			return fmt.Sprintf("%q", v.raw)
		}
		return fmt.Sprint(v.Any())
	}
	head, tail := v, ""
	if v.n > most {
		head.n, tail = most, fmt.Sprintf(", … %d in all", v.n)
	}
	var parts []string
	switch all := head.Any().(type) {
	case []string:
		for _, s := range all {
			parts = append(parts, shelf.Quote(s))
		}
	default:
		parts = strings.Fields(strings.Trim(fmt.Sprint(all), "[]"))
	}
	return "[" + strings.Join(parts, ", ") + tail + "]"
}

// Bytes are the bytes of a string or of an array of bytes, as they stand in the
// file: they are not copied. ok is false for other values.
func (v Value) Bytes() (b []byte, ok bool) {
	if v.kind == String || v.kind == Array && v.elem == Uint8 {
		return v.raw, true
	}
	return nil, false
}

// pick decodes a scalar, or an array into a slice.
func pick[T any](v Value, get func([]byte) T) any {
	if v.kind != Array {
		return get(v.raw)
	}
	return decode(v, get)
}

func decode[T any](v Value, get func([]byte) T) []T {
	size := int(kinds[v.Elem()].size)
	out := make([]T, v.Len())
	for i := range out {
		out[i] = get(v.raw[i*size:])
	}
	return out
}

// strings copies the bytes of all strings once and cuts them: two allocations
// however many strings there are.
func (v Value) strings() []string {
	size := 0
	for at, i := 0, 0; i < v.n; i++ {
		n := int(binary.LittleEndian.Uint64(v.raw[at:]))
		at += 8 + n
		size = at
	}
	all := string(v.raw[:size])
	out := make([]string, v.n)
	at := 0
	for i := range out {
		n := int(binary.LittleEndian.Uint64(v.raw[at:]))
		out[i] = all[at+8 : at+8+n]
		at += 8 + n
	}
	return out
}

// integer returns element i as a signed number; ok is false where the kind is
// not an integer or a uint64 does not fit.
func (v Value) integer(i int) (n int64, ok bool) {
	b := v.raw
	if size := int(kinds[v.Elem()].size); size > 0 {
		b = b[i*size:]
	}
	switch v.Elem() {
	case Uint8:
		return int64(b[0]), true
	case Int8:
		return int64(int8(b[0])), true
	case Uint16:
		return int64(binary.LittleEndian.Uint16(b)), true
	case Int16:
		return int64(int16(binary.LittleEndian.Uint16(b))), true
	case Uint32:
		return int64(binary.LittleEndian.Uint32(b)), true
	case Int32:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case Uint64, Int64:
		u := binary.LittleEndian.Uint64(b)
		return int64(u), v.Elem() == Int64 || u <= math.MaxInt64
	}
	return 0, false
}

// float returns element i as a float64; integers count as numbers too.
func (v Value) float(i int) (f float64, ok bool) {
	switch v.Elem() {
	case Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.raw[4*i:]))), true
	case Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.raw[8*i:])), true
	}
	n, ok := v.integer(i)
	return float64(n), ok
}
