package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/spec"
)

// parseValue reads a value of --set as config.json writes it; numbers stay as
// they are typed. What is not JSON is a string, unless it begins as a list, an
// object or a string of JSON does.
func parseValue(s string) (any, error) {
	d := json.NewDecoder(bytes.NewReader(spec.PythonFloats([]byte(s))))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if _, more := d.Token(); err == nil && errors.Is(more, io.EOF) {
		return v, nil
	}
	if s != "" && strings.ContainsRune(`[{"`, rune(s[0])) {
		if err == nil {
			err = errors.New("something follows the value")
		}
		return nil, fmt.Errorf("it begins as JSON does, but is none: %w", err)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && f-f == 0 { // .5 and +1 are no JSON
		return f, nil
	}
	return s, nil
}

// blameSet says that values were given by --set, where the specification does
// not fit with them.
func blameSet(err error, set map[string]any) error {
	if len(set) == 0 || !slices.ContainsFunc([]error{spec.ErrTrace, spec.ErrRebind, spec.ErrGiven}, func(e error) bool { return errors.Is(err, e) }) {
		return err
	}
	var given []string
	for k, v := range set {
		given = append(given, fmt.Sprintf("--set %s=%s", k, spec.ValueText(v)))
	}
	slices.Sort(given)
	return fmt.Errorf("%w (with %s)", err, strings.Join(given, ", "))
}
