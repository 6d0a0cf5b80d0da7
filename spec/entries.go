package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// entries runs what a specification defines: model(c), or encoder(c) and then
// decoder(c, memory), whose memory is what the encoder returned.
func (t *tracer) entries(file string, globals starlark.StringDict) (starlark.Value, error) {
	model, _ := globals["model"].(starlark.Callable)
	encoder, _ := globals["encoder"].(starlark.Callable)
	decoder, _ := globals["decoder"].(starlark.Callable)
	switch {
	case model != nil && encoder == nil && decoder == nil:
		out, err := starlark.Call(t.thread, model, starlark.Tuple{t.config.root()}, nil)
		return out, t.stopped(err)
	case model == nil && encoder != nil && decoder != nil:
		return t.encoderDecoder(file, encoder, decoder)
	}
	return nil, t.fail(fmt.Errorf("%s: it defines no function model(c), nor both encoder(c) and decoder(c, memory)", file))
}

func (t *tracer) stopped(err error) error {
	if err != nil {
		return t.fail(err)
	}
	return nil
}

func (t *tracer) encoderDecoder(file string, encoder, decoder starlark.Callable) (starlark.Value, error) {
	t.mask = "causal" // of a decoder that answers
	t.b.Memory = true
	memory, err := starlark.Call(t.thread, encoder, starlark.Tuple{t.config.root()}, nil)
	t.b.Memory = false
	if err != nil {
		return nil, t.fail(err)
	}
	v, ok := memory.(*value)
	if !ok {
		return nil, t.fail(fmt.Errorf("%s: encoder(c) returns a value, got %s", file, memory.Type()))
	}
	if v.node != nil && v.node.Rows != graph.RowsMemory {
		return nil, t.fail(fmt.Errorf("%s: encoder(c) returns rows of the source, got the same row for all", file))
	}
	t.b.Layer = t.layers
	out, err := starlark.Call(t.thread, decoder, starlark.Tuple{t.config.root(), v}, nil)
	if err != nil {
		return nil, t.fail(err)
	}
	if v, ok := out.(*value); ok && v.node != nil && v.node.Rows == graph.RowsMemory {
		return nil, t.fail(fmt.Errorf("%s: decoder(c, memory) returns rows of the source, expected rows of its own tokens", file))
	}
	return out, nil
}

// relativeValue is a bias by the distance of key and query, as relative_bias makes it.
type relativeValue struct {
	w        *graph.Weight // nil where a reported problem kept it from being found
	farthest int
	twoSided bool
}

func (r *relativeValue) String() string       { return "relative_bias" }
func (r *relativeValue) Type() string         { return "relative_bias" }
func (r *relativeValue) Freeze()              {}
func (r *relativeValue) Truth() starlark.Bool { return true }
func (r *relativeValue) Hash() (uint32, error) {
	return 0, fmt.Errorf("a relative bias cannot be a key")
}

const docRelativeBias = `relative_bias(table, max_distance=128, two_sided=False)
A bias by the distance of key and query (Raffel et al. 2020), for attention(…, bias=) and block_attention. Of B buckets (two_sided: B/2 for keys before the query and B/2 for keys
after it; else keys after it share bucket 0), half hold one distance each, the others grow logarithmically up to max_distance.
- table: a tensor [B, H], which layers may share.
- max_distance: from here on all keys share the last bucket.
- two_sided: for encoders.
Errors: a table that is not [buckets, heads], a max_distance within the buckets of one distance each.
`

// doRelativeBias names a table [buckets, heads] of biases by distance.
func doRelativeBias(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var table starlark.Value
	r := &relativeValue{farthest: 128}
	if err := starlark.UnpackArgs(name, args, kwargs, "table", &table, "max_distance?", &r.farthest, "two_sided?", &r.twoSided); err != nil {
		return nil, err
	}
	w, err := t.named(table)
	if err != nil {
		return nil, err
	}
	r.w = w.w
	return r, nil
}

// biasOf reads an argument that is a relative bias or None; ok is false where
// its table is unknown.
func biasOf(what string, v starlark.Value) (r relativeValue, ok bool, err error) {
	if isNone(v) {
		return r, true, nil
	}
	b, is := v.(*relativeValue)
	if !is {
		return r, false, fmt.Errorf("%s is the result of relative_bias (of attention also distance_bias or counted_bias), got %s", what, v.Type())
	}
	return *b, b.w != nil, nil
}

const docBlockSum = `block_sum(x, size)
The sum over the block that a row of the encoder belongs to: rows 0 … size−1 are the first; what does not fill a block at the end belongs to the last one. A source
of fewer rows than size has no block, and the sums are 0.
- x: rows of the encoder, any shape.
- size: rows of a block.
Errors: rows of a decoder.
`

func doBlockSum(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var size int
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "size", &size); err != nil {
		return nil, err
	}
	return t.apply(graph.OpBlockSum, &graph.BlockSumAttr{Size: size}, x)
}

const docBlockAttention = `block_attention(q, k, v, block_k, block_v, size, scale, window=None, bias=None, block_bias=None)
Attention of an encoder's rows to the rows near them and to one key and value of every block, in one softmax (transient global attention, Guo et al. 2022). q [H, d], k [K, d],
v [K, e] give [H, e].
- q, k, v: of the rows.
- block_k, block_v: of the blocks, as rows: any row of a block holds what belongs to the block (see block_sum).
- size: rows of a block, as in block_sum.
- scale: a number.
- window: a row sees rows j with |i − j| ≤ window; None: all.
- bias: a two-sided relative_bias for rows, by j − i.
- block_bias: the same for blocks, by the distance in blocks.
Errors: rows of a decoder, heads or widths that do not fit, biases that are one-sided or of different max_distance.
`

// doBlockAttention is attention to near rows and to one key of each block.
func doBlockAttention(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var q, k, v, bk, bv *value
	var scale number
	var window, bias, side starlark.Value
	a := &graph.BlockAttnAttr{}
	err := starlark.UnpackArgs(name, args, kwargs, "q", &q, "k", &k, "v", &v, "block_k", &bk, "block_v", &bv, "size", &a.Size, "scale", &scale,
		"window?", &window, "bias?", &bias, "block_bias?", &side)
	if err != nil {
		return nil, err
	}
	a.Scale = float64(scale)
	if a.Window, err = optionalInt("block_attention: window", window); err != nil {
		return nil, err
	}
	near, ok, err := biasOf("block_attention: bias", bias)
	if err != nil {
		return nil, err
	}
	far, ok2, err := biasOf("block_attention: block_bias", side)
	if err != nil {
		return nil, err
	}
	if !ok || !ok2 || q.node == nil || k.node == nil {
		return &value{t: t}, nil
	}
	a.Relative, a.Side, a.Farthest = near.w, far.w, max(near.farthest, far.farthest)
	if near.w != nil && !near.twoSided || far.w != nil && !far.twoSided || near.w != nil && far.w != nil && near.farthest != far.farthest {
		return nil, fmt.Errorf("block_attention: its biases are two-sided and of one max_distance")
	}
	if len(q.node.Shape) == 2 && len(k.node.Shape) == 2 {
		a.Heads, a.KVHeads = q.node.Shape[0], k.node.Shape[0]
	}
	return t.apply(graph.OpBlockAttn, a, q, k, v, bk, bv)
}
