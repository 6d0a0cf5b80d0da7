package spec

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// ropeValue is a rotary table of the graph.
type ropeValue struct {
	index int
	table *graph.RopeTable
}

var _ starlark.HasAttrs = (*ropeValue)(nil)

func (r *ropeValue) String() string        { return fmt.Sprintf("rope_table(%d)", r.table.Dim) }
func (r *ropeValue) Type() string          { return "rope_table" }
func (r *ropeValue) Freeze()               {}
func (r *ropeValue) Truth() starlark.Bool  { return true }
func (r *ropeValue) Hash() (uint32, error) { return 0, fmt.Errorf("a rope_table cannot be a key") }

// Attr gives dim, factor (what cosine and sine are multiplied by), and freq:
// the angle of each pair for one position, where it is the same for all texts.
func (r *ropeValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "dim":
		return starlark.MakeInt(r.table.Dim), nil
	case "factor":
		return starlark.Float(r.table.Factor), nil
	case "freq":
		if r.table.Kind != "" || r.table.Divisors != nil {
			return nil, fmt.Errorf("rope_table: .freq: the angles depend on the length of the text, or on stored factors; rotate with rope")
		}
		out := make(starlark.Tuple, len(r.table.Freq))
		for j, f := range r.table.Freq {
			out[j] = starlark.Float(f)
		}
		return out, nil
	}
	return nil, nil
}

func (r *ropeValue) AttrNames() []string { return []string{"dim", "factor", "freq"} }

// ropeConfig reads the settings of one table: the new dict rope_parameters
// (perhaps by layer type), the old rope_scaling, then the top level.
type ropeConfig struct {
	top    *config
	nested *config // the dict that applies; empty if there is none
}

// notNull are settings that have no default where they are written out as null.
var notNull = map[string]bool{"factor": true, "rope_theta": true, "original_max_position_embeddings": true, "partial_rotary_factor": true}

// number reads a positive setting; where missing, def. Where null, def too, but for notNull.
func (r ropeConfig) number(key string, def float64) (float64, error) {
	v, err := r.nested.first([]string{key}, nil, !notNull[key])
	if err != nil || v == nil {
		return def, err
	}
	return positive(r.nested.prefix+key, v, math.MaxFloat64)
}

// anyNumber is number for settings that may be zero or negative.
func (r ropeConfig) anyNumber(key string, def float64) (float64, error) {
	v, err := r.nested.first([]string{key}, nil, true)
	if err != nil || v == nil {
		return def, err
	}
	f, ok := starlark.AsFloat(v)
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("rope_table: %s is %v, expected a finite number", r.nested.prefix+key, v)
	}
	return f, nil
}

// positive is v as a number above 0 and at most limit.
func positive(key string, v starlark.Value, limit float64) (float64, error) {
	f, ok := starlark.AsFloat(v)
	if !ok || !(f > 0 && f <= limit) {
		what := "a finite number above 0"
		if limit < math.MaxFloat64 {
			what = fmt.Sprintf("a number above 0 and at most %g", limit)
		}
		return 0, fmt.Errorf("rope_table: %s is %v, expected %s", key, v, what)
	}
	return f, nil
}

// topNumber reads the dict, then the top level, then takes the default.
func (r ropeConfig) topNumber(key, topKey string, def float64) (float64, error) {
	f, err := r.number(key, math.NaN())
	if err != nil || !math.IsNaN(f) {
		return f, err
	}
	v, err := r.top.first([]string{topKey}, starlark.Float(def), true)
	if err != nil {
		return 0, err
	}
	return positive(r.top.prefix+topKey, v, math.MaxFloat64)
}

func (r ropeConfig) flag(key string, def bool) (bool, error) {
	v, err := r.nested.first([]string{key}, nil, true)
	if err != nil || v == nil {
		return def, err
	}
	b, ok := v.(starlark.Bool)
	if !ok {
		return false, fmt.Errorf("rope_table: %s is %v, expected true or false", r.nested.prefix+key, v)
	}
	return bool(b), nil
}

