package spec

import (
	"fmt"
	"reflect"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docJoin = `join(a, b, …)
One softmax over all that several attentions saw. Each is the result of attention(…, open=True) for the same queries, [H, e + 1]: e components of the weighted mean,
then s = log Σ exp(score). The result [H, e] is Σ exp(sᵢ)·aᵢ / Σ exp(sᵢ). Every source keeps its own keys, cache, window, mask and bias: join(attention(q, k, v,
open=True), attention(q, mk, mv, open=True)) attends to the text so far and to the encoder's memory at once. A single key by hand is one more: concat([v, score]), with
its score [H, 1] and value [H, e].
- a, b, …: open attentions of equal shape.
Errors: other shapes; values that are the same for all tokens, and nothing else.
`

// doJoin makes one softmax of open attentions.
func doJoin(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 || len(kwargs) > 0 {
		return nil, fmt.Errorf("join: takes open attentions: join(attention(…, open=True), …)")
	}
	var nodes []*graph.Node
	for i, a := range args {
		x, err := asValue(a)
		if err != nil {
			return nil, fmt.Errorf("join: argument %d: %w", i+1, err)
		}
		if x.node == nil {
			return &value{t: t}, nil
		}
		if at, ok := x.node.Attr.(*graph.AttentionAttr); ok && !at.Open {
			return nil, fmt.Errorf("join: argument %d is an attention whose softmax is done; say open=True", i+1)
		}
		nodes = append(nodes, x.node)
	}
	return t.made(t.b.Join(nodes...))
}

// tokenSinks reads sinks= where a value of the token gives them; ok is false
// where it is unknown.
func tokenSinks(v starlark.Value, attr *graph.AttentionAttr) (nodes []*graph.Node, ok bool) {
	x, is := v.(*value)
	if !is {
		return nil, true
	}
	attr.SinkOf = true
	return []*graph.Node{x.node}, x.node != nil
}

// attendStored adds attention to keys and values that are the same for all
// tokens; is says whether k and v are.
func (t *tracer) attendStored(a attentionArgs, attr graph.AttentionAttr) (out *value, is bool, err error) {
	k, isK := a.k.(*value)
	v, isV := a.v.(*value)
	if !isK || !isV || k.node == nil || v.node == nil || k.node.Rows != graph.RowsConst || v.node.Rows != graph.RowsConst || len(k.node.Shape) != 3 {
		return nil, false, nil
	}
	plain := graph.AttentionAttr{Scale: attr.Scale, Softcap: attr.Softcap, Tile: attr.Tile, Open: attr.Open, Mask: attr.Mask}
	if !isNone(a.allowed) || !isNone(a.valueDim) || attr.Mask == graph.MaskChunk || !reflect.DeepEqual(attr, plain) {
		return nil, true, fmt.Errorf("attention: stored keys have no positions: scale, softcap, tile and open are all that can be said of them (give sinks to the attention that they are joined with)")
	}
	out, err = t.made(t.b.AttentionStored(a.q.node, k.node, v.node, graph.StoredAttr{Scale: attr.Scale, Softcap: attr.Softcap, Tile: attr.Tile, Open: attr.Open}))
	return out, true, err
}

// windowOf reads window=: a number, or with the mask "full" a pair.
func windowOf(v starlark.Value, attr *graph.AttentionAttr) (err error) {
	pair, is := v.(starlark.Indexable)
	if _, text := v.(starlark.String); !is || text {
		attr.Window, err = optionalInt("attention: window", v)
		return err
	}
	if pair.Len() != 2 {
		return fmt.Errorf("attention: window is a number or [before, after], got %s", cut(v.String()))
	}
	attr.Sides = make([]int, 2)
	for i := range attr.Sides {
		if attr.Sides[i], err = optionalInt("attention: window", pair.Index(i)); err != nil {
			return err
		}
	}
	return nil
}
