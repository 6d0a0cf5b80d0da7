package graph

import (
	"fmt"
	"math"
	"slices"
)

func inferAttention(g *Graph, a *AttentionAttr, in []*Node) ([]int, Rows, error) {
	if a.Cache < 0 || a.Cache >= len(g.Caches) || g.Caches[a.Cache].Kind != CacheKV && g.Caches[a.Cache].Kind != CacheLatent {
		return nil, 0, fmt.Errorf("attention: cache %d does not exist or keeps no keys", a.Cache)
	}
	c := g.Caches[a.Cache]
	in, more, err := attentionInputs(a, &c, in)
	if err != nil {
		return nil, 0, err
	}
	rows, err := attentionRows(a, c, in)
	if err != nil {
		return nil, 0, err
	}
	q := in[0].Shape
	if q[1] != c.KeyDim || c.Heads == 0 || q[0]%c.Heads != 0 {
		return nil, 0, fmt.Errorf("attention: queries %v do not fit keys [%d, %d]: the width must be equal, the heads a multiple", q, c.Heads, c.KeyDim)
	}
	for i, d := range []int{c.KeyDim, c.ValueDim} {
		if i+1 < len(in) && !slices.Equal(in[i+1].Shape, []int{c.Heads, d}) {
			return nil, 0, fmt.Errorf("attention: %s %v do not fit [%d, %d]", [2]string{"keys", "values"}[i], in[i+1].Shape, c.Heads, d)
		}
	}
	if a.Heads != q[0] || a.KVHeads != c.Heads {
		return nil, 0, fmt.Errorf("attention: states %d of %d heads, got %d of %d", a.Heads, a.KVHeads, q[0], c.Heads)
	}
	if err := knownMask(a); err != nil {
		return nil, 0, err
	}
	if err := inferBuckets(a, c, q[0], more); err != nil {
		return nil, 0, err
	}
	if a.Allowed && (a.Mask != MaskCausal || a.Window != 0 || a.Relative != nil) {
		return nil, 0, fmt.Errorf("attention: allowed positions go with the mask %q, no window and no bias by distance", MaskCausal)
	}
	if err := expect("attention: sinks", a.Sinks, q[0]); err != nil {
		return nil, 0, err
	}
	if a.Slopes != nil && len(a.Slopes) != q[0] {
		return nil, 0, fmt.Errorf("attention: %d slopes for %d heads", len(a.Slopes), q[0])
	}
	if err := inferReach(a, c); err != nil {
		return nil, 0, err
	}
	if err := inferScore(a); err != nil {
		return nil, 0, err
	}
	return []int{q[0], c.ValueDim + open(a.Open)}, rows, relative("attention", a.Relative, a.Farthest, q[0], a.TwoSided)
}

// knownMask refuses masks that are none.
func knownMask(a *AttentionAttr) error {
	switch {
	case a.Mask != MaskCausal && a.Mask != MaskChunk && a.Mask != MaskFull && a.Mask != MaskBefore:
		return fmt.Errorf("attention: there is no mask %q; the masks are %q, %q, %q and %q", a.Mask, MaskCausal, MaskFull, MaskChunk, MaskBefore)
	case a.Window < 0:
		return fmt.Errorf("attention: a window of %d keys is none", a.Window)
	case a.Mask == MaskChunk && a.Window == 0:
		return fmt.Errorf("attention: the mask %q needs window, the tokens of a block", MaskChunk)
	}
	return nil
}

