package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Value is one of: None, bool, int64, *big.Int (only outside int64), float64,
// Str, *List, *Dict, *Undefined, *Namespace, *Iter, *Func, *Macro, *loopVar.
type Value any

// None is Python's None and JSON's null.
type None struct{}

// Undefined is a name or item that does not exist. It prints as nothing, is
// false, has no items, and any other use of it is the error that hint tells.
type Undefined struct{ hint string }

func undefined(hint string) *Undefined { return &Undefined{hint} }

func (u *Undefined) err() error { return errorf("%s", u.hint) }

// List kinds differ in how they print and what they have.
type listKind uint8

const (
	kindList listKind = iota
	kindTuple
	kindRange
	kindView // what dict.items, keys and values give
)

// List is a list, tuple, range or view of a dict.
type List struct {
	items []Value
	kind  listKind
	view  string   // name of a view's type
	names []string // attribute names of a named tuple
	ends  [3]int64 // start, stop and step of a range
}

func newList(items []Value) *List   { return &List{items: items} }
func newTuple(items ...Value) *List { return &List{items: items, kind: kindTuple} }

// Dict keeps its keys in the order of insertion.
type Dict struct {
	keys  []Value
	vals  []Value
	index map[string]int
}

// NewDict makes an empty dict.
func NewDict() *Dict { return &Dict{index: map[string]int{}} }

// hashKey gives keys that Python finds equal the same string.
func hashKey(v Value) (string, error) {
	switch x := v.(type) {
	case Str:
		return "s" + x.s, nil
	case None:
		return "n", nil
	case bool:
		if x {
			return "i1", nil
		}
		return "i0", nil
	case int64:
		return "i" + strconv.FormatInt(x, 10), nil
	case *big.Int:
		return "i" + x.String(), nil
	case float64:
		if x == float64(int64(x)) {
			return "i" + strconv.FormatInt(int64(x), 10), nil
		}
		return "f" + strconv.FormatFloat(x, 'g', -1, 64), nil
	case *Undefined:
		return "u", nil
	case *Iter, *Func, *Macro, *Namespace, *loopVar:
		return fmt.Sprintf("p%p", x), nil
	case *List:
		if x.kind == kindRange {
			return fmt.Sprintf("r%v", x.ends), nil
		}
		if x.kind != kindTuple {
			break
		}
		var b strings.Builder
		b.WriteByte('t')
		for _, it := range x.items {
			k, err := hashKey(it)
			if err != nil {
				return "", err
			}
			b.WriteString(strconv.Itoa(len(k)) + ":" + k)
		}
		return b.String(), nil
	}
	return "", errorf("a %s cannot be a key", typeName(v))
}

func (d *Dict) get(key Value) (Value, bool, error) {
	k, err := hashKey(key)
	if err != nil {
		return nil, false, err
	}
	i, ok := d.index[k]
	if !ok {
		return nil, false, nil
	}
	return d.vals[i], true, nil
}

func (d *Dict) getText(key string) (Value, bool) {
	i, ok := d.index["s"+key]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

// Set adds or replaces the item of a text key; the key counts as template text.
func (d *Dict) Set(key string, v Value) { _ = d.set(lit(key), v) }

func (d *Dict) set(key, v Value) error {
	k, err := hashKey(key)
	if err != nil {
		return err
	}
	if i, ok := d.index[k]; ok {
		d.vals[i] = v
		return nil
	}
	d.index[k] = len(d.keys)
	d.keys, d.vals = append(d.keys, key), append(d.vals, v)
	return nil
}

func (d *Dict) remove(key Value) (Value, bool, error) {
	k, err := hashKey(key)
	if err != nil {
		return nil, false, err
	}
	i, ok := d.index[k]
	if !ok {
		return nil, false, nil
	}
	v := d.vals[i]
	d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
	d.vals = append(d.vals[:i:i], d.vals[i+1:]...)
	delete(d.index, k)
	for name, j := range d.index {
		if j > i {
			d.index[name] = j - 1
		}
	}
	return v, true, nil
}

// Namespace is what namespace() makes: attributes that inner scopes may set.
type Namespace struct{ attrs *Dict }

// Func is a function or a bound method.
type Func struct {
	name string
	call func(r *run, a *args) (Value, error)
}

// Macro is a macro or the body of a call block, with the scope it closes over.
type Macro struct {
	def   *macroDef
	scope *scope
}

// Iter yields items once, as Python's generators do.
type Iter struct {
	next func() (Value, bool, error)
	name string
}

// iterOf yields the items of a slice.
func iterOf(items []Value) *Iter {
	i := 0
	return &Iter{name: "generator", next: func() (Value, bool, error) {
		if i >= len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, nil
	}}
}

func typeName(v Value) string {
	switch x := v.(type) {
	case None:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case Str:
		return "str"
	case *List:
		return [...]string{"list", "tuple", "range", x.view}[x.kind]
	case *Dict:
		return "dict"
	case *Undefined:
		return "Undefined"
	case *Namespace:
		return "Namespace"
	case *Iter:
		return x.name
	case *Macro:
		return "Macro"
	case *loopVar:
		return "LoopContext"
	}
	return "function"
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch x := v.(type) {
	case None, *Undefined:
		return false
	case bool:
		return x
	case int64:
		return x != 0
	case float64:
		return x != 0
	case Str:
		return x.s != ""
	case *List:
		return len(x.items) > 0
	case *Dict:
		return len(x.keys) > 0
	case *loopVar:
		return true
	}
	return true
}

// normInt keeps integers in int64 wherever they fit.
func normInt(n *big.Int) Value {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}
