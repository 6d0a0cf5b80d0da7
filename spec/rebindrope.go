package spec

import (
	"math"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// storedScaling says with lists of factors what a GGUF file holds as tensors
// of divisors, whatever scaling these were made of.
func (r *rebinder) storedScaling(c map[string]any) {
	short, ok1 := r.divisors("rope_freqs.weight")
	long, ok2 := short, ok1
	if !ok1 {
		short, ok1 = r.divisors("rope_factors_short.weight")
		long, ok2 = r.divisors("rope_factors_long.weight")
	}
	if !ok1 || !ok2 || len(r.from.b.G.Ropes) == 0 {
		return
	}
	tab := r.from.b.G.Ropes[0]
	if kept := keptWhole(short); kept > 0 && ok1 {
		proportional(c, float64(kept)/float64(len(short)))
		return
	}
	scaling := map[string]any{"rope_type": "longrope", "short_factor": short, "long_factor": long, "attention_factor": tab.Factor}
	if tab.Original > 0 {
		scaling["original_max_position_embeddings"] = int64(tab.Original)
	} else {
		scaling["original_max_position_embeddings"] = c["max_position_embeddings"]
	}
	if v, ok := c["rope_theta"]; ok {
		scaling["rope_theta"] = v
	}
	delete(c, "rope_scaling")
	c["rope_parameters"] = scaling
}

// keptWhole counts the components that a table turns unscaled, where it leaves
// all others still; 0 where it does anything else.
func keptWhole(divisors []any) (n int) {
	for i, v := range divisors {
		switch x := v.(float64); {
		case x == 1 && i == n:
			n++
		case x < 1e29:
			return 0
		}
	}
	if n == len(divisors) {
		return 0
	}
	return n
}

// proportional says that a share of the components turns, beside the rotation
// of layers with a window where the file has one.
func proportional(c map[string]any, share float64) {
	whole := map[string]any{"rope_type": "proportional", "partial_rotary_factor": share}
	if v, ok := c["rope_theta"]; ok {
		whole["rope_theta"] = v
	}
	delete(c, "rope_scaling")
	if c["rope_parameters"] = whole; c["rope_local_base_freq"] != nil {
		c["rope_parameters"] = map[string]any{"full_attention": whole, "sliding_attention": map[string]any{"rope_type": "default", "rope_theta": c["rope_local_base_freq"]}}
	}
}

// divisors reads a small tensor of numbers.
func (r *rebinder) divisors(name string) ([]any, bool) {
	v, ok := r.files.Tensor(name)
	if !ok || len(v.Shape) != 1 || v.Shape[0] > 1<<16 {
		return nil, false
	}
	values := make([]float32, v.Shape[0])
	if v.Type.Decode(values, v.Data) != nil {
		return nil, false
	}
	list := make([]any, len(values))
	for i, x := range values {
		list[i] = float64(x)
	}
	return list, true
}

// has says whether a dotted name is set.
func has(m map[string]any, name string) bool {
	head, rest, nested := strings.Cut(name, ".")
	v, ok := m[head]
	if sub, is := v.(map[string]any); nested && is {
		return has(sub, rest)
	}
	return ok
}

// ropeFactors adds the tensors that hold a scaling which GGUF has no keys for:
// the plain frequencies divided by the scaled ones.
func (r *rebinder) ropeFactors() {
	r.factors = map[string]*graph.Weight{}
	for _, tab := range r.from.b.G.Ropes {
		theta, ok := r.thetaOf(tab)
		if !ok || tab.Divisors != nil {
			continue
		}
		base := ropeFreq(theta, tab.Dim)
		if tab.Kind == "longrope" {
			r.factor("rope_factors_short.weight", base, tab.Freq)
			r.factor("rope_factors_long.weight", base, tab.LongFreq)
			return
		}
		r.factor("rope_freqs.weight", base, tab.Freq)
		return
	}
}

func (r *rebinder) factor(name string, base, scaled []float64) {
	w := &graph.Weight{Op: graph.WConst, Shape: []int{len(base)}, Data: make([]float64, len(base))}
	for i := range base {
		w.Data[i] = 1e30 // as llama.cpp's converter writes a frequency of 0
		if scaled[i] != 0 {
			w.Data[i] = base[i] / scaled[i]
		}
	}
	r.factors[name] = w
	r.to.add(name, w.Shape)
}

// thetaOf finds the base frequency of a table that needs factors; ok is false
// where the table is plain, or scaled in a way that keys say. Of the bases
// that the configuration names it is the one that most components keep.
func (r *rebinder) thetaOf(tab *graph.RopeTable) (theta float64, ok bool) {
	most := -1
	for _, g := range r.from.asked.groups {
		if kind, _ := starlark.AsString(g.value); kind == "yarn" || kind == "dynamic" {
			return 0, false
		}
		if key := g.keys[0]; !strings.Contains(key, "theta") && !strings.Contains(key, "base") {
			continue
		}
		for _, base := range numbersOf(g.value) {
			kept, even := keeps(tab, base)
			if even && tab.Kind != "longrope" { // plain, or divided by one factor
				return 0, false
			}
			if kept > most {
				theta, most = base, kept
			}
		}
	}
	return theta, most >= 0 && (tab.Kind == "" || tab.Kind == "longrope")
}

// numbersOf are the positive numbers of a value: itself, or those of a list, one a layer.
func numbersOf(v starlark.Value) (list []float64) {
	add := func(v starlark.Value) {
		if f, ok := starlark.AsFloat(v); ok && f > 0 {
			list = append(list, f)
		}
	}
	if it, ok := v.(starlark.Iterable); ok {
		for x := range starlark.Elements(it) {
			add(x)
		}
		return list
	}
	add(v)
	return list
}

// keeps counts the components of a table whose frequency is that of the base,
// and says whether all differ from it by one factor.
func keeps(tab *graph.RopeTable, base float64) (kept int, even bool) {
	even = true
	for i, f := range ropeFreq(base, tab.Dim) {
		if math.Abs(tab.Freq[i]-f) <= 1e-9*f {
			kept++
		}
		even = even && math.Abs(tab.Freq[i]-f*tab.Freq[0]) <= 1e-9*f
	}
	return kept, even
}