// inferBuckets checks what is added to the scores by bucket of the distance.
func inferBuckets(a *AttentionAttr, c Cache, heads int, tables []*Node) error {
	if a.Counted {
		return inferCounted(a, heads, tables)
	}
	if a.Buckets == nil && len(tables) == 0 {
		return nil
	}
	if len(a.Buckets)%2 == 0 || len(a.Buckets) > 2*maxDistance+1 || len(tables) == 0 {
		return fmt.Errorf("attention: %d buckets with %d tables; there is one bucket for each distance −L … L, and a table of the query or of the key", len(a.Buckets), len(tables))
	}
	for _, t := range tables {
		if len(t.Shape) != 2 || t.Shape[0] != heads {
			return fmt.Errorf("attention: numbers by distance are [%d heads, buckets], got %v", heads, t.Shape)
		}
		for _, b := range a.Buckets {
			if b < 0 || int(b) >= t.Shape[1] {
				return fmt.Errorf("attention: bucket %d is outside the %d numbers of a head", b, t.Shape[1])
			}
		}
	}
	switch {
	case a.Allowed:
		return fmt.Errorf("attention: positions that are chosen (allowed) go with no bias, and so with no score_bias; slopes and softcap may be said")
	case a.Cross && len(a.Buckets) > 1:
		return fmt.Errorf("attention: positions of two sequences have no distance, so cross attention takes no bias by distance")
	case a.ByKey && (a.Mask != MaskFull || a.Shared || c.Kind != CacheKV):
		return fmt.Errorf("attention: numbers of the key go with the mask %q and keys of its own", MaskFull)
	}
	return nil
}

// attentionInputs checks the number and kind of the inputs and returns those
// that are heads: q, then k and v where the node fills its cache; and those that
// are added by distance.
func attentionInputs(a *AttentionAttr, c *Cache, in []*Node) (heads, tables []*Node, err error) {
	n := 3
	if c.Kind == CacheLatent {
		if n = 2; c.ValueDim > c.KeyDim || c.Memory {
			return nil, nil, fmt.Errorf("attention: values of %d are no part of keys of %d of the sequence's own", c.ValueDim, c.KeyDim)
		}
	}
	if a.Shared {
		n = 1
	}
	if len(in) == 0 || len(in[0].Shape) != 2 {
		return nil, nil, fmt.Errorf("attention: takes queries [heads, d] first")
	}
	for i, by := range []bool{a.ByQuery, a.ByKey} {
		if by && len(in) > n {
			if !alongside(in[n], in[0]) {
				return nil, nil, fmt.Errorf("attention: the numbers by distance are rows of the queries' own tokens")
			}
			tables = append(tables, in[n])
			in = slices.Delete(slices.Clone(in), n, n+1)
		} else if by {
			return nil, nil, fmt.Errorf("attention: the numbers of the %s by distance are missing", [2]string{"query", "key"}[i])
		}
	}
	if a.SinkOf {
		if len(in) <= n || in[n].Width() != in[0].Shape[0] || !alongside(in[n], in[0]) {
			return nil, nil, fmt.Errorf("attention: sinks made by the token are one number a head, [%d]", in[0].Shape[0])
		}
		if a.Sinks != nil {
			return nil, nil, fmt.Errorf("attention: sinks are stored or made by the token, not both")
		}
		in = slices.Delete(slices.Clone(in), n, n+1)
	}
	if a.Allowed {
		if len(in) != n+1 || in[n].Op != OpIndex {
			return nil, nil, fmt.Errorf("attention: the allowed positions are what index_topk returns")
		}
		in = in[:n]
	}
	if len(in) != n {
		return nil, nil, fmt.Errorf("attention: takes q, k, v, or q and k where the values are a part of the keys, or q alone on a shared cache; got %d inputs", len(in))
	}
	for _, x := range in {
		if len(x.Shape) != 2 {
			return nil, nil, fmt.Errorf("attention: takes [heads, d], got %v", x.Shape)
		}
	}
	return in, tables, nil
}

// alongside says that x has a row where the attention of q has one: queries that
// are the same for all tokens are asked by each of them.
func alongside(x, q *Node) bool {
	return x.Rows == q.Rows || x.Rows == RowsConst || x.Rows == RowsToken && q.Rows == RowsConst
}

