package spec

import (
	"maps"
	"math"
	"slices"

	"github.com/inferflow/inferflow/internal/graph"
)

// attentionFactor says what a scaled rotation is multiplied by as llama.cpp
// reads it: a factor beside that which it makes of YaRN's scaling itself.
func (r *rebinder) attentionFactor(kind string, meta map[string]any) {
	scaling := r.result.Architecture + ".rope.scaling."
	tab := r.scaledTable()
	switch {
	case tab == nil:
	case tab.Kind == "longrope":
		meta[scaling+"type"] = "longrope"
		meta[scaling+"original_context_length"] = uint32(tab.Original)
		delete(meta, scaling+"factor") // which llama.cpp divides all frequencies by, beside the lists
		if tab.Factor != 1 {
			meta[scaling+"attn_factor"] = float32(tab.Factor)
		}
	case kind == "yarn" && nonzero(meta[scaling+"factor"]) && !(nonzero(meta[scaling+"yarn_log_multiplier"]) && r.namesKey("rope.scaling.yarn_log_multiplier")):
		own := yarnScale(float64(meta[scaling+"factor"].(float32)), 1)
		if f := tab.Factor / own; math.Abs(f-1) > 1e-6 {
			meta[scaling+"attn_factor"] = float32(f)
		}
	}
}

func nonzero(v any) bool { f, ok := v.(float32); return ok && f != 0 }

// scaledTable is the rotary table that a scaling is about: of several, the
// first that is multiplied by something, or that chooses between factors.
func (r *rebinder) scaledTable() *graph.RopeTable {
	tabs := r.from.b.G.Ropes
	if len(tabs) == 0 {
		return nil
	}
	if i := slices.IndexFunc(tabs, func(t *graph.RopeTable) bool { return t.Factor != 1 || t.Kind == "longrope" }); i >= 0 {
		return tabs[i]
	}
	return tabs[0]
}

// unreadScaling are keys of YaRN that llama.cpp reads in few architectures:
// those whose specifications name them.
var unreadScaling = []string{"rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier"}

// unread takes from the metadata what llama.cpp does not read in this architecture.
func (r *rebinder) unread(meta map[string]any) {
	for _, suffix := range unreadScaling {
		if !r.namesKey(suffix) {
			delete(meta, r.result.Architecture+"."+suffix)
		}
	}
}

// namesKey says that the specification maps a GGUF key itself.
func (r *rebinder) namesKey(suffix string) bool {
	for _, alts := range r.table.asked.keys {
		if slices.Contains(alts, suffix) {
			return true
		}
	}
	return false
}

// noteLong tells of short texts where a table has factors for long ones:
// llama.cpp chooses by its context, the reference by the text.
func (r *rebinder) noteLong() {
	n, err := r.from.config.maxPositions()
	for _, tab := range r.from.b.G.Ropes {
		if err == nil && tab.Kind == "longrope" && n > tab.Original && !slices.Equal(tab.Freq, tab.LongFreq) {
			r.note("llama.cpp answers otherwise: in a context of more than %d tokens it takes the long factors of the rotation for shorter texts, too", tab.Original)
			return
		}
	}
}

// yarnTimes is a factor that GGUF files have beside that of YaRN's scaling,
// where they do not say what both make.
func yarnTimes(c *config, r ropeConfig) (float64, error) {
	both, err := r.number("attention_factor", 0)
	if err != nil || both > 0 || c.d.t.files.Binding() != GGUF || c.d.owns() {
		return 1, err
	}
	return r.number("attn_factor", 1)
}

// yarnInFolder says in config.json what both factors of YaRN make.
func (r *rebinder) yarnInFolder(c map[string]any) {
	s, ok := c["rope_scaling"].(map[string]any)
	tab := r.scaledTable()
	if !ok || s["rope_type"] != "yarn" || s["attn_factor"] == nil || tab == nil {
		return
	}
	s = maps.Clone(s)
	delete(s, "attn_factor")
	s["attention_factor"] = tab.Factor
	c["rope_scaling"] = s
}
