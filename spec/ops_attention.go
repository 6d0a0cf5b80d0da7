package spec

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// attentionArgs are the arguments of attention(…).
type attentionArgs struct {
	q                          *value
	k, v, cache, sinks, slopes starlark.Value
	bias                       starlark.Value
	scale, window, softcap     starlark.Value
	valueDim, allowed          starlark.Value
	mask                       string
	first, queries, every      starlark.Value
	score                      string
	scoreBias, fade            starlark.Value
	tile, open                 bool
}

const docAttention = `attention(q, k=None, v=None, scale=None, window=None, mask=None, softcap=None, sinks=None, slopes=None, bias=None, tile=False, cache=None, value_dim=None, allowed=None, first=None, queries=None, open=False, score="softmax", score_bias=None, fade=None, every=None)
softmax(mask(scale · q·kᵀ))·v over the tokens of the sequence so far. q [H, d], k [K, d], v [K, e] give [H, e]; H is a multiple of K. Keys and values go into a
cache of their own; nothing need be said of it. In a decoder, k and v of the encoder's memory make it cross attention: every query sees the whole source, whatever mask and window say, and bias and
slopes are refused, for positions of two texts have no distance. A cache keeps f16 unless the model is opened with --kv f32.
- q: queries [H, d], rotated.
- k: keys [K, d], rotated. Keys and values [n, K, d] and [n, K, e] of param are n stored ones, which every query sees.
- v: values [K, e].
- scale: a number; None: 1/√d.
- window: how many keys a query sees, its own included; None or 0: all. With the mask "full" also [before, after]: keys from i − before to i + after.
- mask: None is "causal", or "full" where the configuration says is_causal = false, as embedding models made of decoders do; "causal"; "full" (encoders: all tokens of the sequence, or |i − j| ≤ window); "chunk" (causal, and in the same block of window tokens); "before" (causal without the
token itself, which window counts all the same; the first token sees nothing and gets zeros).
- softcap: caps the scores: softcap · tanh(score / softcap), a finite number above 0; None or 0: no cap.
- sinks: a tensor [H], or a value [H] that the token makes: one more logit for each head, which takes weight and gives no value.
- slopes: a list of H numbers (ALiBi): slope · (j − i) is added to the score of key j for query i.
- bias: the result of relative_bias or distance_bias: added to the score by the distance of key and query. Not in cross attention. Or of counted_bias.
- tile: query head h reads key head h mod K instead of h·K/H.
- cache: an earlier attention, whose keys and values are read; then k and v are left out.
- value_dim: the values are the first value_dim components of the keys, kept once; then v is left out (latent attention).
- allowed: what index_topk returned: the positions that are seen, of those so far. It goes with the causal mask and no window, first, queries, bias, score_bias or fade (slopes may be).
- first: so many positions at the beginning are seen whatever the window; with the mask "full" they also see all (a class token, attention sinks).
- queries: only so many tokens at the beginning ask; the others see nothing and get zeros.
- every: of so many keys only the last is seen, those of positions every − 1, 2·every − 1, …: keys that stand for a block of tokens, once it is complete.
It goes with the causal mask and the softmax: with no window, first, queries, allowed, bias or counted_bias.
- open: leaves the softmax open, to be joined with others over further sources: [H, e + 1]; see join.
- score: what makes weights of the scores, biases included. "softmax"; a function f, Σ f(score)·v, not divided by anything: "sigmoid", "silu", "relu", "relu2", "square", "exp", "tanh",
"softplus", "gelu", "gelu_tanh", "none" (the scores themselves); "stick_breaking": from the newest key to the oldest each takes the part sigmoid(score) of what is left of 1; with open=True the last
component is the logarithm of what is left at last; "sparsemax" and "entmax15", whose weights add up to 1 and are mostly 0. The softmax is the fast one. To divide by the sum of the weights, give v a component of 1.
- score_bias: added to all scores, of another score than "softmax": a number, a tensor [H], or a value [H] or [] that the token makes (-log(positions(1))).
- fade: a value [K] of the token, the logarithm of a forget gate of each key head: the sum of them over the later keys, up to the token's own, is added to the score of a key (Lin et al. 2025).
With every, the gates of the keys that are seen add up: give the token that ends a block the sum of its block's, if all tokens' are meant. It is kept as one more component of the keys. It goes with no mask "full", first, allowed or bias. With cache= it must have been given to the earlier attention, and is fade=True here.
Errors: an unknown score, sinks of one that is no softmax, options that do not go together, heads or widths that do not fit, a mask or window that is none, slopes or sinks of another count, a bias or slopes of cross attention.
`

