package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// draftWriter writes the text of a draft.
type draftWriter struct {
	*draft
	b     strings.Builder
	loads []string
	keys  map[string]bool // configuration keys that the text reads
	noted map[string]bool // guesses that the text tells
}

// guess writes a comment that marks what the next line supposes, once.
func (w *draftWriter) guess(indent, what string) {
	if !w.noted[what] {
		w.noted[what] = true
		w.line(indent + "# guess: " + what)
	}
}

// text is the draft as a specification.
func (d *draft) text() string {
	w := &draftWriter{draft: d, keys: map[string]bool{}, noted: map[string]bool{}}
	w.model()
	body := w.b.String()
	w.b.Reset()
	if served := servedAlready(w.files); served != "" {
		w.line("# " + strings.TrimSuffix(served, "; ") + ": nothing need be written, unless it is to compute something else.")
	}
	w.line("# A draft by \"inferflow spec new\": what is marked \"guess\" follows from names and shapes alone. Check it with")
	w.line("# \"inferflow spec check\", then hold it against the reference with \"inferflow spec trace\" (docs/spec.md).")
	if len(w.loads) > 0 {
		slices.Sort(w.loads)
		w.line(`load("@std/blocks.star", "` + strings.Join(slices.Compact(w.loads), `", "`) + `")`)
	}
	w.line("")
	w.line("serves(" + w.serves() + ")")
	w.line("")
	w.b.WriteString(body)
	w.unwritten(body)
	w.remarks(body)
	return w.b.String()
}

// line writes one line, whatever the names and keys of the files hold.
func (w *draftWriter) line(s string) { w.b.WriteString(oneLine(s) + "\n") }

func (w *draftWriter) linef(format string, a ...any) { w.line(fmt.Sprintf(format, a...)) }

func (w *draftWriter) serves() string {
	if mt := modelType(w.files); mt != "" {
		return fmt.Sprintf("model_type = %q", mt)
	}
	if list := architectures(w.files); len(list) > 0 {
		return fmt.Sprintf("architectures = %q", list[0])
	}
	return `model_type = "?"`
}

// get is the expression for a configuration value under the first of the names
// that it has; without any, def with a note that it is a guess.
func (w *draftWriter) get(def string, names ...string) string {
	key := w.configKey(names...)
	if key == "" {
		return def
	}
	w.keys[key] = true
	return "c." + key
}

func (w *draftWriter) model() {
	w.line("def model(c):")
	if w.sub != "" {
		w.linef("    c = c.sub(%q)", w.sub)
	}
	w.sizesText()
	w.start()
	w.linef("    for i in layers(%s):", w.get(fmt.Sprint(w.layers), "num_hidden_layers", "n_layer", "n_layers", "num_layers"))
	w.linef("        L = %q %% i", w.prefix+"%d.")
	w.conditional(w.attentionText)
	w.feedForwardText()
	w.end()
}

