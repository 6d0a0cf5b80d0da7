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
	maxVisits  = 1 << 22 // items looked at: the same ones may be reached on many ways
	maxName    = 64 << 10
	maxNames   = 64 << 20 // bytes of all names: the same step may lead to many tensors
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
	bytes  int // of the names
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
	if err := f.walk(make([]string, 0, maxDepth+1), d, 0); err != nil {
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

// walk looks at what stands under the steps of path. Names are joined at tensors
// alone, since a long step over many things would be copied for each.
func (f *flattener) walk(path []string, v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("containers nested more than %d deep: %w", maxDepth, ErrTooLarge)
	}
	switch x := v.(type) {
	case *strided:
		return f.name(path, x)
	case *dict:
		for i, k := range x.keys {
			if err := f.visit(); err != nil {
				return err
			}
			name, ok := k.(string)
			if n, is := k.(int64); is {
				name, ok = strconv.FormatInt(n, 10), true
			}
			if !ok {
				continue
			}
			if err := f.walk(append(path, name), x.values[i], depth+1); err != nil {
				return err
			}
		}
	case *list:
		return f.items(path, x.items, depth)
	case *tuple:
		return f.items(path, x.items, depth)
	}
	return nil
}

func (f *flattener) items(path []string, items []any, depth int) error {
	for i, v := range items {
		if err := f.visit(); err != nil {
			return err
		}
		if err := f.walk(append(path, strconv.Itoa(i)), v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// visit counts an item of a container.
func (f *flattener) visit() error {
	if f.visits++; f.visits > maxVisits {
		return fmt.Errorf("items of containers are reached on more than %d ways: %w", maxVisits, ErrTooLarge)
	}
	return nil
}

// name adds a tensor under the steps of path.
func (f *flattener) name(path []string, t *strided) error {
	if len(f.out) == maxTensors {
		return fmt.Errorf("more than %d tensors: %w", maxTensors, ErrTooLarge)
	}
	n := len(path)
	for _, s := range path {
		n += len(s)
	}
	if n > maxName {
		return fmt.Errorf("the name of a tensor has more than %d bytes: %w", maxName, ErrTooLarge)
	}
	if f.bytes += n; f.bytes > maxNames {
		return fmt.Errorf("the names of tensors have more than %d bytes together: %w", maxNames, ErrTooLarge)
	}
	for len(path) > 0 && path[0] == "" { // an empty step at the beginning adds no dot
		path = path[1:]
	}
	f.out = append(f.out, named{strings.Join(path, "."), t})
	return nil
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