func doAttention(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := attentionArgs{score: "softmax"}
	mask := starlark.Value(starlark.None)
	err := starlark.UnpackArgs(name, args, kwargs, "q", &a.q, "k?", &a.k, "v?", &a.v, "scale?", &a.scale, "window?", &a.window, "mask?", &mask,
		"softcap?", &a.softcap, "sinks?", &a.sinks, "slopes?", &a.slopes, "bias?", &a.bias, "tile?", &a.tile, "cache?", &a.cache,
		"value_dim?", &a.valueDim, "allowed?", &a.allowed, "first?", &a.first, "queries?", &a.queries, "open?", &a.open,
		"score?", &a.score, "score_bias?", &a.scoreBias, "fade?", &a.fade, "every?", &a.every)
	if err != nil {
		return nil, err
	}
	if a.mask, err = t.maskOf(mask); err != nil {
		return nil, err
	}
	if ok, err := t.faded(&a); err != nil || !ok {
		return &value{t: t}, err
	}
	attr, ok, err := t.attentionAttr(a)
	if err != nil || !ok {
		return &value{t: t}, err
	}
	allowed, ok, err := allowedOf(a.allowed, &attr)
	if err != nil || !ok {
		return &value{t: t}, err
	}
	sinks, ok := tokenSinks(a.sinks, &attr)
	if !ok {
		return &value{t: t}, nil
	}
	allowed = append(sinks, allowed...)
	if near, is := a.bias.(*distanceValue); is {
		allowed = append(near.set(&attr), allowed...)
	}
	shift, ok, err := t.scored(a, &attr)
	if err != nil || !ok {
		return &value{t: t}, err
	}
	allowed = append(shift, allowed...)
	if isNone(a.cache) {
		if out, is, err := t.attendStored(a, attr); is {
			return out, err
		}
		return t.attend(a, attr, allowed)
	}
	from, is := a.cache.(*value)
	if !is || !isNone(a.k) || !isNone(a.v) {
		return nil, fmt.Errorf("attention: cache is the result of an earlier attention and takes the place of k and v")
	}
	if from.node == nil {
		return &value{t: t}, nil
	}
	earlier, is := from.node.Attr.(*graph.AttentionAttr)
	if !is {
		return nil, fmt.Errorf("attention: cache is the result of an earlier attention, got one of %s", graph.Written(from.node.Op, from.node.Attr))
	}
	attr.Cache = earlier.Cache
	return t.made(t.b.AttentionShared(a.q.node, attr, allowed...))
}

// maskOf is the mask that attention asks for; without one the configuration's
// is_causal decides, as it does for every decoder of the reference.
// Source: transformers, masking_utils.py, create_causal_mask and
// create_sliding_window_causal_mask.
func (t *tracer) maskOf(v starlark.Value) (string, error) {
	if s, ok := starlark.AsString(v); ok {
		return s, nil
	}
	if !isNone(v) {
		return "", fmt.Errorf("attention: mask is None or a string, got %s", v.Type())
	}
	if t.mask != "" {
		return t.mask, nil
	}
	t.mask = "causal"
	c := t.config.root()
	if text := c.sub("text_config"); text.m != nil { // what the whole says is not about its text model
		c = text
	}
	causal, source, ok, err := c.find("is_causal")
	if err != nil {
		return "", err
	}
	if ok && !bool(causal.Truth()) {
		c.d.record(c.prefix+"is_causal", causal, source)
		t.asked.config(c.prefix, []string{"is_causal"}, causal, false)
		t.mask = "full"
	}
	return t.mask, nil
}

func isNone(v starlark.Value) bool { return v == nil || v == starlark.None }