// sizesText writes what the layers share: sizes, activation, rotary table.
func (w *draftWriter) sizesText() {
	attends := w.attends()
	if w.heads > 0 && attends {
		hidden := w.width()
		heads := w.get(fmt.Sprint(w.heads), "num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
		d := w.get("", "head_dim", "head_size", "attention_head_dim", "kv_channels", "d_head")
		if d == "" && w.headDim*w.heads == w.hidden {
			d = hidden + " // " + heads
		} else if d == "" {
			d = fmt.Sprintf("%d  # guess: from the rows of the queries", w.headDim)
		}
		w.linef("    d = %s", d)
	}
	w.linef("    eps = %s", w.eps())
	if w.position() == "rope" && attends {
		w.ropeGuesses()
		w.linef("    table = %s", w.ropeText())
	}
}

// width is the expression of the stream's width: a key that says it, else a shape.
func (w *draftWriter) width() string {
	for _, key := range []string{"hidden_size", "n_embd", "d_model", "dim", "emb_dim", "hidden", "hidden_dim", "embed_dim", "model_dim", "width", "n_state"} {
		if w.configKey(key) != "" && w.number(key) == w.hidden {
			return w.get("", key)
		}
	}
	return fmt.Sprintf("tensor(%q).shape[1]", w.embedding)
}

// eps is the expression of the norms' eps.
func (w *draftWriter) eps() string {
	for _, key := range slices.Sorted(maps.Keys(w.config)) {
		if isIdentifier(key) && strings.Contains(key, "eps") && (strings.Contains(key, "norm") || strings.Contains(key, "ln") || key == "eps") {
			w.keys[key] = true
			return "c." + key
		}
	}
	return "1e-6  # guess: the configuration has no eps; look at the default in the configuration class"
}

// norm is a norm's function and its further arguments.
func (w *draftWriter) norm(x, name string, stored bool) string {
	kind := "rms_norm"
	_, inside := w.inside[name+".bias"]
	_, outside := w.outside[name+".bias"]
	if key := w.eps(); stored && (inside || outside) || strings.Contains(key, "layer_norm_") || strings.Contains(key, "layernorm") || strings.Contains(key, "ln_eps") {
		if !strings.Contains(key, "rms") {
			kind = "layer_norm"
		}
	}
	ref := fmt.Sprintf("L + %q", name)
	if !inside && w.inside[name].shape == nil {
		ref = fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%s(%s, %s, eps)", kind, x, ref)
}

// position tells how positions come in: rope, learned, or not at all.
func (w *draftWriter) position() string {
	switch {
	case w.positions != "":
		return "learned"
	case w.configKey("rope_theta", "rope_parameters", "rope_scaling", "rotary_pct", "rotary_dim", "partial_rotary_factor", "rotary_emb_base", "rope_base", "rotary_emb_fraction") != "":
		return "rope"
	case w.configKey("alibi", "position_embedding_type", "max_alibi_bias") != "":
		return "other"
	}
	return "rope"
}

// ropeGuesses marks what the rotation supposes.
func (w *draftWriter) ropeGuesses() {
	if w.configKey("rope_theta", "rope_parameters", "rope_scaling", "rotary_pct", "rotary_dim", "partial_rotary_factor", "rotary_emb_base", "rope_base", "rotary_emb_fraction") == "" {
		w.guess("    ", "positions are rotations; the configuration says nothing of them")
	}
	p, _ := w.config["rope_parameters"].(map[string]any)
	if w.configKey("rope_theta", "rotary_emb_base", "rope_base") == "" && p["rope_theta"] == nil {
		w.guess("    ", "the configuration names no theta, and rope_table takes 10000: look at the default in the configuration class (theta = …)")
	}
}

func (w *draftWriter) ropeText() string {
	s := "rope_table(c, dim = d"
	if key := w.configKey("rotary_dim", "qk_rope_head_dim"); key != "" && fmt.Sprint(w.config[key]) != "0" {
		w.keys[key] = true
		s = "rope_table(c, dim = c." + key
	}
	if key := w.configKey("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"); key != "" {
		w.keys[key] = true
		s += ", partial = c." + key
	} else if p, _ := w.config["rope_parameters"].(map[string]any); p["partial_rotary_factor"] != nil {
		s += ", partial = 1.0"
	}
	if key := w.configKey("rotary_emb_base", "rope_base"); key != "" {
		w.keys[key] = true
		s += fmt.Sprintf(", theta_key = %q", key)
	}
	for _, key := range []string{"rope_theta", "rope_parameters", "rope_scaling"} {
		w.keys[key] = true
	}
	return s + ")"
}

// start writes the embedding.
func (w *draftWriter) start() {
	x := fmt.Sprintf("embed(%q)", w.embedding)
	if w.head != "" {
		x = fmt.Sprintf("embed(%q, tied = %q)", w.embedding, w.head)
	}
	if key := w.configKey("embedding_multiplier", "scale_emb", "embed_scale"); key != "" {
		w.keys[key] = true
		x += " * c." + key
	}
	if w.position() == "learned" {
		offset := w.outside[w.positions][0] - w.number("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
		at := "positions()"
		if offset > 0 && offset < 8 {
			at = fmt.Sprintf("positions(%d)", offset)
		}
		x += fmt.Sprintf(" + embed(%q, index = %s)", w.positions, at)
	}
	w.linef("    x = %s", x)
	if w.embedNorm != "" {
		w.linef("    x = %s", w.norm("x", w.embedNorm, true))
	}
}

// linear is a linear of the layer.
func (w *draftWriter) linear(x, name string) string {
	s := fmt.Sprintf("linear(%s, L + %q", x, name)
	if w.transposed {
		s += ", transposed = True"
	}
	return s + ")"
}

// activation is the expression of an activation; def where the configuration names none.
func (w *draftWriter) activation(def string) string {
	key := w.configKey("hidden_act", "hidden_activation", "activation_function", "activation", "act_fn", "mlp_hidden_act", "act")
	if key == "" {
		w.guess("        ", fmt.Sprintf("the configuration names no activation; %s is the usual one: look at the default in the configuration class", def))
		return fmt.Sprintf("%q", def)
	}
	w.keys[key] = true
	if name, isName := w.config[key].(string); isName {
		if _, err := activationOf(name); err != nil {
			w.guess("        ", fmt.Sprintf("%s stands for %s = %q, which is no function of activation(…): write it out", def, key, name))
			return fmt.Sprintf("%q", def)
		}
	}
	return "c." + key
}

// add writes the sum of the stream and a branch.
func (w *draftWriter) add(branch, norm string) {
	if norm != "" {
		branch = w.norm(branch, norm, true)
	}
	if key := w.configKey("residual_multiplier", "scale_depth"); key == "residual_multiplier" {
		w.keys[key] = true
		branch += " * c." + key
	}
	w.linef("        x += %s", branch)
}

// remarks lists what was guessed and what is left.
func (w *draftWriter) remarks(body string) {
	w.line("")
	w.line("# What to look at:")
	if strings.Contains(body, "rope(") {
		w.line("# - guess: rope pairs component j with j + d/2 (\"half\"), as rotate_half does; the other way is layout = \"interleaved\"")
	}
	if strings.Contains(body, "_norm(") {
		w.line("# - guess: norms multiply by w; where the reference multiplies by 1 + w it is offset = 1")
	}
	if w.r.before == "" && w.r.after == "" || w.finalNorm == "" {
		w.line("# - no norm was found before or after the attention, or none before the head: some have no weights, rms_norm(x, eps = eps)")
	}
	for _, g := range w.r.lookalikes {
		if name, _, _ := strings.Cut(g, " "); w.used[name] {
			w.line("# - guess: " + g)
		}
	}
	if w.head == "" {
		w.line("# - guess: no head is stored, so logits are taken from the embedding. An encoder has mask = \"full\" and no logits (docs/spec.md, \"Encoders and encoder-decoders\")")
	}
	if near := nearest(w.files, "", 3); len(near) > 0 {
		w.line("# - shipped specifications whose tensors are called most alike: " + strings.Join(near, ", ") + " (inferflow spec show NAME)")
	}
	for _, name := range slices.Sorted(maps.Keys(w.inside)) {
		if e := w.inside[name]; w.used[name] && !strings.Contains(name, "{e}") && e.layers < w.layers {
			w.linef("# - only %d of %d layers have %s: the others need a branch", e.layers, w.layers, name)
		}
	}
	for _, name := range collapsed(w.leftOver()) {
		w.line("# - a tensor that the draft does not read: " + name)
	}
	for _, key := range slices.Sorted(maps.Keys(w.config)) {
		if w.keys[key] || dullKeys[key] || w.config[key] == nil {
			continue
		}
		raw, err := json.Marshal(w.config[key])
		if err != nil || len(raw) > 100 {
			raw = []byte("…")
		}
		w.linef("# - a key that the draft does not read: %s = %s", key, raw)
	}
}

// dullKeys say nothing of what is computed, or what the tensors say too.
var dullKeys = map[string]bool{
	"architectures": true, "model_type": true, "transformers_version": true, "torch_dtype": true, "dtype": true, "use_cache": true, "_name_or_path": true,
	"initializer_range": true, "auto_map": true, "bos_token_id": true, "eos_token_id": true, "pad_token_id": true, "sep_token_id": true, "vocab_size": true,
	"max_position_embeddings": true, "n_positions": true, "n_ctx": true, "tie_word_embeddings": true, "attention_dropout": true, "hidden_dropout": true,
	"hidden_size": true, "intermediate_size": true, "num_attention_heads": true, "num_key_value_heads": true, "num_hidden_layers": true, "pretraining_tp": true,
	"attention_bias": true, "mlp_bias": true, "use_bias": true, "bias": true, "router_aux_loss_coef": true, "output_router_logits": true, "is_encoder_decoder": true,
}
