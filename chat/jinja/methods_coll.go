package jinja

type dictMethod func(r *run, d *Dict, a *args) (Value, error)
type listMethod func(r *run, l *List, a *args) (Value, error)

// dictMethods are the methods of Python's dict that templates may call. Each
// rendering has values of its own, so those that change a dict are allowed.
var dictMethods = map[string]dictMethod{
	"clear": func(r *run, d *Dict, a *args) (Value, error) {
		*d = *NewDict()
		return None{}, nil
	},
	"copy":       func(r *run, d *Dict, a *args) (Value, error) { return r.copyDict(d) },
	"get":        dictGet,
	"items":      func(r *run, d *Dict, a *args) (Value, error) { return r.dictItems(d) },
	"keys":       func(r *run, d *Dict, a *args) (Value, error) { return r.view("dict_keys", d.keys) },
	"pop":        dictPop,
	"setdefault": dictSetDefault,
	"update":     dictUpdate,
	"values":     func(r *run, d *Dict, a *args) (Value, error) { return r.view("dict_values", d.vals) },
}

func (r *run) view(name string, items []Value) (Value, error) {
	if err := r.list(len(items)); err != nil {
		return nil, err
	}
	return &List{items: append([]Value(nil), items...), kind: kindView, view: name}, nil
}

func (r *run) dictItems(d *Dict) (*List, error) {
	if err := r.list(3 * len(d.keys)); err != nil {
		return nil, err
	}
	out := &List{kind: kindView, view: "dict_items", items: make([]Value, len(d.keys))}
	for i, k := range d.keys {
		out.items[i] = newTuple(k, d.vals[i])
	}
	return out, nil
}

