package spec

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// ggufKeys gives the name in config.json of each general GGUF key; ARCH stands
// for general.architecture. What only one format of files has, its
// specification maps with gguf(config=…).
// Source: github.com/ggml-org/ggml, docs/gguf.md, and llama.cpp's gguf-py/gguf/constants.py.
var ggufKeys = map[string]string{
	"block_count":                          "num_hidden_layers",
	"context_length":                       "max_position_embeddings",
	"embedding_length":                     "hidden_size",
	"feed_forward_length":                  "intermediate_size",
	"expert_feed_forward_length":           "moe_intermediate_size",
	"expert_shared_feed_forward_length":    "shared_expert_intermediate_size",
	"expert_count":                         "num_local_experts",
	"expert_used_count":                    "num_experts_per_tok",
	"expert_shared_count":                  "n_shared_experts",
	"expert_weights_scale":                 "routed_scaling_factor",
	"expert_weights_norm":                  "norm_topk_prob",
	"expert_group_count":                   "n_group",
	"expert_group_used_count":              "topk_group",
	"leading_dense_block_count":            "first_k_dense_replace",
	"attention.head_count":                 "num_attention_heads",
	"attention.head_count_kv":              "num_key_value_heads",
	"attention.key_length":                 "head_dim",
	"attention.value_length":               "v_head_dim",
	"attention.layer_norm_rms_epsilon":     "rms_norm_eps",
	"attention.layer_norm_epsilon":         "layer_norm_eps",
	"attention.sliding_window":             "sliding_window",
	"attention.scale":                      "attention_multiplier",
	"attention.causal":                     "is_causal",
	"attention.clamp_kqv":                  "clip_qkv",
	"attention.q_lora_rank":                "q_lora_rank",
	"attention.kv_lora_rank":               "kv_lora_rank",
	"attention.shared_kv_layers":           "num_kv_shared_layers",
	"embedding_length_per_layer_input":     "hidden_size_per_layer_input",
	"attn_logit_softcapping":               "attn_logit_softcapping",
	"final_logit_softcapping":              "final_logit_softcapping",
	"embedding_scale":                      "embedding_multiplier",
	"residual_scale":                       "residual_multiplier",
	"logit_scale":                          "logit_scale",
	"rope.freq_base":                       "rope_theta",
	"rope.freq_base_swa":                   "rope_local_base_freq",
	"rope.dimension_count":                 "rotary_dim",
	"vocab_size":                           "vocab_size",
	"rope.scaling.type":                    "rope_scaling.rope_type",
	"rope.scaling.factor":                  "rope_scaling.factor",
	"rope.scaling.original_context_length": "rope_scaling.original_max_position_embeddings",
	"rope.scaling.attn_factor":             "rope_scaling.attn_factor", // of longrope
	"rope.scaling.yarn_attn_factor":        "rope_scaling.attention_factor",
	"rope.scaling.yarn_beta_fast":          "rope_scaling.beta_fast",
	"rope.scaling.yarn_beta_slow":          "rope_scaling.beta_slow",
	"rope.scaling.yarn_log_multiplier":     "rope_scaling.mscale_all_dim",
	"tokenizer.ggml.bos_token_id":          "bos_token_id",
	"tokenizer.ggml.eos_token_id":          "eos_token_id",
	"tokenizer.ggml.padding_token_id":      "pad_token_id",
}

// translate gives GGUF metadata the names of config.json. Lists of equal
// numbers become the number. origin says which key each value stood under.
func translate(files Files) (data map[string]any, origin map[string]string) {
	meta, arch := files.Config(), files.Architecture()
	data, origin = map[string]any{}, map[string]string{}
	for suffix, name := range ggufKeys {
		key := suffix
		if !strings.HasPrefix(suffix, "tokenizer.") {
			key = arch + "." + suffix
		}
		v, ok := meta[key]
		if !ok {
			continue
		}
		origin[name] = key
		put(data, name, collapse(v))
	}
	if _, ok := data["vocab_size"]; !ok {
		if tokens := reflect.ValueOf(meta["tokenizer.ggml.tokens"]); tokens.Kind() == reflect.Slice {
			data["vocab_size"], origin["vocab_size"] = int64(tokens.Len()), "tokenizer.ggml.tokens"
		} else if v, ok := files.Tensor("token_embd.weight"); ok && len(v.Shape) == 2 {
			data["vocab_size"], origin["vocab_size"] = int64(v.Shape[0]), "token_embd.weight"
		}
	}
	for name, v := range ownConfig(files) {
		data[name], origin[name] = v, OwnConfigKey
	}
	return data, origin
}

// OwnConfigKey is the metadata key under which a GGUF file of our own making
// carries the config.json of the model, for what the format has no key for.
const OwnConfigKey = "inferflow.config"

// OwnArchitecture is general.architecture of a GGUF file that holds a folder as
// it is, names and all, because no other program has an architecture for it. To
// a specification such a file is a folder.
const OwnArchitecture = "inferflow"

// MaxConfig bounds the text of a config.json: that of 100,000 classes takes five
// million bytes.
const MaxConfig = 16 << 20

// ConfigOwner is what Files implement that decode the config.json which a GGUF
// file carries once for all: a specification is asked for it again and again.
type ConfigOwner interface {
	// OwnConfig is that object, nil where there is none. It must not be changed.
	OwnConfig() map[string]any
}

// ownConfig is that object; nil where there is none that can be read.
func ownConfig(files Files) map[string]any {
	if o, ok := files.(ConfigOwner); ok {
		return o.OwnConfig()
	}
	return DecodeOwnConfig(files)
}

// DecodeOwnConfig decodes what ConfigOwner keeps.
func DecodeOwnConfig(files Files) map[string]any {
	if files.Binding() != GGUF {
		return nil
	}
	text, ok := files.Config()[OwnConfigKey].(string)
	if !ok || len(text) > MaxConfig {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var own map[string]any
	if d.Decode(&own) != nil {
		return nil
	}
	return own
}

// OwnConfig is the config.json that a GGUF file of our own making carries, nil
// in others. The caller must not change it.
func OwnConfig(files Files) map[string]any { return ownConfig(files) }

// put sets a dotted name. Parts of data are copied, for others may hold them too.
func put(data map[string]any, name string, v any) {
	head, rest, nested := strings.Cut(name, ".")
	if !nested {
		data[name] = v
		return
	}
	sub, ok := data[head].(map[string]any)
	if sub = maps.Clone(sub); !ok || sub == nil {
		sub = map[string]any{}
	}
	data[head] = sub
	put(sub, rest, v)
}

// collapse turns a list of equal numbers into one of them.
func collapse(v any) any {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice || r.Len() == 0 || !r.Index(0).Comparable() {
		return v
	}
	first := r.Index(0).Interface()
	for i := 1; i < r.Len(); i++ {
		if e := r.Index(i); !e.Comparable() || e.Interface() != first {
			return v
		}
	}
	if _, ok := first.(bool); ok {
		return v
	}
	return first
}
