package spec

import (
	"math"
	"strings"

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
	c["original_max_position_embeddings"] = scaling["original_max_position_embeddings"] // where some classes want it
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
		case x < stillDivisor:
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
func (r *rebinder) divisors(name string) (list []any, ok bool) {
	v, ok := r.files.Tensor(name)
	if !ok || len(v.Shape) != 1 {
		return nil, false
	}
	values, ok := smallTensor(v)
	for _, x := range values {
		list = append(list, x)
	}
	return list, ok
}

// numbersIn are the numbers of a small tensor, of the files at hand or of those
// to be made; nil where they are not known.
func (r *rebinder) numbersIn(w *graph.Weight) []float64 {
	if made := r.factors[w.Name]; made != nil {
		return made.Data
	}
	switch w.Op {
	case graph.WReshape:
		return r.numbersIn(w.Args[0])
	case graph.WAffine:
		list := r.numbersIn(w.Args[0])
		for i := range list {
			list[i] = w.A*list[i] + w.B
		}
		return list
	case graph.WTensor:
	default:
		return nil
	}
	v, _ := r.files.Tensor(w.Name)
	list, _ := smallTensor(v)
	return list
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
	for i, tab := range r.from.b.G.Ropes {
		of := r.from.asked.ropes[i]
		if !needsFactors(tab, of) {
			continue
		}
		base := ropeFreq(of.theta, tab.Dim)
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

// needsFactors says that a table is scaled in a way that only tensors say: not
// plain, nor divided by one factor, nor by a scaling that keys say.
func needsFactors(tab *graph.RopeTable, of askedRope) bool {
	if tab.Divisors != nil || of.kind == "yarn" || of.kind == "dynamic" {
		return false
	}
	return tab.Kind == "longrope" || tab.Kind == "" && !evenly(tab, of.theta)
}

// evenly says that all frequencies of a table differ from those of a base by one factor.
func evenly(tab *graph.RopeTable, base float64) bool {
	for i, f := range ropeFreq(base, tab.Dim) {
		if math.Abs(tab.Freq[i]-f*tab.Freq[0]) > 1e-9*f {
			return false
		}
	}
	return true
}
