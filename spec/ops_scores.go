package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docCountedBias = `counted_bias(numbers)
A bias by positions that gates count, for attention(…, bias=) (contextual position encoding, Golovneva et al. 2024): with x_j the score of key j, its position is
p_j = Σ σ(x_k) over the keys k seen from j to the newest, at most P − 1; added to x_j are the query's numbers at p_j, those of two whole positions by the straight line between them.
- numbers: a value [H, P] of the query's token: dot(q, param(EMBEDDINGS)) with embeddings of positions [P, d], or [H, P, d].
Errors: with the mask "full", a score that is no softmax, slopes, first or allowed.
`

// doCountedBias names numbers of positions that gates count.
func doCountedBias(_ *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	if err := starlark.UnpackArgs(name, args, kwargs, "numbers", &x); err != nil {
		return nil, err
	}
	return &distanceValue{counted: true, tables: [2]*graph.Node{x.node, nil}, known: x.node != nil}, nil
}

// faded makes the gates of fade= a component of the keys, beside which queries
// have a 0; ok is false where an operand is unknown.
func (t *tracer) faded(a *attentionArgs) (ok bool, err error) {
	if isNone(a.fade) {
		return true, nil
	}
	if a.q.node == nil {
		return false, nil
	}
	if again, is := a.fade.(starlark.Bool); is {
		if isNone(a.cache) || !bool(again) {
			return false, fmt.Errorf("attention: fade is a value [key heads]; True goes with cache=, whose keys have it")
		}
	} else if ok, err := t.fadedKeys(a); err != nil || !ok {
		return false, err
	}
	if len(a.q.node.Shape) != 2 {
		return false, fmt.Errorf("attention: queries are [heads, d], got %v", a.q.node.Shape)
	}
	zero, err := t.b.Const(make([]float64, a.q.node.Shape[0]), []int{a.q.node.Shape[0], 1})
	if err != nil {
		return false, err
	}
	q, err := t.b.Concat(1, a.q.node, zero)
	a.q = &value{t: t, node: q}
	return err == nil, err
}

// fadedKeys adds the gates to the keys.
func (t *tracer) fadedKeys(a *attentionArgs) (ok bool, err error) {
	gate, err := asValue(a.fade)
	if err != nil {
		return false, fmt.Errorf("attention: fade: %w", err)
	}
	k, err := keyOrValue("k", a.k)
	if err != nil || k.node == nil || gate.node == nil {
		return false, err
	}
	if len(k.node.Shape) != 2 || gate.node.Width() != k.node.Shape[0] {
		return false, fmt.Errorf("attention: fade is one number a key head, for keys %v, got %v", k.node.Shape, gate.node.Shape)
	}
	g, err := t.b.Reshape(gate.node, []int{k.node.Shape[0], 1})
	if err != nil {
		return false, err
	}
	both, err := t.b.Concat(1, k.node, g)
	a.k = &value{t: t, node: both}
	return err == nil, err
}

// fading is the number of components that fade= adds to keys and queries.
func fading(a graph.AttentionAttr) int {
	if a.Faded {
		return 1
	}
	return 0
}

// scored reads score= and score_bias=; nodes are the inputs that they add.
func (t *tracer) scored(a attentionArgs, attr *graph.AttentionAttr) (nodes []*graph.Node, ok bool, err error) {
	if a.score != "softmax" {
		attr.Score = a.score
	}
	if isNone(a.scoreBias) {
		return nil, true, nil
	}
	if attr.Score == "" {
		return nil, false, fmt.Errorf("attention: a softmax cancels score_bias; it goes with another score")
	}
	if _, is := a.bias.(*distanceValue); is {
		return nil, false, fmt.Errorf("attention: score_bias beside distance_bias: add it to the query's numbers")
	}
	n, err := t.rate(a.scoreBias, a.q.node.Shape)
	if err != nil || n == nil {
		return nil, false, err
	}
	if heads := a.q.node.Shape; n.Width() == 1 && len(heads) > 0 && heads[0] > 1 { // one number for all heads
		zeros, err := t.repeated(starlark.MakeInt(0), heads[0])
		if err != nil {
			return nil, false, err
		}
		if n, err = t.b.Reshape(n, []int{1}); err == nil {
			n, err = t.b.Binary("add", n, zeros)
		}
		if err != nil {
			return nil, false, err
		}
	}
	if n, err = t.b.Reshape(n, []int{n.Width(), 1}); err != nil {
		return nil, false, err
	}
	attr.Buckets, attr.ByQuery = []int32{0}, true // one number, whatever the distance
	return []*graph.Node{n}, true, nil
}
