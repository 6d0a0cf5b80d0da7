package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// ggufInverse gives the GGUF keys, without the architecture, of each key of
// config.json, as the standard table and gguf(config=…) pair them.
func (r *rebinder) ggufInverse() map[string][]string {
	inverse := map[string][]string{}
	for suffix, name := range ggufKeys {
		if !strings.HasPrefix(suffix, "tokenizer.") {
			inverse[name] = append(inverse[name], suffix)
		}
	}
	inverse[gatingKey] = []string{gatingKey}
	for name, alts := range r.table.asked.keys {
		if len(alts) > 0 && !strings.HasPrefix(alts[0], "tokenizer.") {
			inverse[name] = append(inverse[name], alts[0])
		}
	}
	return inverse
}

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

// describe fills the configuration of the other binding.
func (r *rebinder) describe() error {
	if r.result.Binding == HF {
		r.result.Config = r.hfConfig()
		if err := r.inFolder(r.result.Config); err != nil {
			return err
		}
		r.named(r.result.Config)
		for _, given := range []map[string]any{r.guessed, r.s.opts.Set} {
			for _, k := range slices.Sorted(maps.Keys(given)) {
				put(r.result.Config, k, likeBefore(r.result.Config[k], given[k]))
			}
		}
		r.to.config = maps.Clone(r.result.Config)
		r.to.config[convertingKey] = true
		return nil
	}
	meta, err := r.metadata()
	if err != nil {
		return err
	}
	const width = ".feed_forward_length"
	if down, ok := r.to.views["blk.0.ffn_down.weight"]; ok && meta[r.result.Architecture+width] == nil {
		meta[r.result.Architecture+width] = uint32(down.Shape.Cols())
	}
	r.sharedWidth(meta)
	if meta[OwnConfigKey], err = r.ownConfig(); err != nil {
		return err
	}
	if err := r.writeLayout(meta); err != nil {
		return err
	}
	meta["general.architecture"] = r.result.Architecture
	r.result.Metadata, r.to.config = meta, maps.Clone(meta)
	r.to.config[convertingKey] = true
	return nil
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

// likeBefore is a setting as a class wants it: whole numbers without a point,
// but where the value that it replaces is no whole one.
func likeBefore(was, now any) any {
	f, ok := now.(float64)
	if _, floating := was.(float64); !ok || floating || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return now
	}
	return int64(f)
}

// scalingTypes are the names of rotary scalings that GGUF's readers know.
var scalingTypes = map[string]string{"linear": "linear", "yarn": "yarn", "longrope": "longrope", "su": "longrope"}

// metadata is what GGUF has keys for, with values of the format's types.
func (r *rebinder) metadata() (map[string]any, error) {
	values := r.known()
	r.derived(values)
	inverse, meta := r.ggufInverse(), map[string]any{}
	for name, v := range values {
		if rest, ok := strings.CutPrefix(name, "rope_scaling."); ok && inverse[name] == nil {
			name = rest
		}
		for _, suffix := range inverse[name] {
			if x, ok := typed(suffix, v); ok {
				meta[r.result.Architecture+"."+suffix] = x
			}
		}
	}
	kind, _ := values["rope_scaling.rope_type"].(string)
	scaling := r.result.Architecture + ".rope.scaling."
	for k := range meta {
		if strings.HasPrefix(k, scaling) && scalingTypes[kind] == "" {
			delete(meta, k)
		}
	}
	if t := scalingTypes[kind]; t != "" {
		meta[scaling+"type"] = t
		r.attentionFactor(t, meta)
	}
	if k := r.result.Architecture + ".context_length"; meta[k] == nil {
		meta[k] = uint32(anyContext) // readers want one, though nothing in the model depends on it
	}
	r.windows(inverse, meta)
	return meta, r.declared(meta)
}

// anyContext is the length of a model that states none.
const anyContext = 2048

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

// windows says which layers have a window, where the specification reads that.
func (r *rebinder) windows(inverse map[string][]string, meta map[string]any) {
	const suffix = "attention.sliding_window_pattern"
	wanted := false
	for _, list := range inverse {
		wanted = wanted || slices.Contains(list, suffix)
	}
	var pattern []bool
	for _, n := range r.from.b.G.Nodes {
		if a, ok := n.Attr.(*graph.AttentionAttr); ok {
			pattern = append(pattern, a.Window > 0)
		}
	}
	if wanted && slices.Contains(pattern, true) {
		meta[r.result.Architecture+"."+suffix] = pattern
	}
}

// declared adds what gguf(write=…) says.
func (r *rebinder) declared(meta map[string]any) error {
	for _, d := range r.from.asked.write {
		for _, item := range d.Items() {
			suffix, ok := starlark.AsString(item[0])
			if !ok {
				return fmt.Errorf("spec: gguf: write is {GGUF key: value or function of c}, got %s", item[0].Type())
			}
			v := item[1]
			if f, is := v.(starlark.Callable); is {
				var err error
				if v, err = starlark.Call(r.from.thread, f, starlark.Tuple{r.from.config.root()}, nil); err != nil {
					return r.from.fail(err)
				}
			}
			key := suffix
			if !strings.HasPrefix(suffix, "tokenizer.") {
				key = r.result.Architecture + "." + suffix
			}
			if x, ok := typed(suffix, plain(v)); ok {
				meta[key] = x
			}
		}
	}
	return nil
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
