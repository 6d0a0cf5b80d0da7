package spec

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"go.starlark.net/starlark"
)

// configData is a model's configuration under the names of config.json, and
// the record of what was read from where.
type configData struct {
	t         *tracer
	source    string // of a value in the files
	data      map[string]any
	origin    map[string]string   // where a translated value stood
	overrides map[string]override // by dotted key
	set       map[string]any      // by dotted key, from the user
	asked     map[string]bool     // keys of set that were asked for
	read      map[string]int      // index into list
	list      []ConfigValue
	own       map[string]any // config.json that a GGUF file carries, nil where it has none
}

// owns says that a GGUF file carries the config.json it was made of, so that
// nothing needs to stand in for what the format cannot say.
func (d *configData) owns() bool { return d.own != nil }

type override struct {
	value  starlark.Value // or a function of c
	reason string
}

func newConfigData(t *tracer) *configData {
	d := &configData{t: t, source: "config.json", overrides: map[string]override{}, set: t.opts.Set, asked: map[string]bool{}, read: map[string]int{}}
	d.data, d.origin = t.files.Config(), map[string]string{}
	if t.files.Binding() == GGUF {
		d.data, d.origin = translate(t.files)
		d.own = ownConfig(t.files)
	}
	return d
}

func (d *configData) root() *config { return &config{d: d, m: d.data} }

func (d *configData) values() []ConfigValue { return d.list }

// zeros names the keys that may be behind a division by zero: those that were read as 0.
func (t *tracer) zeros(msg string) string {
	if !strings.Contains(msg, "division by zero") && !strings.Contains(msg, "modulo by zero") {
		return ""
	}
	var keys []string
	for _, v := range t.config.list {
		if s := fmt.Sprint(v.Value); s == "0" || s == "0.0" {
			keys = append(keys, fmt.Sprintf("%s (%s)", cut(v.Key), v.Source))
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return ": 0 is " + strings.Join(keys[:min(len(keys), 5)], ", ")
}

// lengthKeys are the names under which configurations give the trained length.
var lengthKeys = []string{"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length"}

// maxPositions reads the length limit under its usual names; 0 where there is none.
func (d *configData) maxPositions() (int, error) {
	for _, m := range []*config{d.root(), d.root().sub("text_config")} {
		for _, k := range lengthKeys {
			v, source, ok, err := m.find(k)
			if err != nil {
				return 0, err
			}
			if ok && v != starlark.None {
				return positionCount(fmt.Sprintf("%s (%s)", m.prefix+k, source), v)
			}
		}
	}
	return 0, nil
}

// positionCount is v as a number of positions; what int32 does not hold is
// as good as its largest.
func positionCount(key string, v starlark.Value) (int, error) {
	f, ok := starlark.AsFloat(v)
	if !ok || !(f >= 1) || f != math.Trunc(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%s is %v, expected a whole number of positions above 0", key, cut(v.String()))
	}
	return int(math.Min(f, math.MaxInt32)), nil
}

// epsKey names, in parentheses, the key that a bad eps was read from; "" where
// none is known.
func (d *configData) epsKey(eps float64) string {
	for _, v := range d.list {
		f, ok := v.Value.(float64)
		if i, is := v.Value.(int64); is {
			f, ok = float64(i), true
		}
		if ok && strings.Contains(v.Key, "eps") && (f == eps || math.IsNaN(f) && math.IsNaN(eps)) {
			return fmt.Sprintf(" (%s, %s)", v.Key, v.Source)
		}
	}
	return ""
}

// unread lists the keys of the files that nothing asked for, sorted: where a
// family has a multiplier that its specification forgot, it is among them.
func (d *configData) unread() []string {
	inside := map[string]bool{} // keys below which some key was asked for
	for r := range d.read {
		for i := range r {
			if r[i] == '.' {
				inside[r[:i]] = true
			}
		}
	}
	keys := unreadIn(d.data, "", d.read, inside)
	sort.Strings(keys)
	return keys
}

// unreadIn lists what was not read of an object: whole objects of which nothing
// was, and single keys of the others.
func unreadIn(m map[string]any, prefix string, read map[string]int, inside map[string]bool) (keys []string) {
	for k, v := range m {
		k = prefix + k
		if _, ok := read[k]; ok {
			continue
		}
		if sub, ok := v.(map[string]any); ok && inside[k] {
			keys = append(keys, unreadIn(sub, k+".", read, inside)...)
		} else if !inside[k] {
			keys = append(keys, k)
		}
	}
	return keys
}

// record keeps the first reading of a key.
func (d *configData) record(key string, v starlark.Value, source string) {
	if _, ok := d.read[key]; ok {
		return
	}
	d.read[key] = len(d.list)
	d.list = append(d.list, ConfigValue{Key: key, Value: plain(v), Source: source})
}

// config is the object c, or a part of it under a dotted prefix.
type config struct {
	d      *configData
	m      map[string]any
	prefix string
	source string // of its values, where not the files
}

var _ starlark.HasAttrs = (*config)(nil)

func (c *config) String() string        { return "config(" + strings.TrimSuffix(c.prefix, ".") + ")" }
func (c *config) Type() string          { return "config" }
func (c *config) Freeze()               {}
func (c *config) Truth() starlark.Bool  { return len(c.m) > 0 }
func (c *config) Hash() (uint32, error) { return 0, fmt.Errorf("a config cannot be a key") }

var configMethods = map[string]func(*config, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error){
	"key": (*config).callKey, "get": (*config).callGet, "value": (*config).callValue, "sub": (*config).callSub,
	"has": (*config).callHas, "raw": (*config).callRaw,
}

// Attr is a method, the binding, or the key of that name; a missing key fails.
func (c *config) Attr(name string) (starlark.Value, error) {
	if name == "binding" {
		return starlark.String(c.d.t.files.Binding()), nil
	}
	if m, ok := configMethods[name]; ok {
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return m(c, b, args, kwargs)
		}), nil
	}
	return c.must(name)
}