func (r *run) copyDict(d *Dict) (*Dict, error) {
	if err := r.list(3 * len(d.keys)); err != nil {
		return nil, err
	}
	out := NewDict()
	for i, k := range d.keys {
		if err := r.put(out, k, d.vals[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func dictGet(r *run, d *Dict, a *args) (Value, error) {
	v, err := a.bind("get", 1, "key", "default")
	if err != nil {
		return nil, err
	}
	x, ok, err := r.lookup(d, v[0])
	if ok || err != nil {
		return x, err
	}
	if v[1] == nil {
		return None{}, nil
	}
	return v[1], nil
}

func dictPop(r *run, d *Dict, a *args) (Value, error) {
	v, err := a.bind("pop", 1, "key", "default")
	if err != nil {
		return nil, err
	}
	if err := r.step(len(d.keys) / 8); err != nil {
		return nil, err
	}
	if _, err := r.key(v[0]); err != nil {
		return nil, err
	}
	x, ok, err := d.remove(v[0])
	if ok || err != nil {
		return x, err
	}
	if v[1] == nil {
		return nil, errorf("pop: the dict has no such key")
	}
	return v[1], nil
}

func dictSetDefault(r *run, d *Dict, a *args) (Value, error) {
	v, err := a.bind("setdefault", 1, "key", "default")
	if err != nil {
		return nil, err
	}
	x, ok, err := r.lookup(d, v[0])
	if ok || err != nil {
		return x, err
	}
	if x = v[1]; x == nil {
		x = None{}
	}
	if err := r.list(3); err != nil {
		return nil, err
	}
	return x, r.put(d, v[0], x)
}

func dictUpdate(r *run, d *Dict, a *args) (Value, error) { return None{}, r.fill(d, a) }

// fill adds what dict(…) and update(…) are given: a dict or pairs, then names.
func (r *run) fill(d *Dict, a *args) error {
	if len(a.pos) > 1 {
		return errorf("dict takes at most one argument without a name, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		src, ok := a.pos[0].(*Dict)
		if ok {
			view, err := r.dictItems(src)
			if err != nil {
				return err
			}
			a.pos[0] = view
		}
		pairs, err := r.items(a.pos[0])
		if err != nil {
			return err
		}
		for _, p := range pairs {
			kv, err := r.items(p)
			if err != nil {
				return err
			}
			if len(kv) != 2 {
				return errorf("dict wants pairs, got %d items", len(kv))
			}
			if err := r.put(d, kv[0], kv[1]); err != nil {
				return err
			}
		}
	}
	for i, name := range a.names {
		d.Set(name, a.named[i])
	}
	return r.list(3 * len(a.names))
}

// listMethods are the methods of Python's list; tuples have index and count.
var listMethods = map[string]listMethod{
	"append": func(r *run, l *List, a *args) (Value, error) {
		v, err := a.bind("append", 1, "object")
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v[0])
		return None{}, r.list(1)
	},
	"clear": func(r *run, l *List, a *args) (Value, error) {
		l.items = nil
		return None{}, nil
	},
	"copy": func(r *run, l *List, a *args) (Value, error) {
		return newList(append([]Value(nil), l.items...)), r.list(len(l.items))
	},
	"count": listCount,
	"extend": func(r *run, l *List, a *args) (Value, error) {
		v, err := a.bind("extend", 1, "iterable")
		if err != nil {
			return nil, err
		}
		items, err := r.items(v[0])
		l.items = append(l.items, items...)
		return None{}, err
	},
	"index":  listIndex,
	"insert": listInsert,
	"pop":    listPop,
	"remove": listRemove,
	"reverse": func(r *run, l *List, a *args) (Value, error) {
		for i, j := 0, len(l.items)-1; i < j; i, j = i+1, j-1 {
			l.items[i], l.items[j] = l.items[j], l.items[i]
		}
		return None{}, r.step(len(l.items) / 8)
	},
}

func (r *run) position(l *List, x Value) (int, error) {
	for i, it := range l.items {
		if eq, err := r.equal(it, x); eq || err != nil {
			return i, err
		}
	}
	return -1, nil
}

func listIndex(r *run, l *List, a *args) (Value, error) {
	v, err := a.bind("index", 1, "value")
	if err != nil {
		return nil, err
	}
	i, err := r.position(l, v[0])
	if err == nil && i < 0 {
		err = errorf("index: the list does not hold this value")
	}
	return int64(i), err
}

func listCount(r *run, l *List, a *args) (Value, error) {
	v, err := a.bind("count", 1, "value")
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for _, it := range l.items {
		eq, err := r.equal(it, v[0])
		if err != nil {
			return nil, err
		}
		if eq {
			n++
		}
	}
	return n, nil
}

func listInsert(r *run, l *List, a *args) (Value, error) {
	v, err := a.bind("insert", 2, "index", "object")
	if err != nil {
		return nil, err
	}
	i, err := intArg("insert", v[0], 0)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		i += int64(len(l.items))
	}
	k := clamp(i, 0, len(l.items))
	if err := r.list(len(l.items) + 1); err != nil {
		return nil, err
	}
	items := append(l.items[:k:k], v[1])
	l.items = append(items, l.items[k:]...)
	return None{}, nil
}

func (r *run) cut(l *List, i int) (Value, error) {
	x := l.items[i]
	l.items = append(l.items[:i:i], l.items[i+1:]...)
	return x, r.list(len(l.items))
}

func listPop(r *run, l *List, a *args) (Value, error) {
	v, err := a.bind("pop", 0, "index")
	if err != nil {
		return nil, err
	}
	i, err := intArg("pop", v[0], -1)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		i += int64(len(l.items))
	}
	if i < 0 || i >= int64(len(l.items)) {
		return nil, errorf("pop: index outside a list of %d", len(l.items))
	}
	return r.cut(l, int(i))
}

func listRemove(r *run, l *List, a *args) (Value, error) {
	v, err := a.bind("remove", 1, "value")
	if err != nil {
		return nil, err
	}
	i, err := r.position(l, v[0])
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, errorf("remove: the list does not hold this value")
	}
	_, err = r.cut(l, i)
	return None{}, err
}