func (r ropeConfig) list(key string) ([]float64, error) {
	v, err := r.nested.first([]string{key}, nil, true)
	if err != nil || v == nil {
		return nil, err
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("rope_table: %s is no list", r.nested.prefix+key)
	}
	var out []float64
	i := it.Iterate()
	defer i.Done()
	for item := starlark.Value(nil); i.Next(&item); {
		f, err := positive(fmt.Sprintf("%s%s[%d]", r.nested.prefix, key, len(out)), item, math.MaxFloat64)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// kind is the scaling's name, with old spellings.
func (r ropeConfig) kind(renamed *starlark.Dict) (string, error) {
	v, err := r.nested.first([]string{"rope_type", "type"}, nil, false)
	if err != nil || v == nil {
		return "default", err
	}
	s, ok := starlark.AsString(v)
	if !ok || s == "" {
		return "", fmt.Errorf("rope_table: %srope_type is %v, expected the name of a scaling (%s)", r.nested.prefix, v, ropeKinds())
	}
	if renamed != nil {
		if to, found, err := renamed.Get(v); err == nil && found {
			if s, ok = starlark.AsString(to); !ok {
				return "", fmt.Errorf("rope_table: types is {name: name}")
			}
		}
	}
	switch s {
	case "su":
		return "longrope", nil
	case "none", "mrope":
		return "default", nil
	}
	return s, nil
}

// ropeSettings finds the dict for a layer type. def stands in where the files
// have none. A dict for all layers is not read for a layer type, as in the
// reference, which takes the type's defaults then.
func ropeSettings(c *config, layerType string, scaled bool, def *starlark.Dict) (ropeConfig, error) {
	nested, err := c.object("rope_parameters")
	r := ropeConfig{top: c, nested: nested}
	if err != nil {
		return r, err
	}
	if layerType != "" {
		sub, err := r.nested.object(layerType)
		if err != nil {
			return r, err
		}
		if len(sub.m) > 0 {
			r.nested = sub
			return r, nil
		}
	}
	if len(r.nested.m) > 0 && layerType == "" {
		return r, nil
	}
	if scaled {
		if r.nested, err = c.object("rope_scaling"); err != nil || len(r.nested.m) > 0 {
			return r, err
		}
		if def != nil {
			m := map[string]any{}
			for _, item := range def.Items() {
				k, _ := starlark.AsString(item[0])
				m[k] = item[1]
			}
			line := c.d.t.line()
			r.nested = &config{d: c.d, m: m, prefix: "rope_parameters.", source: "spec default " + line.String()}
			return r, nil
		}
	}
	r.nested = &config{d: c.d, prefix: "rope_parameters."}
	return r, nil
}

// object is sub for a key that must be an object, null or missing.
func (c *config) object(key string) (*config, error) {
	x, ok := c.m[key]
	if _, is := x.(map[string]any); ok && x != nil && !is {
		v, err := fromGo(x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.prefix+key, err)
		}
		return nil, fmt.Errorf("rope_table: %s is %v, expected an object or null", c.prefix+key, v)
	}
	return c.sub(key), nil
}

// ropeArgs are the arguments of rope_table(…).
type ropeArgs struct {
	dim       int
	theta     float64
	thetaKey  string
	partial   float64 // default of partial_rotary_factor; 0: the family does not read it for the default type
	layerType string
	scaled    bool    // old spelling: rope_scaling belongs to these layers
	factors   bool    // GGUF: the stored factors belong to these layers
	base      float64 // base frequency of these layers, whatever the files say of all; 0: as they say
	types     *starlark.Dict
}

const docRopeTable = `rope_table(c, dim, theta=10000, layer_type="", partial=None, theta_key="rope_theta", scaled=True, factors=True, default=None, types=None, base=None, factor=None)
The angles of rotary positions: frequencies θ^(−2j/dim) with the scaling that the configuration asks for. It reads rope_parameters (also one by layer type), the
older rope_scaling and rope_theta, and GGUF's stored factors. Scalings: default, linear, dynamic, llama3, yarn, longrope, proportional (transformers' modeling_rope_utils). Make it once, before the layers.
Its .dim is the number of rotated components, its .factor what cosine and sine are multiplied by, its .freq the angles of the pairs for one position (dim/2 numbers; an error where they
depend on the length of the text).
- c: the configuration, or a part of it (c.sub("attn_config")).
- dim: the width of a head, or of the part of it that is rotated.
- theta: base frequency where the files have none.
- layer_type: reads rope_parameters[layer_type], as "sliding_attention".
- partial: the family's default of partial_rotary_factor; given, the factor is read also without a scaling, and dim·factor components rotate.
- theta_key: the key of the base frequency at the top level, as "rope_local_base_freq".
- scaled: False: an older rope_scaling does not belong to these layers.
- factors: False: GGUF's stored factors do not belong to these layers.
- default: the dict of settings where the files have none.
- types: {name in the files: one of the scalings above}.
- base: the base frequency of these layers, whatever the files say of all.
- factor: what cosine and sine are multiplied by, whatever the scaling says.
Errors: an odd or empty dimension, a base that is not positive, an unknown scaling, lists of factors of the wrong length, frequencies that are not finite; each names the key.
`

func doRopeTable(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var c *config
	a := ropeArgs{thetaKey: "rope_theta", scaled: true, factors: true}
	theta := number(10000)
	var partial, base, factor number
	var def *starlark.Dict
	err := starlark.UnpackArgs(name, args, kwargs, "c", &c, "dim", &a.dim, "theta?", &theta, "layer_type?", &a.layerType, "partial?", &partial,
		"theta_key?", &a.thetaKey, "scaled?", &a.scaled, "factors?", &a.factors, "default?", &def, "types?", &a.types, "base?", &base, "factor?", &factor)
	if err != nil {
		return nil, err
	}
	a.theta, a.partial, a.base = float64(theta), float64(partial), float64(base)
	settings, err := ropeSettings(c, a.layerType, a.scaled, def)
	if err != nil {
		return nil, err
	}
	table, err := t.ropeTable(c, a, settings)
	if err != nil {
		return nil, err
	}
	if factor > 0 {
		table.Factor = float64(factor)
	}
	return &ropeValue{index: t.b.AddRope(table), table: table}, nil
}

func (t *tracer) ropeTable(c *config, a ropeArgs, r ropeConfig) (*graph.RopeTable, error) {
	kind, err := r.kind(a.types)
	if err != nil {
		return nil, err
	}
	theta, err := r.topNumber("rope_theta", a.thetaKey, a.theta)
	if err != nil {
		return nil, err
	}
	if a.base != 0 {
		theta = a.base
	}
	dim, err := t.ropeDim(c, a, r, kind)
	if err != nil {
		return nil, err
	}
	if dim < 2 || dim%2 != 0 || dim > 1<<16 || !(theta > 0) {
		return nil, fmt.Errorf("rope_table: dimension %d must be even and base frequency %g positive", dim, theta)
	}
	tab := &graph.RopeTable{Dim: dim, Factor: 1, Freq: ropeFreq(theta, dim)}
	t.asked.rope(theta, kind)
	if t.files.Binding() == GGUF && a.factors && !t.carriedScaling() {
		if done, err := t.storedFactors(tab, c, r); done || err != nil {
			return tab, err
		}
	}
	scale, ok := ropeScalings[kind]
	if !ok {
		return nil, fmt.Errorf("rope_table: no scaling %q, expected one of %s", kind, ropeKinds())
	}
	if err := scale(tab, c, r, theta); err != nil {
		return nil, err
	}
	for _, f := range append(append([]float64{tab.Factor}, tab.Freq...), tab.LongFreq...) {
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("rope_table: the settings of scaling %q give frequencies that are not finite", kind)
		}
	}
	return tab, nil
}

