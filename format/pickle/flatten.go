package pickle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxDepth   = 16      // of containers around a tensor
	maxTensors = 1 << 20 // named
	maxVisits  = 1 << 22 // objects looked at: the same ones may be reached on many ways
)

// wrappers are keys under which training programs keep the model among other things.
var wrappers = []string{"state_dict", "model_state_dict", "model", "module"}

// named is a tensor with its name.
type named struct {
	name string
	t    *strided
}

// flattener names the tensors of nested containers.
type flattener struct {
	out    []named
	visits int
}

// flatten names the tensors of an object: a dict of them, or one that keeps
// such a dict under a usual name.
func flatten(v any) ([]named, error) {
	d, ok := v.(*dict)
	if !ok {
		return nil, fmt.Errorf("holds %s, not a dict of tensors by name: %w", kindOf(v), ErrUnsupported)
	}
	d = unwrap(d)
	f := &flattener{}
	if err := f.walk("", d, 0); err != nil {
		return nil, err
	}
	if len(f.out) == 0 {
		return nil, fmt.Errorf("holds no tensors: %w", ErrUnsupported)
	}
	for _, p := range []string{"module.", "_orig_mod.", "module."} { // of data-parallel and compiled modules
		f.strip(p)
	}
	return f.out, nil
}

// unwrap descends to the model where a dict holds no tensors itself.
func unwrap(d *dict) *dict {
	for range maxDepth {
		if slices.ContainsFunc(d.values, func(v any) bool { _, is := v.(*strided); return is }) {
			return d
		}
		var inner *dict
		for _, w := range wrappers {
			for i, k := range d.keys {
				if in, ok := d.values[i].(*dict); ok && k == w && inner == nil && len(in.keys) > 0 {
					inner = in
				}
			}
		}
		if inner == nil {
			return d
		}
		d = inner
	}
	return d
}

func (f *flattener) walk(prefix string, v any, depth int) error {
	if f.visits++; f.visits > maxVisits || depth > maxDepth {
		return fmt.Errorf("containers nested more than %d deep, or reached on more than %d ways: %w", maxDepth, maxVisits, ErrTooLarge)
	}
	switch x := v.(type) {
	case *strided:
		if len(f.out) == maxTensors {
			return fmt.Errorf("more than %d tensors: %w", maxTensors, ErrTooLarge)
		}
		f.out = append(f.out, named{prefix, x})
	case *dict:
		for i, k := range x.keys {
			name, ok := k.(string)
			if n, is := k.(int64); is {
				name, ok = strconv.FormatInt(n, 10), true
			}
			if !ok {
				continue
			}
			if err := f.walk(join(prefix, name), x.values[i], depth+1); err != nil {
				return err
			}
		}
	case *list:
		return f.items(prefix, x.items, depth)
	case *tuple:
		return f.items(prefix, x.items, depth)
	}
	return nil
}

func (f *flattener) items(prefix string, items []any, depth int) error {
	for i, v := range items {
		if err := f.walk(join(prefix, strconv.Itoa(i)), v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// strip takes a beginning away that all names share.
func (f *flattener) strip(prefix string) {
	if slices.ContainsFunc(f.out, func(n named) bool { return !strings.HasPrefix(n.name, prefix) }) {
		return
	}
	for i := range f.out {
		f.out[i].name = f.out[i].name[len(prefix):]
	}
}
