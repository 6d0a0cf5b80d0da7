package graph

import (
	"fmt"
	"slices"
)

// HeadLinearAttr multiplies each head of x [H, d] by a matrix of its own:
// y[h] = W[h]·x[h]. W is [H, e, d], the result [H, e].
type HeadLinearAttr struct{ W *Weight }

// DotAttr multiplies vectors with vectors: out[.., i] = Σ_k x[.., k]·y[.., i, k].
// x is [.., d] and y [.., n, d] with the same axes before, or [n, d].
type DotAttr struct{}

func inferDot(x, y []int) ([]int, error) {
	n, m := len(x), len(y)
	if n < 1 || m < 2 || x[n-1] != y[m-1] || m != 2 && !slices.Equal(x[:n-1], y[:m-2]) {
		return nil, fmt.Errorf("dot: takes [.., d] and [.., n, d] with the same axes before, or [n, d]; got %v and %v", x, y)
	}
	return append(slices.Clone(x[:n-1]), y[m-2]), nil
}

// IndexAttr chooses the positions that attention is to see (the lightning
// indexer of DeepSeek-AI 2025, sparse attention). In: q [H, d], k [d], which is
// kept for every position, w [H]. Position s scores
//
//	Σ_h w[h]·max(0, q[h]·k_s)
//
// and the TopK best of the positions up to the row's own are chosen, the
// earlier of two with equal scores. The result [TopK] lists them ascending, as
// numbers, then −1: all of them where there are no more than TopK.
//
// With Block, whole blocks of so many positions are chosen (block sparse
// attention): a block scores the largest of its positions up to the row's own,
// TopK counts blocks, the Local last ones are always among them, and the result
// is [TopK·Block]. With Signed a score is Σ_h w[h]·(q[h]·k_s).
//
// With Closed the keys stand for blocks (compressed sparse attention): only
// complete blocks are chosen, each by the score of its last position alone. The
// Local last blocks are those of the row's own position, as without Closed
// (mixture of block attention, Lu et al. 2025).
// With Tail the positions behind the last complete block are listed as well, at
// the end of [TopK·Block + Block − 1]. With Ends a chosen block is listed by its
// last position alone, [TopK]. What is not filled is −1.
type IndexAttr struct {
	Cache, TopK        int
	Block, Local       int
	Signed             bool
	Closed, Tail, Ends bool
}

// Size is how many positions form what is chosen: Block, or 1.
func (a *IndexAttr) Size() int { return max(a.Block, 1) }

// Listed is the length of the result.
func (a *IndexAttr) Listed() int {
	switch {
	case a.Ends:
		return a.TopK
	case a.Tail:
		return a.TopK*a.Size() + a.Size() - 1
	}
	return a.TopK * a.Size()
}

// ExpertLinearAttr multiplies by a matrix of each chosen expert (mixtures of
// attention heads; Zhang et al. 2022). In: x [h], or [k, h] with a row for each
// of the k chosen, and the route. W is [E, e, h]. The result is [k, e]; with Sum
// it is their sum, each times its weight, [e].
type ExpertLinearAttr struct {
	W   *Weight
	Sum bool
}

func inferExpertLinear(g *Graph, a *ExpertLinearAttr, in []*Node) ([]int, error) {
	x, route := in[0].Shape, in[1]
	if route.Op != OpRoute {
		return nil, fmt.Errorf("expert_linear: takes a value and a route, got %s", route.Op)
	}
	k, scores := route.Width(), g.Nodes[route.In[0]].Shape[0]
	if len(x) == 0 || len(x) > 2 || len(x) == 2 && x[0] != k || len(a.W.Shape) != 3 || a.W.Shape[0] != scores || a.W.Shape[2] != x[len(x)-1] {
		return nil, fmt.Errorf("expert_linear: the input %v of %d chosen of %d experts does not fit the weight %v of %v", x, k, scores, a.W.Shape, a.W)
	}
	if a.Sum {
		return []int{a.W.Shape[1]}, nil
	}
	return []int{k, a.W.Shape[1]}, nil
}

func inferHeadLinear(a *HeadLinearAttr, x *Node) ([]int, error) {
	if len(x.Shape) != 2 || len(a.W.Shape) != 3 || a.W.Shape[0] != x.Shape[0] || a.W.Shape[2] != x.Shape[1] {
		return nil, fmt.Errorf("head_linear: the input %v needs a weight [heads, out, in] of as many heads, got %v of %v", x.Shape, a.W.Shape, a.W)
	}
	return []int{x.Shape[0], a.W.Shape[1]}, nil
}

func inferIndex(g *Graph, a *IndexAttr, in []*Node) ([]int, error) {
	q, k, w := in[0].Shape, in[1], in[2].Shape
	switch {
	case len(q) != 2 || k.Width() != q[1] || !slices.Equal(w, q[:1]):
		return nil, fmt.Errorf("index_topk: takes q [heads, d], k [d] and w [heads], got %v, %v and %v", q, k.Shape, w)
	case a.Block < 0 || a.Block > maxChosen || a.Local < 0 || a.Local > 0 && (a.Block == 0 || a.Local > a.TopK):
		return nil, fmt.Errorf("index_topk: %d positions cannot form a block, or the last %d of %d blocks cannot be chosen", a.Block, a.Local, a.TopK)
	case a.TopK < 1 || a.TopK > maxChosen/a.Size():
		return nil, fmt.Errorf("index_topk: cannot choose %d positions, expected 1 to %d", a.TopK, maxChosen/a.Size())
	case (a.Tail || a.Ends) && !a.Closed:
		return nil, fmt.Errorf("index_topk: tail and ends are said of closed blocks")
	case a.Closed && a.Block == 0:
		return nil, fmt.Errorf("index_topk: closed blocks need their size, block")
	case a.Closed && (a.Tail && a.Ends || a.Local > 0 && (a.Tail || a.Ends)):
		return nil, fmt.Errorf("index_topk: of local, tail and ends one at most is said of closed blocks")
	case a.Cache < 0 || a.Cache >= len(g.Caches) || g.Caches[a.Cache].Kind != CacheRows || g.Caches[a.Cache].KeyDim != q[1]:
		return nil, fmt.Errorf("index_topk: cache %d keeps no rows of %d values", a.Cache, q[1])
	}
	return []int{a.Listed()}, nil
}

// maxChosen is the number of positions that an index may choose: they are
// exact as float32, and a row of them stays small.
const maxChosen = 1 << 20

// HeadLinear multiplies each head of x [H, d] by its matrix of w [H, e, d].
func (b *Builder) HeadLinear(x *Node, w *Weight) (*Node, error) {
	return b.Add(OpHeadLinear, &HeadLinearAttr{W: w}, nil, x)
}

// IndexTopK appends a cache of rows for k [d] and chooses positions by q [H, d]
// and w [H], as a says; its cache is filled in.
func (b *Builder) IndexTopK(q, k, w *Node, a IndexAttr) (*Node, error) {
	at := len(b.G.Caches)
	b.G.Caches = append(b.G.Caches, Cache{Kind: CacheRows, KeyDim: k.Width(), Layer: b.Layer})
	a.Cache = at
	return b.stateful(OpIndex, &a, at, q, k, w)
}