// ropeDim is the number of rotated components.
func (t *tracer) ropeDim(c *config, a ropeArgs, r ropeConfig, kind string) (int, error) {
	whole := a.partial == 0 && (kind == "default" || kind == "proportional")
	if t.files.Binding() == GGUF && !c.d.owns() { // a carried config.json says it itself
		return t.rotaryDim(c, a, whole)
	}
	if whole {
		return a.dim, nil
	}
	if a.partial > 0 {
		f, err := r.topNumber("partial_rotary_factor", "partial_rotary_factor", a.partial)
		return int(float64(a.dim) * f), err
	}
	f, err := r.number("partial_rotary_factor", 1)
	if err != nil {
		return 0, err
	}
	v, err := c.first([]string{"partial_rotary_factor"}, nil, true)
	if err == nil && v != nil && f == 1 {
		f, err = positive(c.prefix+"partial_rotary_factor", v, 1)
	}
	return int(float64(a.dim) * f), err
}

// rotaryDim is the number of rotated components that a GGUF file gives. Where
// whole is set the specification rotates all, and the file must not say less;
// a table of a layer type may have a size of its own.
func (t *tracer) rotaryDim(c *config, a ropeArgs, whole bool) (int, error) {
	v, source, ok, err := c.find("rotary_dim")
	if err != nil || !ok || v == starlark.None || whole && (a.layerType != "" || !a.factors || !a.scaled) {
		return a.dim, err
	}
	n, err := starlark.AsInt32(v)
	switch {
	case err != nil || n < 2 || n%2 != 0 || n > a.dim:
		return 0, fmt.Errorf("rope_table: rotary_dim (%s) is %v, expected an even number from 2 to %d, the width of what is rotated", source, v, a.dim)
	case whole && n < a.dim:
		return 0, fmt.Errorf("rope_table: rotary_dim (%s) is %d, but this specification rotates all %d components of a head", source, n, a.dim)
	case !whole:
		c.d.record(c.prefix+"rotary_dim", v, source)
	}
	return n, nil
}

// ropeFreq is θ^(−2j/D).
func ropeFreq(theta float64, dim int) []float64 {
	f := make([]float64, dim/2)
	for j := range f {
		f[j] = math.Pow(theta, -2*float64(j)/float64(dim))
	}
	return f
}
