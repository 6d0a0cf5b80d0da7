package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docDot = `dot(x, y)
Products of vectors with vectors: out[.., i] = Σ_k x[.., k] · y[.., i, k]. x [.., d] and y [.., n, d] give [.., n]; where y is [n, d], it belongs to all vectors of x.
With a y that is the same for every token (made of param) it is a matrix that the specification computes: heads times projected positions.
- x: a value [.., d].
- y: a value [.., n, d] with the same axes before, or [n, d].
Errors: other axes.
`

func doDot(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, y *value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "y", &y); err != nil {
		return nil, err
	}
	return t.apply(graph.OpDot, &graph.DotAttr{}, x, y)
}

const docDistanceBias = `distance_bias(buckets, query=None, key=None)
A bias that depends on the distance and on the query or the key, for attention(…, bias=): key j adds query_i[h, b] + key_j[h, b] to the score of query i, where b
is the bucket of j − i. So are said: relative positions that multiply the query (Shaw et al. 2018: query = dot(q, keys of positions)), or the key as well
(disentangled attention, He et al. 2021: key = dot(k, queries of positions)), and numbers for buckets that a product of the token makes.
- buckets: a list of an odd number of whole numbers: the bucket of each distance j − i = −L … L; what is farther away has that of the end.
- query: a value [H, B] of the query's token, scaled as the score is.
- key: a value [H, B] of the key's token; with the mask "full" only.
Errors: buckets that are none of the B, another number of heads.
`

// doDistanceBias names numbers that tokens add to scores by distance.
func doDistanceBias(_ *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var buckets starlark.Iterable
	var query, key starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "buckets", &buckets, "query?", &query, "key?", &key); err != nil {
		return nil, err
	}
	r := &distanceValue{known: true}
	i := buckets.Iterate()
	defer i.Done()
	for item := starlark.Value(nil); i.Next(&item); {
		b, err := starlark.AsInt32(item)
		if err != nil {
			return nil, fmt.Errorf("distance_bias: buckets is a list of whole numbers, got %s", cut(item.String()))
		}
		r.buckets = append(r.buckets, int32(b))
	}
	for k, v := range []starlark.Value{query, key} {
		if isNone(v) {
			continue
		}
		x, err := asValue(v)
		if err != nil {
			return nil, fmt.Errorf("distance_bias: %w", err)
		}
		r.known = r.known && x.node != nil
		r.tables[k] = x.node
	}
	if isNone(query) && isNone(key) {
		return nil, fmt.Errorf("distance_bias: neither query nor key has numbers; a bias by distance alone is relative_bias")
	}
	return r, nil
}

// distanceValue is what distance_bias and counted_bias make.
type distanceValue struct {
	buckets []int32
	tables  [2]*graph.Node // of the query and of the key, or nil
	known   bool
	counted bool // of counted_bias, which has no buckets
}

func (r *distanceValue) String() string       { return "distance_bias" }
func (r *distanceValue) Type() string         { return "distance_bias" }
func (r *distanceValue) Freeze()              {}
func (r *distanceValue) Truth() starlark.Bool { return true }
func (r *distanceValue) Hash() (uint32, error) {
	return 0, fmt.Errorf("a distance_bias cannot be a key")
}

// set puts the bias into the attributes of an attention and gives its inputs.
func (r *distanceValue) set(a *graph.AttentionAttr) (nodes []*graph.Node) {
	a.Counted = r.counted
	a.Buckets, a.ByQuery, a.ByKey = r.buckets, r.tables[0] != nil, r.tables[1] != nil
	for _, n := range r.tables {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