func keyOrValue(what string, v starlark.Value) (*value, error) {
	if isNone(v) {
		return nil, fmt.Errorf("attention: %s is missing (or name cache=)", what)
	}
	return asValue(v)
}

// attentionAttr reads the numbers; ok is false where an operand is unknown.
func (t *tracer) attentionAttr(a attentionArgs) (attr graph.AttentionAttr, ok bool, err error) {
	attr = graph.AttentionAttr{Mask: graph.MaskKind(a.mask), Tile: a.tile, Open: a.open, Faded: !isNone(a.fade)}
	if attr.First, err = optionalInt("attention: first", a.first); err != nil {
		return attr, false, err
	}
	if attr.Ask, err = optionalInt("attention: queries", a.queries); err != nil {
		return attr, false, err
	}
	if attr.Every, err = optionalInt("attention: every", a.every); err != nil {
		return attr, false, err
	}
	if err := windowOf(a.window, &attr); err != nil {
		return attr, false, err
	}
	if attr.Softcap, err = capOf("attention: softcap", a.softcap); err != nil {
		return attr, false, err
	}
	bias, known, err := biasOf("attention: bias", a.bias)
	if near, is := a.bias.(*distanceValue); is {
		known, err = near.known, nil
	}
	if err != nil {
		return attr, false, err
	}
	attr.Relative, attr.Farthest, attr.TwoSided = bias.w, bias.farthest, bias.twoSided
	ok = known && a.q.node != nil
	if _, made := a.sinks.(*value); !made && !isNone(a.sinks) {
		w, err := t.named(a.sinks)
		if err != nil {
			return attr, false, fmt.Errorf("attention: sinks: %w", err)
		}
		attr.Sinks, ok = w.w, ok && w.w != nil
	}
	if !isNone(a.slopes) {
		it, is := a.slopes.(starlark.Iterable)
		if !is {
			return attr, false, fmt.Errorf("attention: slopes is a list of numbers")
		}
		i := it.Iterate()
		defer i.Done()
		for item := starlark.Value(nil); i.Next(&item); {
			f, is := starlark.AsFloat(item)
			if !is {
				return attr, false, fmt.Errorf("attention: slopes is a list of numbers")
			}
			attr.Slopes = append(attr.Slopes, f)
		}
	}
	if !ok {
		return attr, false, nil
	}
	if isNone(a.scale) {
		s := a.q.node.Shape
		if d := s[max(0, len(s)-1):]; len(d) > 0 && d[0]-fading(attr) > 0 {
			attr.Scale = 1 / math.Sqrt(float64(d[0]-fading(attr)))
		}
		return attr, true, nil
	}
	attr.Scale, err = optional("attention: scale", a.scale)
	return attr, true, err
}

const docRope = `rope(x, table, layout="half", at=0)
Rotates components at … at + table.dim of the last axis by the token's position; the others pass. Shape as x.
Pairs (a, b) at angle φ become (a·cos φ − b·sin φ, b·cos φ + a·sin φ).
- x: a value [.., d]: query or key heads.
- table: of rope_table.
- layout: "half" pairs j with j + dim/2 (rotate_half, the usual one in transformers); "interleaved" pairs 2j with 2j + 1 (view_as_complex, x[..., ::2]).
- at: first rotated component; negative counts from the end.
Errors: components outside x; another layout.
`

func doRope(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var a struct {
		x      *value
		table  *ropeValue
		layout string
		at     int
	}
	a.layout = "half"
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &a.x, "table", &a.table, "layout?", &a.layout, "at?", &a.at); err != nil {
		return nil, err
	}
	x, table, layout, at := a.x, a.table, a.layout, a.at
	if layout != "half" && layout != "interleaved" {
		return nil, fmt.Errorf("rope: layout is \"half\" or \"interleaved\", got %q", layout)
	}
	if x.node == nil {
		return x, nil
	}
	if at < 0 && len(x.node.Shape) > 0 {
		at += x.node.Shape[len(x.node.Shape)-1]
	}
	return t.made(t.b.Rope(x.node, graph.RopeAttr{Table: table.index, Interleaved: layout == "interleaved", At: at}))
}
