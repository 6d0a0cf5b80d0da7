package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// inFolder sets what gguf(folder=…) says, where the file carries no config.json.
func (r *rebinder) inFolder(config map[string]any) error {
	if r.from.config.owns() {
		return nil
	}
	for _, d := range r.from.asked.folder {
		for _, item := range d.Items() {
			key, ok := starlark.AsString(item[0])
			if !ok {
				return fmt.Errorf("spec: gguf: folder is {key of config.json: value or function of c}, got %s", item[0].Type())
			}
			v := item[1]
			if f, is := v.(starlark.Callable); is {
				var err error
				if v, err = starlark.Call(r.from.thread, f, starlark.Tuple{r.from.config.root()}, nil); err != nil {
					return r.from.fail(err)
				}
			}
			switch v {
			case starlark.None:
				delete(config, key)
			case starlark.String("null"):
				config[key] = nil
			default:
				put(config, key, plain(v))
			}
		}
	}
	return nil
}

// ggufOnly are names for what GGUF stores and config.json has other words for.
var ggufOnly = []string{"rotary_dim", "v_head_dim"}

// classes is the class that config.json is to name: of the table, else what
// serves(…) says for this model_type.
func (r *rebinder) classes() []string {
	if c := classOf(r.result.ModelType, r.from.b.G); c != "" {
		return []string{c}
	}
	declared, at := r.rule.architectures, slices.Index(r.rule.modelTypes, r.result.ModelType)
	if len(declared) != len(r.rule.modelTypes) || at < 0 {
		at = 0
	}
	return declared[min(at, len(declared)):min(at+1, len(declared))]
}

// named adds the class of the model_type, which gguf(folder=…) may have changed.
func (r *rebinder) named(c map[string]any) {
	if r.from.config.owns() {
		return
	}
	if t, ok := c["model_type"].(string); ok {
		r.result.ModelType = t
	}
	if r.result.Classes = r.classes(); len(r.result.Classes) > 0 {
		c["architectures"] = []any{r.result.Classes[0]}
	}
}

// hfConfig is the config.json that a GGUF file carries, else what the
// specification read of its metadata under the names of config.json.
func (r *rebinder) hfConfig() map[string]any {
	if own := r.from.config.own; own != nil {
		return maps.Clone(own)
	}
	c := map[string]any{"model_type": r.result.ModelType}
	for _, missing := range []bool{false, true} {
		for _, g := range r.from.asked.groups {
			if g.missing != missing || missing && !r.defaults || !finiteJSON(plain(g.value)) {
				continue
			}
			for _, k := range g.keys { // the reference knows one of them
				if !has(c, g.prefix+k) {
					put(c, g.prefix+k, plain(g.value))
				}
			}
		}
	}
	for k, v := range r.from.config.data { // what the format has keys for, though this specification asks for none
		if _, ok := c[k]; !ok && !slices.Contains(ggufOnly, k) && finiteJSON(v) && !r.denied(k) {
			c[k] = v
		}
	}
	mergeScaling(c, r.from.config.data)
	r.yarnInFolder(c)
	if _, ok := c["pad_token_id"]; !ok {
		c["pad_token_id"] = nil // a class's default may lie outside the vocabulary
	}
	plainLists(c)
	r.shown(c)
	r.storedScaling(c)
	r.sections(c)
	c["tie_word_embeddings"] = tied(r.from.b.G)
	r.storedBiases(c)
	return c
}

// plainLists undoes what GGUF has for all layers and config.json once: a list
// with 0 for layers of another kind; a window of 0, and the name of no scaling.
func plainLists(c map[string]any) {
	if n, ok := wholeOf(c["sliding_window"]); ok && n == 0 {
		c["sliding_window"] = nil
	}
	for key, v := range c {
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && (strings.HasPrefix(key, "num_") || strings.HasSuffix(key, "intermediate_size")) {
			if n := onlyOne(list); n > 0 {
				c[key] = int64(n)
			}
		}
		if m, ok := v.(map[string]any); ok && key == "rope_scaling" && m["rope_type"] == "none" {
			delete(c, key)
		}
	}
}

// onlyOne is the number in a list that is not 0, where it is one.
func onlyOne(list reflect.Value) (one int) {
	for i := range list.Len() {
		switch n, ok := wholeOf(list.Index(i).Interface()); {
		case !ok || one > 0 && n != 0 && n != one:
			return 0
		case n != 0:
			one = n
		}
	}
	return one
}

// mergeScaling adds what the file says of a scaling that nothing asked for.
func mergeScaling(c, data map[string]any) {
	have, ok1 := c["rope_scaling"].(map[string]any)
	all, ok2 := data["rope_scaling"].(map[string]any)
	if !ok1 || !ok2 {
		return
	}
	have = maps.Clone(have)
	for k, v := range all {
		if _, ok := have[k]; !ok && finiteJSON(v) {
			have[k] = v
		}
	}
	c["rope_scaling"] = have
}

