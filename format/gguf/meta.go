package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/inferflow/inferflow/format/shelf"
)

// ErrNoKey says that the metadata lacks a key, ErrType that it holds a value
// of another type than was asked for.
var (
	ErrNoKey = errors.New("no such metadata key")
	ErrType  = errors.New("metadata value has another type")
)

// Meta is the metadata of a file: typed values in the file's order. The typed
// accessors return an error that wraps ErrNoKey or ErrType and names the key.
type Meta struct {
	name   string // of the file, for errors
	keys   []string
	values []Value
	index  map[string]int
}

// Len is the number of keys.
func (m *Meta) Len() int { return len(m.keys) }

// All iterates over keys and values in the order of the file.
func (m *Meta) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for i, k := range m.keys {
			if !yield(k, m.values[i]) {
				return
			}
		}
	}
}

// Value finds a value of any type.
func (m *Meta) Value(key string) (Value, bool) {
	i, ok := m.index[key]
	if !ok {
		return Value{}, false
	}
	return m.values[i], true
}

// Has reports whether the key is there, with whatever type.
func (m *Meta) Has(key string) bool { _, ok := m.index[key]; return ok }

func (m *Meta) add(key string, v Value) {
	if m.index == nil {
		m.index = map[string]int{}
	}
	m.index[key] = len(m.keys)
	m.keys = append(m.keys, key)
	m.values = append(m.values, v)
}

func (m *Meta) find(key string) (Value, error) {
	v, ok := m.Value(key)
	if !ok {
		return v, fmt.Errorf("gguf: %s: key %s: %w", m.name, shelf.Quote(key), ErrNoKey)
	}
	return v, nil
}

func (m *Meta) wrong(key string, v Value, want string) error {
	return fmt.Errorf("gguf: %s: key %s: is %s, want %s: %w", m.name, shelf.Quote(key), v.TypeName(), want, ErrType)
}

// Uint returns an integer of any width that is not negative.
func (m *Meta) Uint(key string) (uint64, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	if v.kind == Uint64 {
		return binary.LittleEndian.Uint64(v.raw), nil
	}
	if n, ok := v.scalarInt(); ok && n >= 0 {
		return uint64(n), nil
	} else if ok {
		return 0, fmt.Errorf("gguf: %s: key %s: is %d, want no negative number: %w", m.name, shelf.Quote(key), n, ErrType)
	}
	return 0, m.wrong(key, v, "an unsigned integer")
}

func (v Value) scalarInt() (int64, bool) {
	if v.kind == Array {
		return 0, false
	}
	return v.integer(0)
}

// Int returns an integer of any width that fits an int64.
func (m *Meta) Int(key string) (int64, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	if n, ok := v.scalarInt(); ok {
		return n, nil
	}
	return 0, m.wrong(key, v, "an integer")
}

// Float returns a number; an integer is taken for one too.
func (m *Meta) Float(key string) (float64, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	if v.kind != Array {
		if f, ok := v.float(0); ok {
			return f, nil
		}
	}
	return 0, m.wrong(key, v, "a number")
}

// Bool returns a truth value.
func (m *Meta) Bool(key string) (bool, error) {
	v, err := m.find(key)
	if err != nil {
		return false, err
	}
	if v.kind != Bool {
		return false, m.wrong(key, v, "a bool")
	}
	return v.raw[0] != 0, nil
}

// String returns a string. It is not checked to be UTF-8.
func (m *Meta) String(key string) (string, error) {
	v, err := m.find(key)
	if err != nil {
		return "", err
	}
	if v.kind != String {
		return "", m.wrong(key, v, "a string")
	}
	return string(v.raw), nil
}

// Strings returns an array of strings.
func (m *Meta) Strings(key string) ([]string, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	if v.kind != Array || v.elem != String {
		return nil, m.wrong(key, v, "an array of strings")
	}
	return v.strings(), nil
}

// Ints returns an array of integers of any width.
func (m *Meta) Ints(key string) ([]int64, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	switch {
	case v.kind != Array, v.elem == String, v.elem == Bool, v.elem == Float32, v.elem == Float64:
		return nil, m.wrong(key, v, "an array of integers")
	}
	out := make([]int64, v.n)
	for i := range out {
		n, ok := v.integer(i)
		if !ok {
			return nil, fmt.Errorf("gguf: %s: key %s: element %d is above 2^63: %w", m.name, shelf.Quote(key), i, ErrType)
		}
		out[i] = n
	}
	return out, nil
}

// Floats returns an array of numbers.
func (m *Meta) Floats(key string) ([]float64, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	if v.kind != Array || v.elem == String || v.elem == Bool {
		return nil, m.wrong(key, v, "an array of numbers")
	}
	out := make([]float64, v.n)
	for i := range out {
		f, ok := v.float(i)
		if !ok {
			return nil, fmt.Errorf("gguf: %s: key %s: element %d is above 2^63: %w", m.name, shelf.Quote(key), i, ErrType)
		}
		out[i] = f
	}
	return out, nil
}

// Bools returns an array of truth values.
func (m *Meta) Bools(key string) ([]bool, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	if v.kind != Array || v.elem != Bool {
		return nil, m.wrong(key, v, "an array of bools")
	}
	return decode(v, func(b []byte) bool { return b[0] != 0 }), nil
}