// attentionRows says whose rows an attention computes: those of its queries.
func attentionRows(a *AttentionAttr, c Cache, in []*Node) (Rows, error) {
	rows := RowsToken
	if in[0].Rows == RowsMemory {
		rows = RowsMemory
	}
	for _, n := range in[1:] {
		if n.Rows != RowsConst && (n.Rows == RowsMemory) != c.Memory {
			return 0, fmt.Errorf("attention: keys and values must both be rows of the encoder, or neither")
		}
	}
	switch {
	case rows == RowsMemory && !c.Memory:
		return 0, fmt.Errorf("attention: queries of the encoder cannot see rows of the decoder")
	case a.Cross != (c.Memory && rows == RowsToken):
		return 0, fmt.Errorf("attention: cross attention has queries of tokens and keys of the encoder's rows")
	case a.Cross && (a.Mask != MaskFull || a.Window != 0 || !c.Kept):
		return 0, fmt.Errorf("attention: cross attention sees all of the encoder's rows, and keeps them")
	case a.Faded && (c.Memory || c.Kind != CacheKV):
		return 0, fmt.Errorf("attention: gates fade keys of the sequence's own tokens, with values of their own")
	case a.Shared && c.Memory && !c.Kept:
		return 0, fmt.Errorf("attention: the shared cache is not kept")
	case a.Cross && (a.Relative != nil || a.Slopes != nil):
		return 0, fmt.Errorf("attention: positions of two sequences have no distance, so cross attention takes no bias by distance")
	}
	return rows, nil
}

// relative checks a table of biases by distance.
func relative(what string, table *Weight, farthest, heads int, twoSided bool) error {
	if table == nil {
		return nil
	}
	if len(table.Shape) != 2 || table.Shape[1] != heads {
		return fmt.Errorf("%s: the relative bias needs a table [buckets, %d], got %v of %v", what, heads, table.Shape, table)
	}
	n := table.Shape[0]
	if twoSided {
		n /= 2
	}
	if n < 2 || farthest <= n/2 || farthest > maxDistance {
		return fmt.Errorf("%s: %d buckets of relative positions do not fit a farthest distance of %d: it must be more than %d and at most %d", what, table.Shape[0], farthest, n/2, maxDistance)
	}
	return nil
}

// maxDistance bounds the table of biases that is unrolled by distance.
const maxDistance = 1 << 20

// Bucket is the row of a relative bias's table for the offset of a key from its
// query: half of the buckets hold one distance each, the others grow
// logarithmically up to farthest (Raffel et al. 2020). Computed in float32, as
// the implementations do that such tables were trained with.
func Bucket(offset, buckets, farthest int, twoSided bool) int {
	base, n := 0, buckets
	if twoSided {
		n /= 2
		if offset > 0 {
			base = n
		}
		offset = max(offset, -offset)
	} else {
		offset = max(-offset, 0)
	}
	exact := n / 2
	if offset < exact {
		return base + offset
	}
	x := float32(math.Log(float64(float32(offset) / float32(exact))))
	x = x / float32(math.Log(float64(farthest)/float64(exact)))
	return base + min(n-1, exact+int(float32(x*float32(n-exact))))
}

func inferBlockAttn(a *BlockAttnAttr, in []*Node) ([]int, error) {
	for _, n := range in {
		if n.Rows != RowsMemory || len(n.Shape) != 2 {
			return nil, fmt.Errorf("block_attention: takes [heads, d] in rows of the encoder, got %v", n.Shape)
		}
	}
	q, k, v := in[0].Shape, in[1].Shape, in[2].Shape
	if q[1] != k[1] || k[0] != v[0] || k[0] == 0 || q[0]%k[0] != 0 {
		return nil, fmt.Errorf("block_attention: queries %v, keys %v and values %v do not fit each other", q, k, v)
	}
	if !slices.Equal(k, in[3].Shape) || !slices.Equal(v, in[4].Shape) {
		return nil, fmt.Errorf("block_attention: keys %v and values %v of blocks are not shaped as those of rows, %v and %v", in[3].Shape, in[4].Shape, k, v)
	}
	if a.Heads != q[0] || a.KVHeads != k[0] || a.Size < 1 || a.Window < 0 {
		return nil, fmt.Errorf("block_attention: %d of %d heads, blocks of %d, window %d do not fit queries %v and keys %v", a.Heads, a.KVHeads, a.Size, a.Window, q, k)
	}
	for _, t := range []*Weight{a.Relative, a.Side} {
		if err := relative("block_attention", t, a.Farthest, q[0], true); err != nil {
			return nil, err
		}
	}
	return []int{q[0], v[1]}, nil
}