// sections says how many pairs of components turn by each of several positions,
// which are one for text: GGUF has four numbers, of which classes know three or all.
func (r *rebinder) sections(c map[string]any) {
	list := reflect.ValueOf(r.files.Config()[r.files.Architecture()+".rope.dimension_sections"])
	if list.Kind() != reflect.Slice || list.Len() != 4 {
		return
	}
	var parts []any
	for i := range list.Len() {
		n, _ := wholeOf(list.Index(i).Interface())
		parts = append(parts, int64(n))
	}
	if parts[3] == int64(0) {
		parts = parts[:3]
	}
	key := "rope_scaling"
	if _, ok := c["rope_parameters"]; ok {
		key = "rope_parameters"
	}
	put(c, key+".mrope_section", parts)
}

// denied says that an override takes a key of the file for nothing.
func (r *rebinder) denied(key string) bool {
	o, ok := r.from.config.overrides[key]
	return ok && o.value == starlark.None
}

// innerWidth is the width of the feed-forwards, where they have one: that of
// the products back to the width of the model that no attention has.
func (r *rebinder) innerWidth(hidden int) (inner int) {
	g := r.from.b.G
	attention := map[int]bool{hidden: true}
	for _, n := range g.Nodes {
		if n.Op == graph.OpAttention {
			attention[n.Width()] = true
		}
	}
	for _, n := range g.Nodes {
		a, ok := n.Attr.(*graph.LinearAttr)
		if !ok || a.W == nil || n.Layer < 0 || n.Layer >= g.Layers || len(a.W.Shape) != 2 || a.W.Shape[0] != hidden || attention[a.W.Shape[1]] {
			continue
		}
		if inner > 0 && inner != a.W.Shape[1] {
			return 0
		}
		inner = a.W.Shape[1]
	}
	return inner
}

// sameNames are names that configuration classes have for one value.
var sameNames = [][]string{
	{"n_shared_experts", "num_shared_experts"},
	{"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"},
}

// shown adds what the tensors show and a class wants to be told, though a
// specification takes it from them.
func (r *rebinder) shown(c map[string]any) {
	heads := 0
	for _, n := range r.from.b.G.Nodes {
		if a, ok := n.Attr.(*graph.AttentionAttr); ok && len(n.In) > 2 && !a.Cross {
			if shape := r.from.b.G.Nodes[n.In[1]].Shape; len(shape) == 2 {
				if heads != 0 && heads != shape[0] {
					heads = -1
				} else if heads == 0 {
					heads = shape[0]
				}
			}
		}
	}
	if c["num_key_value_heads"] == nil && heads > 0 {
		c["num_key_value_heads"] = int64(heads)
	}
	if hidden, ok := wholeOf(c["hidden_size"]); ok && c["intermediate_size"] == nil {
		if n := r.innerWidth(hidden); n > 0 {
			c["intermediate_size"] = int64(n)
		}
	}
	if n, ok := r.leadingDense(); ok { // files say 0 where a list of the folder said it
		c["first_k_dense_replace"] = int64(n)
	}
	one, ok1 := wholeOf(c["moe_intermediate_size"])
	all, ok2 := wholeOf(c["shared_expert_intermediate_size"])
	if c["n_shared_experts"] == nil && ok1 && ok2 && all%max(1, one) == 0 {
		c["n_shared_experts"] = int64(all / max(1, one))
	}
	for _, names := range sameNames {
		at := slices.IndexFunc(names, func(n string) bool { return c[n] != nil })
		for _, n := range names {
			if at >= 0 && c[n] == nil {
				c[n] = c[names[at]]
			}
		}
	}
}

// tied says that the last product reads the table of tokens.
func tied(g *graph.Graph) bool {
	var table *graph.Weight
	for _, n := range g.Nodes {
		switch a := n.Attr.(type) {
		case *graph.EmbedAttr:
			if table == nil && g.Nodes[n.In[0]].Op == graph.OpTokens {
				table = a.Table
			}
		case *graph.LinearAttr:
			if table != nil && n.Layer >= g.Layers && place(a.W) == place(table) {
				return true
			}
		}
	}
	return false
}

// storedBiases sets the flags without which a class has no room for biases,
// where the specification takes them as they are stored.
func (r *rebinder) storedBiases(c map[string]any) {
	for key, part := range map[string]string{"attention_bias": ".self_attn.q_proj.bias", "mlp_bias": ".mlp.up_proj.bias"} {
		if _, ok := c[key]; !ok && slices.ContainsFunc(r.from.asked.tensors, func(a askedTensor) bool { return strings.HasSuffix(a.name, part) }) {
			c[key] = true
		}
	}
}

// finiteJSON says that a value can stand in JSON, and is none.
func finiteJSON(v any) bool {
	_, err := json.Marshal(v)
	return err == nil && v != nil
}
