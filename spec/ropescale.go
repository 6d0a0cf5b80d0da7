package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
)

// ropeScalings change a table of plain frequencies, by rope_type.
// Source: transformers, modeling_rope_utils.py.
var ropeScalings = map[string]func(tab *graph.RopeTable, c *config, r ropeConfig, theta float64) error{
	"default":      func(*graph.RopeTable, *config, ropeConfig, float64) error { return nil },
	"linear":       ropeLinear,
	"dynamic":      ropeDynamic,
	"llama3":       ropeBands,
	"yarn":         ropeYarn,
	"longrope":     ropeLong,
	"proportional": ropeProportional,
}

// ropeKinds lists the scalings for messages.
func ropeKinds() string {
	names := slices.Sorted(maps.Keys(ropeScalings))
	return strings.Join(names, ", ")
}

func ropeLinear(tab *graph.RopeTable, _ *config, r ropeConfig, _ float64) error {
	factor, err := r.number("factor", 1)
	if err != nil {
		return err
	}
	for j := range tab.Freq {
		tab.Freq[j] /= factor
	}
	return nil
}

// ropeDynamic: NTK by length; with alpha the base is raised once and for all.
func ropeDynamic(tab *graph.RopeTable, c *config, r ropeConfig, theta float64) error {
	alpha, err := r.anyNumber("alpha", 0)
	if err != nil {
		return err
	}
	d := float64(tab.Dim)
	if alpha > 0 {
		tab.Freq = ropeFreq(theta*math.Pow(alpha, d/(d-2)), tab.Dim)
		return nil
	}
	factor, err := r.number("factor", 1)
	if err != nil {
		return err
	}
	maxPos, err := maxPositions(c)
	if err != nil {
		return err
	}
	tab.Kind, tab.Original, tab.Theta, tab.NTKFactor = "dynamic", maxPos, theta, factor
	return nil
}

func maxPositions(c *config) (int, error) {
	v, err := c.must(lengthKeys...)
	if err != nil {
		return 0, err
	}
	return positionCount("max_position_embeddings", v)
}

// original is the length that the model was trained on before scaling: the
// top level's, then the dict's, then max_position_embeddings.
func original(c *config, r ropeConfig) (float64, error) {
	v, err := c.first([]string{"original_max_position_embeddings"}, nil, true)
	if err != nil {
		return 0, err
	}
	if v != nil {
		return positive(c.prefix+"original_max_position_embeddings", v, math.MaxInt32)
	}
	f, err := r.number("original_max_position_embeddings", 0)
	if err != nil || f > 0 {
		return f, err
	}
	n, err := maxPositions(c)
	return float64(n), err
}

// ropeBands is llama3's scaling: long waves are slowed, short ones kept, those
// between interpolated.
func ropeBands(tab *graph.RopeTable, c *config, r ropeConfig, _ float64) error {
	factor, err := r.number("factor", 1)
	if err != nil {
		return err
	}
	low, err := r.number("low_freq_factor", 1)
	if err != nil {
		return err
	}
	high, err := r.number("high_freq_factor", 4)
	if err != nil {
		return err
	}
	if high <= low {
		return fmt.Errorf("rope_table: %shigh_freq_factor is %g, expected more than low_freq_factor, which is %g", r.nested.prefix, high, low)
	}
	orig, err := original(c, r)
	if err != nil {
		return err
	}
	for j, f := range tab.Freq {
		wave := 2 * math.Pi / f
		switch {
		case wave < orig/high:
		case wave > orig/low:
			tab.Freq[j] = f / factor
		default:
			s := (orig/wave - low) / (high - low)
			tab.Freq[j] = f * ((1-s)/factor + s)
		}
	}
	return nil
}

func ropeYarn(tab *graph.RopeTable, c *config, r ropeConfig, theta float64) error {
	orig, err := original(c, r)
	if err != nil {
		return err
	}
	factor, err := r.number("factor", 0)
	if err != nil {
		return err
	}
	if factor == 0 {
		n, err := maxPositions(c)
		if err != nil {
			return err
		}
		factor = float64(n) / orig
	}
	fast, err := r.number("beta_fast", 32)
	if err != nil {
		return err
	}
	slow, err := r.number("beta_slow", 1)
	if err != nil {
		return err
	}
	truncate, err := r.flag("truncate", true)
	if err != nil {
		return err
	}
	yarnBlend(tab, orig, factor, theta, fast, slow, truncate)
	if tab.Factor, err = yarnAttention(r, factor); err != nil {
		return err
	}
	times, err := yarnTimes(c, r)
	tab.Factor *= times
	return err
}

