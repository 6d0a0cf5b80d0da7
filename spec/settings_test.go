package spec

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestRotarySettings has settings that are none: each is refused with its key.
func TestRotarySettings(t *testing.T) {
	for _, c := range []struct{ config, says string }{
		{`{"rope_scaling":"x"}`, `rope_scaling is "x", expected an object or null`},
		{`{"rope_scaling":[]}`, `rope_scaling is [], expected`},
		{`{"rope_scaling":5}`, `rope_scaling is 5, expected`},
		{`{"rope_scaling":true}`, `rope_scaling is True, expected`},
		{`{"rope_parameters":[1]}`, `rope_parameters is [1], expected`},
		{`{"rope_scaling":{"rope_type":"linear","factor":null}}`, `rope_scaling.factor is None, expected a finite number above 0`},
		{`{"rope_scaling":{"rope_type":"linear","factor":-2}}`, `rope_scaling.factor is -2`},
		{`{"rope_scaling":{"rope_type":"linear","factor":0}}`, `rope_scaling.factor is 0`},
		{`{"rope_scaling":{"rope_type":"linear","factor":"2"}}`, `rope_scaling.factor is "2"`},
		{`{"rope_scaling":{"rope_type":"linear","factor":true}}`, `rope_scaling.factor is True`},
		{`{"rope_scaling":{"rope_type":"linear","factor":{"__float__":"Infinity"}}}`, `rope_scaling.factor is +inf`},
		{`{"rope_scaling":{"rope_type":null,"factor":2}}`, `rope_scaling.rope_type is None, expected the name of a scaling (default,`},
		{`{"rope_scaling":{"type":"","factor":2}}`, `rope_type is "", expected`},
		{`{"rope_scaling":{"rope_type":"spiral","factor":2}}`, `no scaling "spiral", expected one of`},
		{`{"rope_scaling":{"rope_type":"llama3","factor":8,"original_max_position_embeddings":null}}`, `original_max_position_embeddings is None`},
		{`{"rope_scaling":{"rope_type":"llama3","factor":8,"original_max_position_embeddings":-5}}`, `original_max_position_embeddings is -5`},
		{`{"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4}}`, `high_freq_factor is 4`},
		{`{"rope_scaling":{"rope_type":"yarn","factor":4,"beta_fast":-1}}`, `beta_fast is -1`},
		{`{"rope_scaling":{"rope_type":"yarn","factor":4,"truncate":"no"}}`, `truncate is "no", expected true or false`},
		{`{"rope_parameters":{"rope_type":"default","rope_theta":0}}`, `rope_parameters.rope_theta is 0`},
		{`{"rope_parameters":{"rope_type":"default","rope_theta":null}}`, `rope_parameters.rope_theta is None`},
		{`{"rope_theta":-1}`, `rope_theta is -1`},
		{`{"rms_norm_eps":-1e-6}`, `eps (rms_norm_eps, config.json) is -1e-06, expected a finite number`},
		{`{"rms_norm_eps":{"__float__":"Infinity"}}`, `eps (rms_norm_eps, config.json) is +Inf`},
		{`{"rms_norm_eps":{"__float__":"NaN"}}`, `eps (rms_norm_eps, config.json) is NaN`},
		{`{"max_position_embeddings":0}`, `max_position_embeddings (config.json) is 0, expected`},
		{`{"max_position_embeddings":-4}`, `max_position_embeddings (config.json) is -4`},
		{`{"max_position_embeddings":"x"}`, `max_position_embeddings (config.json) is "x"`},
		{`{"max_position_embeddings":[4]}`, `max_position_embeddings (config.json) is [4]`},
	} {
		f := loadShapes(t, "llama.hf")
		delete(f.config, "rope_parameters")
		var more map[string]any
		if err := json.Unmarshal([]byte(c.config), &more); err != nil {
			t.Fatal(err)
		}
		for k, v := range more {
			f.config[k] = v
		}
		if _, err := resolveAndTrace(f, Options{}); !errors.Is(err, ErrTrace) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, expected …%s…", c.config, err, c.says)
		}
	}
	for _, v := range []any{nil, map[string]any{}, map[string]any{"rope_type": "default"}} {
		f := loadShapes(t, "llama.hf")
		delete(f.config, "rope_parameters")
		f.config["rope_scaling"] = v
		if _, err := resolveAndTrace(f, Options{}); err != nil {
			t.Errorf("rope_scaling %v: %v", v, err)
		}
	}
}

func TestRotarySettingsGGUF(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		says  string
	}{
		{"rope.freq_base", float32(math.Inf(1)), "rope_theta is +inf"},
		{"rope.freq_base", float32(0), "rope_theta is 0"},
		{"rope.freq_base", float32(-1), "rope_theta is -1"},
		{"attention.layer_norm_rms_epsilon", float32(math.NaN()), "gguf llama.attention.layer_norm_rms_epsilon) is NaN"},
		{"rope.dimension_count", uint32(10), "rotary_dim (gguf llama.rope.dimension_count) is 10, expected an even number from 2 to 8"},
		{"rope.dimension_count", uint32(7), "is 7, expected an even number"},
		{"rope.dimension_count", uint32(0), "is 0, expected an even number"},
		{"rope.dimension_count", "x", `is "x", expected an even number`},
		{"rope.dimension_count", uint32(4), "rotates all 8 components"},
		{"rope.scaling.factor", float32(-1), "rope_scaling.factor is -1"},
		{"context_length", uint32(0), "max_position_embeddings (gguf llama.context_length) is 0"},
		{"context_length", "x", `max_position_embeddings (gguf llama.context_length) is "x"`},
	} {
		f := loadShapes(t, "llama.gguf")
		if c.key == "rope.scaling.factor" {
			f.config["llama.rope.scaling.type"] = "linear"
			delete(f.tensors, "rope_freqs.weight")
		}
		f.config["llama."+c.key] = c.value
		if _, err := resolveAndTrace(f, Options{}); !errors.Is(err, ErrTrace) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s = %v: got %v, expected …%s…", c.key, c.value, err, c.says)
		}
	}
}

