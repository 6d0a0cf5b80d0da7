package spec

import (
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

// likeBefore is a setting as a class wants it: a float64 that is whole without a
// point, but where the value that it replaces is no whole one.
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
				return r.wrong(d, "write", "want {GGUF key: value or function of c}, got %s", item[0].Type())
			}
			v := item[1]
			if f, is := v.(starlark.Callable); is {
				var err error
				if v, err = starlark.Call(r.from.thread, f, starlark.Tuple{r.from.config.root()}, nil); err != nil {
					return r.from.fail(err)
				}
			}
			if v == starlark.None {
				continue
			}
			key, whole := strings.CutPrefix(suffix, ".")
			if !whole && !strings.HasPrefix(suffix, "tokenizer.") {
				key = r.result.Architecture + "." + suffix
			}
			if key == "" || len(suffix) > longestName || reserved(key) {
				return r.wrong(d, "write", "%s is no key that a specification can write", cut(suffix))
			}
			x, err := written(suffix, v)
			if err != nil {
				return r.wrong(d, "write", "%s: %w", suffix, err)
			}
			meta[key] = x
		}
	}
	return nil
}
