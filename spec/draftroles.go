package spec

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// layerRoles are the names within a layer of what was recognised, "" where
// there is none.
type layerRoles struct {
	q, k, v, qkv, o       string
	qNorm, kNorm          string
	before, after         string // norms of the attention's input and output
	beforeFFN, afterFFN   string
	gate, up, down        string // of the feed-forward; gateUp is both in one
	gateUp                string
	router, routerBias    string
	xGate, xUp, xDown     string // experts, numbered by {e}
	xGateUp               string
	sharedGate, sharedUp  string
	sharedDown, sharedMix string
	experts               int
	lookalikes            []string // guesses between tensors that look alike
}

// How parts are called. They are the words of papers and of libraries, not of
// a family.
const (
	wordQ     = `q_proj|query_proj|query|wq|q_lin|to_q|linear_q|q`
	wordK     = `k_proj|key_proj|key|wk|k_lin|to_k|linear_k|k`
	wordV     = `v_proj|value_proj|value|wv|v_lin|to_v|linear_v|v`
	wordQKV   = `qkv_proj|qkv|wqkv|query_key_value|c_attn|in_proj|attn_qkv|w_pack|qkv_lin`
	wordQNorm = `q_norm|query_norm|q_layernorm|query_layernorm|q_ln|norm_q`
	wordKNorm = `k_norm|key_norm|k_layernorm|key_layernorm|k_ln|norm_k`
	wordGate  = `gate_proj|gate|w1|wi_0|linear_gate|fc1_g|linear_1|c_fc_0`
	wordUp    = `up_proj|up|w3|wi_1|linear_v|linear_fc1|c_fc|c_fc_1|fc1|fc_in|dense_h_to_4h|lin1|wi|w1|linear_in|intermediate\.dense`
	wordDown  = `down_proj|down|w2|c_proj|fc2|fc_out|dense_4h_to_h|lin2|wo|linear_2|linear_out|proj|output\.dense`
	wordBoth  = `gate_up_proj|gate_up|w13|w12|wi|fc1|dense_h_to_4h|up_gate_proj|linear_fc1`
)

// roles recognises the parts of the model.
func (d *draft) roles() {
	d.globals()
	r := &d.r
	r.qNorm, r.kNorm = d.find(wordQNorm, nil), d.find(wordKNorm, nil)
	d.experts()
	d.attention()
	d.norms()
	d.feedForward()
}

// globals finds embedding, positions, last norm and head outside the layers.
func (d *draft) globals() {
	take := func(pattern string, keep func([]int) bool) string {
		re := regexp.MustCompile(`(?i)(` + pattern + `)[^.]*$`)
		for _, name := range d.outsideNames() {
			if !d.used[name] && re.MatchString(name) && keep(d.outside[name]) {
				d.used[name] = true
				if _, ok := d.outside[name+".bias"]; ok {
					d.used[name+".bias"] = true
				}
				return name
			}
		}
		return ""
	}
	d.positions = take(`wpe|pos_emb|position_embeddings|embed_positions|position_embedding`, rank(2))
	d.head = take(`lm_head|output|embed_out|head|unembed|output_layer`, rank(2))
	d.embedding = take(`embed_tokens|wte|word_embeddings|tok_embeddings|token_embedding|embed_in|embeddings?|embed|emb`, rank(2))
	if d.embedding == "" {
		d.embedding, d.head = d.head, ""
	}
	d.embedNorm = take(`word_embeddings_layernorm|embed[a-z]*\.norm|embed[a-z]*\.layernorm|embed[a-z_]*_norm|emb_norm`, rank(1))
	if d.finalNorm = take(`final[a-z_]*norm|ln_f|norm_f`, rank(1)); d.finalNorm == "" {
		d.finalNorm = take(`norm|ln_out|final_ln|layernorm`, rank(1))
	}
	if s := d.outside[d.embedding]; len(s) == 2 {
		d.vocab, d.hidden = s[0], s[1]
	}
}

