package spec

import (
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// oldSpelling brings a key of the newer rope_parameters to the names that
// GGUF's table knows.
func oldSpelling(key string) string {
	key = strings.TrimPrefix(key, "text_config.")
	rest, ok := strings.CutPrefix(key, "rope_parameters.")
	if !ok {
		rest, ok = strings.CutPrefix(key, "rope_scaling.")
	}
	if !ok {
		return key
	}
	if local, is := strings.CutPrefix(rest, "sliding_attention."); is {
		if local == "rope_theta" {
			return "rope_local_base_freq"
		}
		return "rope_local_scaling." + local
	}
	rest = strings.TrimPrefix(rest, "full_attention.")
	switch rest {
	case "rope_theta", "partial_rotary_factor":
		return rest
	case "type":
		rest = "rope_type"
	}
	return "rope_scaling." + rest
}

// sharedWidth adds the width of the experts that all tokens see.
func (r *rebinder) sharedWidth(meta map[string]any) {
	const key, part = ".expert_shared_feed_forward_length", ".ffn_down_shexp.weight"
	if meta[r.result.Architecture+key] != nil {
		return
	}
	for _, name := range r.to.order {
		if v := r.to.views[name]; strings.HasSuffix(name, part) && len(v.Shape) == 2 {
			meta[r.result.Architecture+key] = uint32(v.Shape.Cols())
			return
		}
	}
}

// known are the configuration's values under the names that GGUF's table
// knows: what the specification read, what else the files say, and the
// defaults that it took.
func (r *rebinder) known() map[string]any {
	values := map[string]any{}
	read := func(missing bool) {
		for _, g := range r.from.asked.groups {
			for _, k := range g.keys {
				for _, name := range []string{oldSpelling(g.prefix + k), k} { // GGUF knows no nesting
					if name == k && strings.HasSuffix(g.prefix, "sliding_attention.") {
						continue // beside the full layers' own
					}
					if _, ok := values[name]; !ok && g.value != starlark.None && g.missing == missing {
						values[name] = plain(g.value)
					}
				}
			}
		}
	}
	read(false)
	leaves(r.files.Config(), "", func(key string, v any) {
		name := oldSpelling(key)
		if rest, ok := strings.CutPrefix(name, "rope_scaling."); ok && values[rest] == nil {
			values[rest] = v
		}
		if values[name] == nil {
			values[name] = v
		}
	})
	read(true)
	return values
}

// derived adds what follows from the graph, and what GGUF's readers want in
// full though config.json may leave it out.
func (r *rebinder) derived(values map[string]any) {
	g := r.from.b.G
	if len(g.Ropes) > 0 {
		values["rotary_dim"] = int64(g.Ropes[0].Dim)
	}
	r.derivedScaling(values)
	for _, n := range g.Nodes {
		if a, ok := n.Attr.(*graph.EmbedAttr); ok && g.Nodes[n.In[0]].Op == graph.OpTokens {
			values["vocab_size"] = int64(a.Table.Shape[0])
			if values["hidden_size"] == nil {
				values["hidden_size"] = int64(a.Table.Shape[1])
			}
			break
		}
	}
	if n, err := r.from.config.maxPositions(); err == nil && n > 0 {
		values["max_position_embeddings"] = int64(n)
	}
	r.derivedExperts(values)
	for to, from := range map[string]string{"num_key_value_heads": "num_attention_heads", "v_head_dim": "head_dim"} {
		if values[to] == nil && values[from] != nil {
			values[to] = values[from]
		}
	}
}

// derivedScaling brings a name of a scaling that a specification takes for
// another to that one's.
func (r *rebinder) derivedScaling(values map[string]any) {
	kind, _ := values["rope_scaling.rope_type"].(string)
	if kind == "" || slices.ContainsFunc(r.from.asked.ropes, func(of askedRope) bool { return of.kind == kind }) {
		return
	}
	for _, of := range r.from.asked.ropes {
		if scalingTypes[of.kind] != "" {
			values["rope_scaling.rope_type"] = of.kind
		}
	}
}

// derivedExperts adds the width of an expert and the kind of scores.
func (r *rebinder) derivedExperts(values map[string]any) {
	for _, n := range r.from.b.G.Nodes {
		switch a := n.Attr.(type) {
		case *graph.ExpertsAttr:
			for _, key := range []string{"moe_intermediate_size", "intermediate_size"} {
				if values[key] == nil {
					values[key] = int64(a.Up.Shape[1])
				}
			}
		case *graph.RouteAttr:
			if a.Groups == 0 && values["n_group"] != nil { // whatever the configuration says
				values["n_group"], values["topk_group"] = int64(1), int64(1)
			}
			if kind := map[string]int64{"softmax": 1, "sigmoid": 2}[a.Score]; kind > 0 {
				values[gatingKey] = kind
			}
		}
	}
}

// gatingKey stands for GGUF's number of the function that makes scores of experts.
const gatingKey = "expert_gating_func"

// leaves calls f for every value of nested objects that is no object.
func leaves(m map[string]any, prefix string, f func(key string, v any)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		switch v := m[k].(type) {
		case map[string]any:
			leaves(v, prefix+k+".", f)
		case nil:
		default:
			f(prefix+k, v)
		}
	}
}