func (c *config) AttrNames() []string {
	names := []string{"binding"}
	for k := range configMethods {
		names = append(names, k)
	}
	for k := range c.m {
		names = append(names, k)
	}
	sort.Strings(names)
	return names
}

// find reads a key: the user's value, the specification's override, the files'.
func (c *config) find(key string) (v starlark.Value, source string, ok bool, err error) {
	full := c.prefix + key
	if x, ok := c.d.set[full]; ok {
		c.d.asked[full] = true
		v, err := fromGo(x)
		return v, "set by the user", true, err
	}
	if o, ok := c.d.overrides[full]; ok && !c.d.owns() {
		if f, is := o.value.(starlark.Callable); is {
			v, err := starlark.Call(c.d.t.thread, f, starlark.Tuple{c.d.root()}, nil)
			return v, "override: " + o.reason, true, err
		}
		return o.value, "override: " + o.reason, true, nil
	}
	x, ok := c.m[key]
	if !ok {
		return nil, "", false, nil
	}
	v, err = fromGo(x)
	if err != nil {
		return nil, "", false, fmt.Errorf("%s: %w", full, err)
	}
	source = c.d.source
	if c.source != "" {
		source = c.source
	} else if o := c.d.origin[full]; o != "" {
		source = "gguf " + o
	}
	return v, source, true, nil
}

// first tries the keys in turn, records the one found, else the default.
func (c *config) first(keys []string, def starlark.Value, nullToo bool) (starlark.Value, error) {
	for _, k := range keys {
		v, source, ok, err := c.find(k)
		if err != nil {
			return nil, err
		}
		if ok && !(nullToo && v == starlark.None) {
			c.d.record(c.prefix+k, v, source)
			c.d.t.asked.config(c.prefix, keys, v, false)
			return v, nil
		}
	}
	if def == nil {
		return nil, nil
	}
	line := c.d.t.line()
	c.d.record(c.prefix+keys[0], def, "spec default "+line.String())
	c.d.t.asked.config(c.prefix, keys, def, true)
	return def, nil
}

func (c *config) must(keys ...string) (starlark.Value, error) {
	v, err := c.first(keys, nil, false)
	if err == nil && v == nil {
		what := c.d.source
		if c.d.t.files.Binding() == GGUF {
			what = "the GGUF metadata"
		}
		err = fmt.Errorf("%s lacks %s; use c.get(%q, default) if it may be missing", what, c.prefix+strings.Join(keys, " or "), keys[0])
	}
	return v, err
}

func (c *config) callKey(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key); err != nil {
		return nil, err
	}
	keys, err := stringList(key)
	if err != nil || len(keys) == 0 {
		return nil, fmt.Errorf("key: expected a name or a list of names")
	}
	return c.must(keys...)
}

func (c *config) callGet(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return c.lookup(b, args, kwargs, false)
}

func (c *config) callValue(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return c.lookup(b, args, kwargs, true)
}

func (c *config) lookup(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, nullToo bool) (starlark.Value, error) {
	var key starlark.Value
	def := starlark.Value(starlark.None)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key, "default?", &def); err != nil {
		return nil, err
	}
	keys, err := stringList(key)
	if err != nil || len(keys) == 0 {
		return nil, fmt.Errorf("%s: expected a name or a list of names", b.Name())
	}
	return c.first(keys, def, nullToo)
}

func (c *config) callSub(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key); err != nil {
		return nil, err
	}
	return c.sub(key), nil
}

// sub is the part under a key; an empty one if it is missing or no object.
func (c *config) sub(key string) *config {
	m, _ := c.m[key].(map[string]any)
	return &config{d: c.d, m: m, prefix: c.prefix + key + "."}
}

func (c *config) callHas(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key); err != nil {
		return nil, err
	}
	_, _, ok, err := c.find(key)
	return starlark.Bool(ok), err
}

// callRaw reads GGUF metadata under its own key, or a top-level key of config.json.
func (c *config) callRaw(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key string
	def := starlark.Value(starlark.None)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key, "default?", &def); err != nil {
		return nil, err
	}
	x, ok := c.d.t.files.Config()[key]
	if !ok {
		return def, nil
	}
	return fromGo(x)
}