// experts finds a mixture: tensors numbered by {e}, or stacked [experts, …].
func (d *draft) experts() {
	r := &d.r
	stackedShape := rank(3)
	numbered := false
	for name := range d.inside {
		numbered = numbered || strings.Contains(name, "experts.{e}.")
	}
	if numbered {
		r.xGate = d.find(`experts\.\{e\}\.(.*\.)?(`+wordGate+`)`, rank(2))
		r.xUp = d.find(`experts\.\{e\}\.(.*\.)?(`+wordUp+`)`, rank(2))
		r.xDown = d.find(`experts\.\{e\}\.(.*\.)?(`+wordDown+`)`, rank(2))
		if r.xGate != "" && r.xUp == "" {
			r.xGate, r.xUp = "", r.xGate
		}
		r.experts = d.number("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
		if e := d.inside[r.xUp]; r.experts == 0 && e.layers > 0 {
			r.experts = e.count / e.layers
		}
	} else {
		r.xGateUp = d.find(`experts\.(`+wordBoth+`)`, stackedShape)
		r.xGate = d.find(`experts\.(`+wordGate+`)`, stackedShape)
		r.xUp = d.find(`experts\.(`+wordUp+`)`, stackedShape)
		r.xDown = d.find(`experts\.(`+wordDown+`)`, stackedShape)
		if s := d.inside[r.xDown].shape; len(s) == 3 {
			r.experts = s[0]
		}
	}
	if r.experts == 0 {
		return
	}
	r.router = d.find(`(gate|router|moe_gate|router\.layer|gate\.wg|router\.proj|wg)`, func(s []int) bool { return len(s) == 2 && s[0] == r.experts })
	r.routerBias = d.find(`(.*\.)?(e_score_correction_bias|expert_bias|router_bias|score_bias|moe_statics.*)`, func(s []int) bool { return len(s) == 1 && s[0] == r.experts })
	shared := `shared_experts?\.|shared_mlp\.|shared_expert\.`
	r.sharedGate = d.find(`(`+shared+`)(`+wordGate+`)`, rank(2))
	r.sharedUp = d.find(`(`+shared+`)(`+wordUp+`)`, rank(2))
	r.sharedDown = d.find(`(`+shared+`)(`+wordDown+`)`, rank(2))
	r.sharedMix = d.find(`shared_expert_gate`, rank(2))
}

// attention finds the projections; the output's stands beside them.
func (d *draft) attention() {
	r := &d.r
	for _, p := range []struct {
		into *string
		word string
	}{{&r.qkv, wordQKV}, {&r.q, wordQ}, {&r.k, wordK}, {&r.v, wordV}} {
		*p.into = d.find(p.word, rank(2))
	}
	if r.q != "" && r.k != "" && r.v != "" && r.qkv != "" {
		delete(d.used, r.qkv)
		r.qkv = ""
	}
	first := r.qkv
	if first == "" {
		first = r.q
	}
	s := d.inside[first].shape
	d.transposed = first == r.qkv && len(s) == 2 && s[0] == d.hidden && s[1] > s[0]
	dir := first[:strings.LastIndex(first, ".")+1]
	for _, word := range strings.Split("o_proj|out_proj|wo|c_proj|dense|out_lin|proj|to_out|linear_out|o|out", "|") { // the likeliest first
		if r.o = d.find(`^`+regexp.QuoteMeta(dir+word), rank(2)); r.o != "" {
			break
		}
	}
	if r.o == "" {
		r.o = d.find(`(.*att[a-z]*\.)(.*\.)?(o_proj|out_proj|wo|c_proj|dense|proj|output\.dense)`, rank(2))
	}
}

// norms gives the norms of a layer their places, by name.
func (d *draft) norms() {
	r := &d.r
	width := func(s []int) bool { return len(s) == 1 && s[0] == d.hidden }
	r.before = d.find(`(.*\.)?(input_layernorm|temporal_pre_norm|mixer_norm|attn_norm|attention_norm|ln_1|ln1|norm1|norm_1|pre_attention_layernorm|pre_attn_norm|self_attn_layer_norm|attention_layernorm|input_norm|ln_attn|operator_norm)`, width)
	r.beforeFFN = d.find(`(.*\.)?(pre_feedforward_layernorm|channel_pre_norm|pre_mlp_layernorm|pre_ffn_norm|ffn_norm|mlp_norm|ln_2|ln2|norm2|norm_2|final_layer_norm|ln_mlp|pre_ff_layernorm)`, width)
	if r.beforeFFN == "" && r.before != "" {
		r.beforeFFN = d.find(`post_attention_layernorm|post_attention_norm`, width)
	}
	r.after = d.find(`post_attention_layernorm|post_attention_norm|post_self_attn_layernorm|post_attn_norm|attn_post_norm`, width)
	r.afterFFN = d.find(`post_feedforward_layernorm|post_mlp_layernorm|post_ffn_norm|post_ffw_norm|mlp_post_norm`, width)
	for _, place := range []*string{&r.before, &r.beforeFFN} {
		if *place == "" && r.after == "" {
			if *place = d.find(`(.*\.)?[^.]*(norm|ln)[^.]*`, width); *place != "" {
				r.lookalikes = append(r.lookalikes, *place+" is the norm in this place, because no other was left")
			}
		}
	}
}

// feedForward finds the matrices of the dense feed-forward by their shapes and names.
func (d *draft) feedForward() {
	r := &d.r
	in := func(s []int) bool { return len(s) == 2 && s[d.axis(1)] == d.hidden }
	out := func(s []int) bool { return len(s) == 2 && s[d.axis(0)] == d.hidden }
	r.down = d.find(`(.*\.)?(`+wordDown+`)`, out)
	if r.down == "" {
		return
	}
	inner := d.inside[r.down].shape[d.axis(1)]
	sized := func(n int) func([]int) bool {
		return func(s []int) bool { return in(s) && s[d.axis(0)] == n }
	}
	if r.gateUp = d.find(`(.*\.)?(`+wordBoth+`)`, sized(2*inner)); r.gateUp != "" {
		r.lookalikes = append(r.lookalikes, r.gateUp+" holds the gate first, then up")
		return
	}
	r.gate = d.find(`(.*\.)?(`+wordGate+`)`, sized(inner))
	r.up = d.find(`(.*\.)?(`+wordUp+`)`, sized(inner))
	if r.gate == "" && r.up != "" {
		if other := d.find(`.*`, sized(inner)); other != "" {
			r.gate = other
			r.lookalikes = append(r.lookalikes, other+" is the gate, for it has the shape of "+r.up)
		}
	}
	if r.up == "" {
		r.gate, r.up = "", r.gate
	}
}

// axis is the place of an axis of [out, in] as it is stored.
func (d *draft) axis(i int) int {
	if d.transposed {
		return 1 - i
	}
	return i
}

// sizes reads or works out the numbers of heads.
func (d *draft) sizes() {
	r := &d.r
	d.heads = d.number("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
	rows := func(name string) int {
		if s := d.inside[name].shape; len(s) == 2 {
			return s[d.axis(0)]
		}
		return 0
	}
	d.headDim = d.number("head_dim", "head_size", "attention_head_dim", "kv_channels", "d_head")
	if q := rows(r.q); d.headDim == 0 && d.heads > 0 && q > 0 {
		d.headDim = q / d.heads
	}
	if d.headDim == 0 && d.heads > 0 {
		d.headDim = d.hidden / d.heads
	}
	if k := rows(r.k); k > 0 && d.headDim > 0 {
		d.kvHeads = k / d.headDim
	} else if q := rows(r.qkv); q > 0 && d.headDim > 0 {
		d.kvHeads = (q/d.headDim - d.heads) / 2
		if d.kvHeads < 1 || (d.heads+2*d.kvHeads)*d.headDim != q {
			r.qkv = "" // it holds something else
		}
	}
}

// leftOver lists what the draft does not read, layers' tensors by name within them.
func (d *draft) leftOver() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(d.inside)) {
		if !d.used[name] && !(strings.HasSuffix(name, ".bias") && d.used[strings.TrimSuffix(name, ".bias")]) {
			list = append(list, d.prefix+"{i}."+name+" "+shapeText(d.inside[name].shape))
		}
	}
	for _, name := range d.outsideNames() {
		if !d.used[name] && !(strings.HasSuffix(name, ".bias") && d.used[strings.TrimSuffix(name, ".bias")]) {
			list = append(list, name+" "+shapeText(d.outside[name]))
		}
	}
	return list
}
