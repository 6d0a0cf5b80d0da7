package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// numberRange is what a number of a model_spec.json can be.
type numberRange struct {
	key      string
	min, max float64
	whole    bool
	above    bool // above min, not min itself
}

const (
	maxSpecVocab  = 1 << 28
	maxSpecCount  = 1 << 20
	maxSpecFactor = 1e9
)

// fileRanges are the numbers beside network_structure; 0 says "not given".
var fileRanges = []numberRange{
	{key: "vocab_size", max: maxSpecVocab, whole: true},
	{key: "input_vocab_size", max: maxSpecVocab, whole: true},
	{key: "padded_vocab_size", max: maxSpecVocab, whole: true},
	{key: "output_vocab_size", max: maxSpecVocab, whole: true},
}

// structureRanges are those of network_structure.
var structureRanges = []numberRange{
	{key: "pos_embedding_offset", min: -maxSpecCount, max: maxSpecCount, whole: true},
	{key: "rope_theta", max: math.MaxFloat32, above: true},
	{key: "rope_dim", min: -1, max: maxSpecCount, whole: true},
	{key: "partial_rotary_factor", max: 1, above: true},
	{key: "qk_column_order", max: maxSpecCount, whole: true},
	{key: "qkv_format", max: maxSpecCount, whole: true},
	{key: "kq_scale", max: maxSpecFactor, above: true},
	{key: "embedding_linear_scale", min: -maxSpecFactor, max: maxSpecFactor},
	{key: "attn_pre_norm_base", min: -maxSpecFactor, max: maxSpecFactor},
	{key: "ffn_pre_norm_base", min: -maxSpecFactor, max: maxSpecFactor},
	{key: "output_norm_base", min: -maxSpecFactor, max: maxSpecFactor},
	{key: "attn_out_scale", min: -maxSpecFactor, max: maxSpecFactor},
	{key: "ffn_out_scale", min: -maxSpecFactor, max: maxSpecFactor},
	{key: "out_scale", min: -maxSpecFactor, max: maxSpecFactor},
	{key: "expert_count", max: maxSpecCount, whole: true},
	{key: "using_expert_count", max: maxSpecCount, whole: true},
	{key: "moe_top_k", max: maxSpecCount, whole: true},
	{key: "moe_layer_start", max: maxSpecCount, whole: true},
	{key: "moe_layer_end", min: -1, max: maxSpecCount, whole: true},
}

// checkNumbers refuses numbers that cannot be.
func (s *ModelSpec) checkNumbers(top map[string]any) error {
	for _, r := range fileRanges {
		if err := r.check(r.key, top[r.key]); err != nil {
			return err
		}
	}
	for _, r := range structureRanges {
		if err := r.check("network_structure."+r.key, s.Structure[r.key]); err != nil {
			return err
		}
	}
	return nil
}

// check holds a value against the range; what is no number is left to who reads it.
func (r numberRange) check(key string, v any) error {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	x, err := n.Float64()
	if err == nil && x >= r.min && x <= r.max && !(r.above && x == r.min) && !(r.whole && x != math.Trunc(x)) {
		return nil
	}
	kind, from := "a number", "from"
	if r.whole {
		kind = "a whole number"
	}
	if r.above {
		from = "above"
	}
	return fmt.Errorf("spec: %w: %s is %s; want %s %s %s to %s", ErrModelSpec, key, cut(n.String()), kind, from, plainNumber(r.min), plainNumber(r.max))
}

func plainNumber(x float64) string {
	if math.Abs(x) < 1e12 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return fmt.Sprintf("%.3g", x)
}
