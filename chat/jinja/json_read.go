package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
)

// maxIntDigits is Python's bound on the digits of an integer in text.
const maxIntDigits = 4300

// maxJSONDepth bounds the nesting of data.
const maxJSONDepth = 500

// FromJSON reads one JSON value; objects keep the order of their keys. All
// text, keys too, counts as the caller's if user is set.
func FromJSON(raw []byte, user bool) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := readJSON(d, user, 0)
	if err != nil {
		return nil, fmt.Errorf("jinja: JSON at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("jinja: JSON at byte %d: more than one value", d.InputOffset())
	}
	return v, nil
}

func readJSON(d *json.Decoder, user bool, depth int) (Value, error) {
	t, err := d.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxJSONDepth)
	}
	switch x := t.(type) {
	case nil:
		return None{}, nil
	case bool:
		return x, nil
	case string:
		return tainted(x, user), nil
	case json.Number:
		return numberFromText(string(x))
	case json.Delim:
		if x == '[' {
			return readArray(d, user, depth)
		}
		return readObject(d, user, depth)
	}
	return nil, fmt.Errorf("unexpected %v", t)
}

func readArray(d *json.Decoder, user bool, depth int) (Value, error) {
	out := newList(nil)
	for d.More() {
		v, err := readJSON(d, user, depth+1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, v)
	}
	_, err := d.Token()
	return out, err
}

func readObject(d *json.Decoder, user bool, depth int) (Value, error) {
	out := NewDict()
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := k.(string)
		v, err := readJSON(d, user, depth+1)
		if err != nil {
			return nil, err
		}
		if err := out.set(tainted(key, user), v); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return out, err
}

// numberFromText reads a JSON number as Python does: an int unless it has a
// fraction or exponent.
func numberFromText(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64)
		return f, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	if len(s) > maxIntDigits {
		return nil, fmt.Errorf("integer of more than %d digits", maxIntDigits)
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("bad number %q", s)
	}
	return n, nil
}
