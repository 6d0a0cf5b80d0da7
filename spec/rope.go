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

// Attr gives dim, and factor: what cosine and sine are multiplied by.
func (r *ropeValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "dim":
		return starlark.MakeInt(r.table.Dim), nil
	case "factor":
		return starlark.Float(r.table.Factor), nil
	}
	return nil, nil
}

func (r *ropeValue) AttrNames() []string { return []string{"dim", "factor"} }

// ropeConfig reads the settings of one table: the new dict rope_parameters
// (perhaps by layer type), the old rope_scaling, then the top level.
type ropeConfig struct {
	top    *config
	nested *config // the dict that applies; empty if there is none
}

// number reads a setting; where null or missing, def.
func (r ropeConfig) number(key string, def float64) (float64, error) {
	v, err := r.nested.first([]string{key}, nil, true)
	if err != nil || v == nil {
		return def, err
	}
	f, ok := starlark.AsFloat(v)
	if !ok {
		return 0, fmt.Errorf("rope_table: %s is a %s, not a number", r.nested.prefix+key, v.Type())
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
	f, ok := starlark.AsFloat(v)
	if !ok {
		return 0, fmt.Errorf("rope_table: %s is a %s, not a number", topKey, v.Type())
	}
	return f, nil
}

func (r ropeConfig) flag(key string, def bool) (bool, error) {
	v, err := r.nested.first([]string{key}, nil, true)
	if err != nil || v == nil {
		return def, err
	}
	return bool(v.Truth()), nil
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
		f, ok := starlark.AsFloat(item)
		if !ok {
			return nil, fmt.Errorf("rope_table: %s holds a %s", r.nested.prefix+key, item.Type())
		}
		out = append(out, f)
	}
	return out, nil
}

// kind is the scaling's name, with old spellings.
func (r ropeConfig) kind(renamed *starlark.Dict) (string, error) {
	v, err := r.nested.first([]string{"rope_type", "type"}, nil, true)
	if err != nil || v == nil {
		return "default", err
	}
	s, ok := starlark.AsString(v)
	if !ok {
		return "", fmt.Errorf("rope_table: the type is a %s, not a string", v.Type())
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
	case "none", "mrope", "":
		return "default", nil
	}
	return s, nil
}

// ropeSettings finds the dict for a layer type. def stands in where the files
// have none.
func ropeSettings(c *config, layerType string, scaled bool, def *starlark.Dict) ropeConfig {
	r := ropeConfig{top: c, nested: c.sub("rope_parameters")}
	if layerType != "" {
		if sub := r.nested.sub(layerType); len(sub.m) > 0 {
			r.nested = sub
			return r
		}
	}
	if len(r.nested.m) > 0 && (layerType == "" || scaled) {
		return r
	}
	if scaled {
		if r.nested = c.sub("rope_scaling"); len(r.nested.m) > 0 {
			return r
		}
		if def != nil {
			m := map[string]any{}
			for _, item := range def.Items() {
				k, _ := starlark.AsString(item[0])
				m[k] = item[1]
			}
			line := c.d.t.line()
			r.nested = &config{d: c.d, m: m, prefix: "rope_parameters.", source: "spec default " + line.String()}
			return r
		}
	}
	r.nested = &config{d: c.d, prefix: "rope_parameters."}
	return r
}

// ropeArgs are the arguments of rope_table(…).
type ropeArgs struct {
	dim       int
	theta     float64
	thetaKey  string
	partial   float64 // default of partial_rotary_factor; 0: the family does not read it for the default type
	layerType string
	scaled    bool // old spelling: rope_scaling belongs to these layers
	factors   bool // GGUF: the stored factors belong to these layers
	types     *starlark.Dict
}

func doRopeTable(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var c *config
	a := ropeArgs{thetaKey: "rope_theta", scaled: true, factors: true}
	theta := number(10000)
	var partial number
	var def *starlark.Dict
	err := starlark.UnpackArgs(name, args, kwargs, "c", &c, "dim", &a.dim, "theta?", &theta, "layer_type?", &a.layerType, "partial?", &partial,
		"theta_key?", &a.thetaKey, "scaled?", &a.scaled, "factors?", &a.factors, "default?", &def, "types?", &a.types)
	if err != nil {
		return nil, err
	}
	a.theta, a.partial = float64(theta), float64(partial)
	table, err := t.ropeTable(c, a, ropeSettings(c, a.layerType, a.scaled, def))
	if err != nil {
		return nil, err
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
	dim, err := t.ropeDim(c, a, r, kind)
	if err != nil {
		return nil, err
	}
	if dim < 2 || dim%2 != 0 || dim > 1<<16 || !(theta > 0) {
		return nil, fmt.Errorf("rope_table: dimension %d must be even and base frequency %g positive", dim, theta)
	}
	tab := &graph.RopeTable{Dim: dim, Factor: 1, Freq: ropeFreq(theta, dim)}
	if t.files.Binding() == GGUF && a.factors {
		if done, err := t.storedFactors(tab, c, r); done || err != nil {
			return tab, err
		}
	}
	scale, ok := ropeScalings[kind]
	if !ok {
		return nil, fmt.Errorf("rope_table: no scaling %q", kind)
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
	if a.partial == 0 && (kind == "default" || kind == "proportional") {
		return a.dim, nil
	}
	if t.files.Binding() == GGUF {
		v, err := c.first([]string{"rotary_dim"}, nil, true)
		if err != nil || v == nil {
			return a.dim, err
		}
		return starlark.AsInt32(v)
	}
	if a.partial > 0 {
		f, err := r.topNumber("partial_rotary_factor", "partial_rotary_factor", a.partial)
		return int(float64(a.dim) * f), err
	}
	f, err := r.number("partial_rotary_factor", 1)
	if v, e := c.first([]string{"partial_rotary_factor"}, nil, true); e == nil && v != nil && f == 1 {
		f, _ = starlark.AsFloat(v)
	}
	return int(float64(a.dim) * f), err
}

// ropeFreq is θ^(−2j/D).
func ropeFreq(theta float64, dim int) []float64 {
	f := make([]float64, dim/2)
	for j := range f {
		f[j] = math.Pow(theta, -2*float64(j)/float64(dim))
	}
	return f
}