// TestNumbersAgree has configurations that contradict the tensors.
func TestNumbersAgree(t *testing.T) {
	for _, c := range []struct {
		change func(f *shapeFiles)
		says   string
	}{
		{func(f *shapeFiles) { delete(f.config, "head_dim"); f.config["num_attention_heads"] = 12 }, "key heads, but config.json says num_key_value_heads = 2"},
		{func(f *shapeFiles) { f.config["num_key_value_heads"] = 3 }, "the tensors give 2 key heads, but config.json says num_key_value_heads = 3"},
		{func(f *shapeFiles) { f.config["num_attention_heads"] = 3 }, "the tensors give 6 query heads, but config.json says num_attention_heads = 3"},
		{func(f *shapeFiles) { f.config["num_key_value_heads"] = -2 }, "num_key_value_heads (config.json) is -2, expected a whole number above 0"},
		{func(f *shapeFiles) { f.config["intermediate_size"] = "x" }, `intermediate_size (config.json) is "x", expected`},
		{func(f *shapeFiles) { f.config["vocab_size"] = map[string]any{"a": 1} }, `vocab_size (config.json) is {"a": 1}, expected`},
		{func(f *shapeFiles) { f.config["vocab_size"] = []any{-1, -1} }, "vocab_size (config.json) is [-1, -1], expected"},
		{func(f *shapeFiles) { f.config["vocab_size"] = []any{1e18} }, "vocab_size (config.json) is [1e+18], expected"},
		{func(f *shapeFiles) { f.config["hidden_size"] = 60 }, "config.json says hidden_size = 60"},
		{func(f *shapeFiles) { f.config["intermediate_size"] = 100 }, "config.json says intermediate_size = 100"},
		{func(f *shapeFiles) { f.config["vocab_size"] = 200 }, "the embedding has 199 rows, but config.json says vocab_size = 200"},
		{func(f *shapeFiles) {
			f.tensors["lm_head.weight"] = tensor.View{Name: "lm_head.weight", Type: quant.BF16, Shape: tensor.Shape{205, 48}}
		}, "205 logits, but the embedding has 199 rows"},
	} {
		f := loadShapes(t, "llama.hf")
		f.config["head_dim"] = 8
		c.change(f)
		if _, err := resolveAndTrace(f, Options{}); !errors.Is(err, ErrTrace) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, expected …%s…", err, c.says)
		}
	}
	f := loadShapes(t, "llama.hf")
	f.config["vocab_size"] = 150 // a table with rows to spare
	if _, err := resolveAndTrace(f, Options{}); err != nil {
		t.Error(err)
	}
}

// TestNumbersOpen leaves numbers alone that the tensors do not contradict: heads
// that each have an attention of their own, and layers half written.
func TestNumbersOpen(t *testing.T) {
	const byHead = `def model(c):
    x = embed("model.embed_tokens")
    for i in layers(c.num_hidden_layers):
        L = "model.layers.%d.self_attn." % i
        q, k, v = [heads(linear(x, L + n + "_proj"), 8) for n in ["q", "k", "v"]]
        one = lambda z, j: slice(z, j, j + 1, axis = 0)
        x += linear(concat([merge(attention(one(q, j), one(k, j // 3), one(v, j // 3))) for j in range(6)]), L + "o_proj")
    return linear(rms_norm(x, "model.norm", 1e-6), "lm_head", tied = "model.embed_tokens")
`
	f := loadShapes(t, "llama.hf")
	f.config["head_dim"] = 8
	if _, err := trace("m.star", byHead, f, Options{AllowUnused: true}); err != nil {
		t.Error(err)
	}
	for key, wrong := range map[string]int{"num_key_value_heads": 5, "intermediate_size": 100} {
		f := loadShapes(t, "llama.hf")
		f.config["head_dim"], f.config[key] = 8, wrong
		if _, err := trace("m.star", byHead, f, Options{AllowUnused: true}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s = %d: got %v", key, wrong, err)
		}
	}
}

func TestNotes(t *testing.T) {
	src, err := librarySource("llama")
	if err != nil {
		t.Fatal(err)
	}
	f := loadShapes(t, "llama.hf")
	other := strings.Replace(src, `model_type = "llama"`, `model_type = "other"`, 1)
	set := map[string]any{"frobnication": 3, "rms_norm_eps": 1e-5}
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{}, nil},
		{Options{SpecFile: writeSpec(t, src)}, nil},
		{Options{SpecFile: writeSpec(t, other)}, []string{`the specification foreign.star says it serves model_type ["other"], gguf ["llama"] under a condition (when) or model_type ["xverse"], gguf ["xverse"] or model_type ["aquila" "Yi" "internlm3" "emu3_text_model"], gguf ["llama" "xverse"] under a condition (when); this model is model_type "llama", architectures ["LlamaForCausalLM"]`}},
		{Options{Set: set}, []string{"the specification llama.star never reads frobnication, which was set by hand"}},
		{Options{Name: "llama", SpecFile: writeSpec(t, src), Set: set}, []string{"the specification foreign.star never reads frobnication, which was set by hand"}},
	} {
		tr, err := resolveAndTrace(f, c.o)
		if err != nil {
			t.Error(err)
		} else if !slices.Equal(tr.Notes, c.want) {
			t.Errorf("got %q, expected %q", tr.Notes, c.want)
		}
	}
}