// yarnBlend mixes slowed and plain frequencies along a ramp over the pairs.
func yarnBlend(tab *graph.RopeTable, orig, factor, theta, fast, slow float64, truncate bool) {
	d := float64(tab.Dim)
	at := func(rotations float64) float64 {
		return d * math.Log(orig/(2*math.Pi*rotations)) / (2 * math.Log(theta))
	}
	low, high := at(fast), at(slow)
	if truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = math.Max(low, 0), math.Min(high, d-1)
	if low == high {
		high += 0.001
	}
	for j, f := range tab.Freq {
		ramp := math.Min(math.Max((float64(j)-low)/(high-low), 0), 1)
		tab.Freq[j] = f/factor*ramp + f*(1-ramp)
	}
}

func yarnAttention(r ropeConfig, factor float64) (float64, error) {
	given, err := r.number("attention_factor", 0)
	if err != nil || given > 0 {
		return given, err
	}
	m, err := r.anyNumber("mscale", 0)
	if err != nil {
		return 0, err
	}
	all, err := r.anyNumber("mscale_all_dim", 0)
	if err != nil {
		return 0, err
	}
	if m != 0 && all != 0 {
		return yarnScale(factor, m) / yarnScale(factor, all), nil
	}
	return yarnScale(factor, 1), nil
}

func yarnScale(s, a float64) float64 {
	if s <= 1 {
		return 1
	}
	return 0.1*a*math.Log(s) + 1
}

func ropeLong(tab *graph.RopeTable, c *config, r ropeConfig, theta float64) error {
	long, err := r.list("long_factor")
	if err != nil {
		return err
	}
	short, err := r.list("short_factor")
	if err != nil {
		return err
	}
	if len(long) != tab.Dim/2 || len(short) != tab.Dim/2 {
		return fmt.Errorf("rope_table: long_factor has %d and short_factor %d entries, expected %d", len(long), len(short), tab.Dim/2)
	}
	if err := longThreshold(tab, c, r); err != nil {
		return err
	}
	plain := ropeFreq(theta, tab.Dim)
	tab.LongFreq = make([]float64, len(plain))
	for j, f := range plain {
		tab.Freq[j], tab.LongFreq[j] = f/short[j], f/long[j]
	}
	return nil
}

// longThreshold sets kind, threshold and attention factor of a longrope table.
func longThreshold(tab *graph.RopeTable, c *config, r ropeConfig) error {
	orig, err := original(c, r)
	if err != nil {
		return err
	}
	tab.Kind, tab.Original = "longrope", int(orig)
	for _, key := range []string{"attention_factor", "attn_factor"} {
		given, err := r.number(key, 0)
		if err != nil {
			return err
		}
		if given > 0 {
			tab.Factor = given
			return nil
		}
	}
	s, err := r.number("factor", 0)
	if err != nil {
		return err
	}
	if s == 0 {
		n, err := maxPositions(c)
		if err != nil {
			return err
		}
		s = float64(n) / orig
	}
	if s > 1 {
		tab.Factor = math.Sqrt(1 + math.Log(s)/math.Log(orig))
	}
	return nil
}

// ropeProportional rotates the first pairs only and leaves the others at
// frequency 0.
func ropeProportional(tab *graph.RopeTable, _ *config, r ropeConfig, _ float64) error {
	part, err := r.number("partial_rotary_factor", 1)
	if err != nil {
		return err
	}
	factor, err := r.number("factor", 1)
	if err != nil {
		return err
	}
	n := int(part * float64(tab.Dim) / 2)
	for j := range tab.Freq {
		if j < n {
			tab.Freq[j] /= factor
		} else {
			tab.Freq[j] = 0
		}
	}
	return nil
}

// carriedScaling says that the file carries the config.json which its stored
// factors were made of: other readers' form of what that says in full.
func (t *tracer) carriedScaling() bool {
	if !t.config.owns() {
		return false
	}
	for _, name := range []string{"rope_factors_long.weight", "rope_factors_short.weight", "rope_freqs.weight"} {
		if _, ok := t.files.Tensor(name); ok {
			t.used[name] = true
		}
	}
	return true
}

// storedFactors takes the divisors that GGUF files store as tensors: one list,
// or a short and a long one. done says that they are all the scaling there is.
func (t *tracer) storedFactors(tab *graph.RopeTable, c *config, r ropeConfig) (done bool, err error) {
	get := func(name string) *graph.Weight {
		v, ok := t.files.Tensor(name)
		if !ok {
			return nil
		}
		t.used[name] = true
		if v.Shape == nil {
			t.sketch = true
			return nil
		}
		if v.Shape.Elements() != tab.Dim/2 || len(v.Shape) != 1 {
			t.complain("rope_table: %s is %v, expected [%d]", name, v.Shape, tab.Dim/2)
			return nil
		}
		return graph.Tensor(name, v.Shape)
	}
	if long, short := get("rope_factors_long.weight"), get("rope_factors_short.weight"); long != nil && short != nil {
		tab.Divisors, tab.LongDiv = short, long
		tab.LongFreq = append([]float64(nil), tab.Freq...)
		return true, longThreshold(tab, c, r)
	}
	if d := get("rope_freqs.weight"); d != nil {
		tab.Divisors = d
		return true, nil
	}
	return false, nil
}
