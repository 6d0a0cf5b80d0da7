package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

const docHeadLinear = `head_linear(x, weight)
A matrix of its own for each head: y[h] = W[h] · x[h]. x [H, d] gives [H, e]. Latent attention in its absorbed form reads keys and values with it.
- x: a value [H, d].
- weight: the name of a stored tensor, or a weight, [H, e, d].
Errors: another number of heads or another width.
`

func doHeadLinear(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var weight starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "weight", &weight); err != nil {
		return nil, err
	}
	w, err := t.operand(weight, "")
	if err != nil {
		return nil, err
	}
	if x.node == nil || w.w == nil {
		return &value{t: t}, nil
	}
	return t.made(t.b.HeadLinear(x.node, w.w))
}

const docExpertLinear = `expert_linear(x, route, weight, sum=False)
One matrix of each chosen expert. x [h], or [k, h] with a row for each of the k chosen, gives [k, e]. For mixtures whose experts are no feed-forward
networks, such as mixtures of attention heads.
- x: a value.
- route: what route returned.
- weight: the name of a stored tensor, or a weight, [experts, e, h].
- sum: add the results, each times its weight: [e].
Errors: another number of experts, or widths that do not fit.
`

func doExpertLinear(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, route *value
	var weight starlark.Value
	var sum bool
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "route", &route, "weight", &weight, "sum?", &sum); err != nil {
		return nil, err
	}
	w, err := t.operand(weight, "")
	if err != nil {
		return nil, err
	}
	if x.node == nil || route.node == nil || w.w == nil {
		return &value{t: t}, nil
	}
	return t.apply(graph.OpExpertLinear, &graph.ExpertLinearAttr{W: w.w, Sum: sum}, x, route)
}

const docIndexTopK = `index_topk(q, k, w, top, block=0, local=0, signed=False, closed=False, tail=False, ends=False)
The positions that attention is to see: those of the tokens so far with the largest Σ_h w[h] · max(0, q[h] · k), top of them; all while there are no
more. The keys k go into a cache of their own. Give the result to attention(…, allowed = …), of this layer or of later ones. Where heads choose for
themselves, each has an index_topk and an attention of its own.
- q: a value [H, d], rotated.
- k: a value [d] or [1, d], rotated.
- w: a value [H]: the weight of each head, scales included.
- top: how many positions, or blocks.
- block: whole blocks of so many positions are chosen, each by the largest score in it.
- local: the last so many blocks, the token's own among them, are always chosen, complete or not; they count within top: beside them top − local others are.
- signed: True: a score is Σ_h w[h] · (q[h] · k).
- closed: the keys stand for blocks: only complete blocks are chosen, each by the key of its last position alone (what other tokens give as k is not looked at). With local = 1 and
keys that are means of blocks this is MoBA (Lu et al. 2025), and the selected branch of NSA where one score serves a group of heads.
- tail: with closed, the positions behind the last complete block are seen as well, beside the chosen.
- ends: with closed, of a chosen block only its last position is seen: the one whose key and value stand for the block.
Errors: widths that do not fit, a number of positions that is none, tail or ends of blocks that are not closed, more than one of local, tail and ends of those that are.
`

func doIndexTopK(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var q, k, w *value
	var a graph.IndexAttr
	if err := starlark.UnpackArgs(name, args, kwargs, "q", &q, "k", &k, "w", &w, "top", &a.TopK, "block?", &a.Block, "local?", &a.Local, "signed?", &a.Signed,
		"closed?", &a.Closed, "tail?", &a.Tail, "ends?", &a.Ends); err != nil {
		return nil, err
	}
	if q.node == nil || k.node == nil || w.node == nil {
		return &value{t: t}, nil
	}
	return t.made(t.b.IndexTopK(q.node, k.node, w.node, a))
}

const docDecoded = `decoded(w)
A weight of a block type as float32, so that its columns can be moved too; any other is left as it is. It costs memory: meant for small weights.
- w: a weight.
`

func doDecoded(_ *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var w *weightValue
	if err := starlark.UnpackArgs(name, args, kwargs, "w", &w); err != nil {
		return nil, err
	}
	if l, ok := w.typ.Layout(); w.w == nil || ok && l.Block == 1 {
		return w, nil
	}
	out, err := w.derive(name, true, func(x *graph.Weight) (*graph.Weight, error) { return graph.MapWeight(x, "decoded") })
	if err == nil && out.w != nil {
		out.typ = quant.F32
	}
	return out, err
}

// attend adds an attention that fills a cache: values of their own, or a part
// of the keys; allowed is empty or what index_topk returned.
func (t *tracer) attend(a attentionArgs, attr graph.AttentionAttr, allowed []*graph.Node) (starlark.Value, error) {
	k, err := keyOrValue("k", a.k)
	if err != nil {
		return nil, err
	}
	n, err := optionalInt("attention: value_dim", a.valueDim)
	if err != nil {
		return nil, err
	}
	if !isNone(a.valueDim) {
		switch {
		case !isNone(a.v):
			return nil, fmt.Errorf("attention: value_dim says that the values are a part of the keys and takes the place of v")
		case k.node == nil:
			return &value{t: t}, nil
		}
		return t.made(t.b.AttentionLatent(a.q.node, k.node, n, attr, allowed...))
	}
	v, err := keyOrValue("v", a.v)
	if err != nil {
		return nil, err
	}
	if k.node == nil || v.node == nil {
		return &value{t: t}, nil
	}
	return t.made(t.b.Attention(a.q.node, k.node, v.node, attr, allowed...))
}

// allowedOf reads allowed=; ok is false where its value is unknown.
func allowedOf(v starlark.Value, attr *graph.AttentionAttr) (nodes []*graph.Node, ok bool, err error) {
	if isNone(v) {
		return nil, true, nil
	}
	x, err := asValue(v)
	if err != nil {
		return nil, false, fmt.Errorf("attention: allowed: %w", err)
	}
	attr.Allowed = true
	return []*graph.Node{x.node}, x.node != nil, nil
}
