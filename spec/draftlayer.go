package spec

import (
	"fmt"
	"strings"
)

// attentionText writes the attention of a layer.
func (w *draftWriter) attentionText() {
	r := w.r
	if !w.attends() {
		w.line("        # no attention was recognised in the layers: " + w.noAttention())
		return
	}
	in := "x"
	if r.before != "" {
		in = "h"
		w.linef("        h = %s", w.norm("x", r.before, true))
	}
	w.projections(in)
	w.headNorms()
	if w.position() == "rope" {
		w.line("        q, k = rope(q, table), rope(k, table)")
	}
	w.linef("        a = attention(q, k, v%s)", w.attentionOptions())
	if r.o != "" {
		w.add(w.linear("merge(a)", r.o), r.after)
	} else {
		w.add("merge(a)", r.after)
	}
}

// projections writes q, k and v as heads.
func (w *draftWriter) projections(in string) {
	r := w.r
	if r.qkv == "" {
		if base := strings.TrimSuffix(r.q, "q_proj"); base != r.q && base != "" && r.k == base+"k_proj" && r.v == base+"v_proj" && w.r.qNorm == "" && !w.transposed {
			w.loads = append(w.loads, "qkv")
			w.linef("        q, k, v = qkv(%s, L + %q, d)", in, strings.TrimSuffix(base, "."))
			return
		}
		for _, p := range [][2]string{{"q", r.q}, {"k", r.k}, {"v", r.v}} {
			if p[1] != "" && !w.wideNorm(p[0]) {
				w.linef("        %s = heads(%s, d)", p[0], w.linear(in, p[1]))
			} else if p[1] != "" {
				w.linef("        %s = %s", p[0], w.linear(in, p[1]))
			}
		}
		return
	}
	kv := w.get(fmt.Sprint(w.kvHeads), "num_key_value_heads", "num_kv_heads", "n_kv", "n_head_kv", "n_kv_heads")
	if w.number("num_key_value_heads", "num_kv_heads", "n_kv", "n_head_kv", "n_kv_heads") != w.kvHeads {
		kv = fmt.Sprint(w.kvHeads)
	}
	heads := w.get(fmt.Sprint(w.heads), "num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
	w.loads = append(w.loads, "split_linear")
	more := ""
	if w.transposed {
		more = ", transposed = True"
	}
	w.line("        # guess: all queries, then all keys, then all values; some interleave them by head (docs/spec.md, \"Fused projections\")")
	w.linef("        q, k, v = [heads(y, d) for y in split_linear(%s, L + %q, [%s * d, %s * d, %s * d]%s)]", in, r.qkv, heads, kv, kv, more)
}

// wideNorm says that a norm goes over all heads at once.
func (w *draftWriter) wideNorm(p string) bool {
	name := map[string]string{"q": w.r.qNorm, "k": w.r.kNorm}[p]
	s := w.inside[name].shape
	return len(s) == 1 && s[0] > w.headDim
}

func (w *draftWriter) headNorms() {
	for _, p := range [][2]string{{"q", w.r.qNorm}, {"k", w.r.kNorm}} {
		if p[1] == "" {
			continue
		}
		n := w.norm(p[0], p[1], true)
		if w.wideNorm(p[0]) {
			n = "heads(" + n + ", d)"
		}
		w.linef("        %s = %s", p[0], n)
	}
}

// attentionOptions are scale, window and soft cap as the configuration names them.
func (w *draftWriter) attentionOptions() string {
	s := ", scale = 1 / math.sqrt(d)"
	if key := w.configKey("attention_multiplier", "attn_scale"); key != "" {
		w.keys[key] = true
		s = ", scale = c." + key
	} else if key := w.configKey("query_pre_attn_scalar"); key != "" {
		w.keys[key] = true
		s = ", scale = 1 / math.sqrt(c." + key + ")"
	}
	off, has := w.config["use_sliding_window"].(bool)
	if key := w.configKey("sliding_window", "window", "window_size", "attention_window"); key != "" && (off || !has) {
		w.keys[key], w.keys["use_sliding_window"] = true, true
		if w.configKey("layer_types") != "" {
			w.keys["layer_types"] = true
			w.loads = append(w.loads, "sliding")
			s += ", window = c." + key + " if sliding(c, i, lambda i: False) else None"
		} else {
			s += ", window = c." + key
		}
	}
	w.keys["use_sliding_window"] = true
	if key := w.configKey("attn_logit_softcapping"); key != "" {
		w.keys[key] = true
		s += ", softcap = c." + key
	}
	return s
}

// parallel says that attention and feed-forward read the same input.
func (w *draftWriter) parallel() bool {
	for _, k := range []string{"parallel_residual", "use_parallel_residual", "parallel_attn", "parallel_attention"} {
		if _, ok := w.config[k]; ok {
			w.keys[k] = true
		}
	}
	return w.flag("parallel_residual", "use_parallel_residual", "parallel_attn", "parallel_attention")
}

// feedForwardText writes the feed-forward of a layer, dense or with experts.
func (w *draftWriter) feedForwardText() {
	r := w.r
	if r.down == "" && r.xDown == "" {
		w.line("        # no feed-forward was recognised in the layers")
		return
	}
	if r.down == "" && r.router == "" {
		w.line("        # experts, but no router [experts, width] was recognised in the layers: they are not written")
		return
	}
	in := "x"
	switch {
	case w.parallel() && w.attends():
		w.rewriteParallel()
		return
	case r.beforeFFN != "":
		in = "h"
		w.linef("        h = %s", w.norm("x", r.beforeFFN, true))
	case r.before != "" && r.after == "" && w.attends():
		w.rewriteParallel() // one norm for both
		return
	}
	w.branch(in, r.afterFFN)
}

// branch writes the feed-forward of an input.
func (w *draftWriter) branch(in, after string) {
	r := w.r
	if r.xDown == "" || r.router == "" {
		w.add(w.dense("        ", in), after)
		return
	}
	y := w.mixture(in)
	if r.down != "" && w.inside[r.down].layers < w.layers {
		w.linef("        if not stored(L + %q):  # guess: some layers are dense", strings.ReplaceAll(r.xDown, "{e}", "0"))
		y := w.dense("            ", in)
		if after != "" {
			y = w.norm(y, after, true)
		}
		w.linef("            x += %s", y)
		w.line("            continue")
	}
	w.router(in)
	w.add(y, after)
}

// rewriteParallel lets the feed-forward read what the attention read: the sum
// of the attention, written last, must come after it.
func (w *draftWriter) rewriteParallel() {
	text := w.b.String()
	at := strings.LastIndex(text, "        x += ")
	last := strings.Replace(text[at:], "x += ", "branch = ", 1)
	w.b.Reset()
	w.b.WriteString(text[:at] + last)
	in := "h"
	if w.r.beforeFFN != "" {
		in = "g"
		w.linef("        g = %s  # guess: in parallel with the attention", w.norm("x", w.r.beforeFFN, true))
	} else {
		w.line("        # guess: in parallel with the attention, from the same norm")
	}
	w.line("        x += branch")
	w.branch(in, w.r.afterFFN)
}

// dense is the expression of a feed-forward without experts; what it needs before is written at an indentation.
func (w *draftWriter) dense(indent, in string) string {
	r := w.r
	switch {
	case r.gateUp != "":
		inner := w.inside[r.down].shape[w.axis(1)]
		w.loads = append(w.loads, "split_linear")
		w.linef("%sg, u = split_linear(%s, L + %q, [%d, %d])", indent, in, r.gateUp, inner, inner)
		return w.linear(fmt.Sprintf("activation(%s, g) * u", w.activation("silu")), r.down)
	case r.gate != "":
		return w.linear(fmt.Sprintf("activation(%s, %s) * %s", w.activation("silu"), w.linear(in, r.gate), w.linear(in, r.up)), r.down)
	}
	return w.linear(fmt.Sprintf("activation(%s, %s)", w.activation("gelu"), w.linear(in, r.up)), r.down)
}

func (w *draftWriter) router(in string) {
	k := w.get("", "num_experts_per_tok", "moe_top_k", "num_experts_per_token", "top_k", "moe_topk", "experts_per_token")
	if k == "" {
		w.guess("        ", "the configuration does not say how many experts a token has; look at the default in the configuration class")
		k = "2"
	}
	renorm := ""
	if w.flag("norm_topk_prob") {
		renorm = ", renorm = True"
	}
	w.keys["norm_topk_prob"] = true
	if key := w.configKey("routed_scaling_factor", "router_scaling_factor", "route_scale"); key != "" {
		w.keys[key] = true
		renorm += ", scale = c." + key
	}
	if w.r.routerBias != "" {
		w.line("        # guess: sigmoids, and a bias that counts for the choice only")
		w.linef("        r = route(%s, %s, score = \"sigmoid\", bias = L + %q%s)", w.linear(in, w.r.router), k, w.r.routerBias, renorm)
		return
	}
	w.linef("        # guess: a softmax over all scores, then the largest")
	w.linef("        r = route(%s, %s%s)", w.linear(in, w.r.router), k, renorm)
}

// mixture is the expression of the chosen experts and the shared one.
func (w *draftWriter) mixture(in string) string {
	r := w.r
	part := func(name string) string {
		if strings.Contains(name, "{e}") {
			n := w.get(fmt.Sprint(r.experts), "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
			return fmt.Sprintf("stacked(L + %q, %s)", name, n)
		}
		if w.stackTransposed() {
			return fmt.Sprintf("transpose(tensor(L + %q))", name)
		}
		return fmt.Sprintf("tensor(L + %q)", name)
	}
	args := ""
	switch {
	case r.xGateUp != "":
		inner := w.inside[r.xDown].shape[2]
		if w.stackTransposed() {
			inner = w.inside[r.xDown].shape[1]
		}
		args = fmt.Sprintf("gate = slice(%s, 0, %d, axis = 1), up = slice(%s, %d, %d, axis = 1)", part(r.xGateUp), inner, part(r.xGateUp), inner, 2*inner)
	case r.xGate != "":
		args = fmt.Sprintf("gate = %s, up = %s", part(r.xGate), part(r.xUp))
	default:
		args = "up = " + part(r.xUp)
	}
	y := fmt.Sprintf("experts(%s, r, act = %s, %s, down = %s)", in, w.activation("silu"), args, part(r.xDown))
	if r.sharedDown != "" && r.sharedUp != "" {
		s := w.linear(in, r.sharedUp)
		if r.sharedGate != "" {
			s = fmt.Sprintf("activation(%s, %s) * %s", w.activation("silu"), w.linear(in, r.sharedGate), s)
		}
		s = w.linear(s, r.sharedDown)
		if r.sharedMix != "" {
			s = fmt.Sprintf("sigmoid(%s) * %s", w.linear(in, r.sharedMix), s)
		}
		y += " + " + s
	}
	return y
}

// stackTransposed says that stacked experts are stored [experts, in, out].
func (w *draftWriter) stackTransposed() bool {
	s := w.inside[w.r.xDown].shape
	return len(s) == 3 && s[2] == w.hidden && s[1] != w.hidden
}

// end writes the last norm and the head.
func (w *draftWriter) end() {
	x := "x"
	if w.finalNorm != "" {
		x = w.norm("x", w.finalNorm, true)
	}
	y := ""
	if w.head != "" {
		y = fmt.Sprintf("linear(%s, %q, tied = %q)", x, w.head, w.embedding)
	} else {
		y = fmt.Sprintf("linear(%s, %q, tied = %q)", x, "lm_head", w.embedding)
	}
	if key := w.configKey("logits_scaling"); key != "" {
		w.keys[key] = true
		y += " / c." + key
	} else if key := w.configKey("logit_scale", "lm_head_multiplier"); key != "" {
		w.keys[key] = true
		y += " * c." + key
	}
	if key := w.configKey("final_logit_softcapping", "logit_cap", "logits_soft_cap"); key != "" {
		w.keys[key] = true
		y = fmt.Sprintf("softcap(%s, c.%s)", y, key)
	}
	w.linef("    return %s", y)
}
