package graph

import (
	"fmt"
	"slices"
)

// JoinAttr makes one softmax of several. In: open attentions of the same
// queries, [H, e+1] each, whose heads end with the logarithm of the sum that
// their weights were divided by (see AttentionAttr.Open). With s_i the last
// component of input i and y_i the others, the result [H, e] is
//
//	Σ_i exp(s_i)·y_i / Σ_i exp(s_i)
//
// added in the order of the inputs: attention to all that any of them saw. A
// score with its value is an open attention to one key.
type JoinAttr struct{}

// Nothing is the logarithm of the sum of an attention that sees nothing: the
// lowest float32, so that nothing but finite numbers flows.
const Nothing = -0x1.fffffep127

func inferJoin(rows Rows, in []*Node) ([]int, error) {
	if len(in) == 0 || rows == RowsConst {
		return nil, fmt.Errorf("join: takes open attentions of tokens, got %d values that are the same for all tokens", len(in))
	}
	for _, n := range in {
		if len(n.Shape) != 2 || n.Shape[1] < 2 || !slices.Equal(n.Shape, in[0].Shape) {
			return nil, fmt.Errorf("join: takes open attentions, [heads, e + 1] each, of equal shape, got %v and %v", in[0].Shape, n.Shape)
		}
		if a, ok := n.Attr.(*AttentionAttr); ok && a.Score != "" {
			return nil, fmt.Errorf("join: weighs softmaxes, and the score %q is none", a.Score)
		}
	}
	return []int{in[0].Shape[0], in[0].Shape[1] - 1}, nil
}

// StoredAttr is attention to n keys and values that are the same for all
// tokens: learned prefixes, made of stored tensors. In: q [H, dk], k [n, K, dk]
// and v [n, K, dv]. All of them are seen, and nothing is kept of a sequence.
type StoredAttr struct {
	Scale   float64
	Softcap float64 // 0: none
	Tile    bool
	Open    bool
}

func inferStored(a *StoredAttr, in []*Node) ([]int, error) {
	q, k, v := in[0].Shape, in[1].Shape, in[2].Shape
	switch {
	case in[1].Rows != RowsConst || in[2].Rows != RowsConst || in[0].Rows == RowsConst:
		return nil, fmt.Errorf("attention: stored keys and values are the same for all tokens, and the queries are not")
	case len(q) != 2 || len(k) != 3 || len(v) != 3 || k[0] != v[0] || k[1] != v[1] || k[2] != q[1] || k[0] == 0 || k[1] == 0 || k[2] == 0 || v[2] == 0 || q[0]%k[1] != 0:
		return nil, fmt.Errorf("attention: queries %v, stored keys %v and values %v do not fit: [H, d], [n, K, d] and [n, K, e], H a multiple of K", q, k, v)
	case k[0] > maxChosen:
		return nil, fmt.Errorf("attention: %d stored keys are more than %d", k[0], maxChosen)
	case a.Softcap < 0:
		return nil, fmt.Errorf("attention: a softcap of %v", a.Softcap)
	}
	return []int{q[0], v[2] + open(a.Open)}, nil
}

// open is the number of components that an open attention adds to a head.
func open(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Join makes one softmax of open attentions.
func (b *Builder) Join(in ...*Node) (*Node, error) { return b.Add(OpJoin, &JoinAttr{}, nil, in...) }

// AttentionStored attends to keys k [n, K, dk] and values v [n, K, dv] that are
// the same for all tokens.
func (b *Builder) AttentionStored(q, k, v *Node, a StoredAttr) (*Node, error) {
	return b.Add(OpStored, &a, nil, q, k, v)
}

// maxPositions is beyond any position, and small enough to be added to one.
const maxPositions = 1 << 30

// inferReach checks what an attention sees beside its mask and window.
func inferReach(a *AttentionAttr, c Cache) error {
	switch {
	case a.First < 0 || a.First > maxChosen || a.Ask < 0 || a.Ask > maxChosen:
		return fmt.Errorf("attention: the first %d positions, or queries of the first %d, are no number of tokens from 0 to %d", a.First, a.Ask, maxChosen)
	case a.Sides != nil && (len(a.Sides) != 2 || min(a.Sides[0], a.Sides[1]) < 0 || max(a.Sides[0], a.Sides[1]) > maxPositions || a.Mask != MaskFull || a.Window != 0 || a.Cross):
		return fmt.Errorf("attention: a window of two sides, %v, goes with the mask %q over the sequence's own tokens", a.Sides, MaskFull)
	case (a.First > 0 || a.Ask > 0) && (a.Cross || a.Allowed):
		return fmt.Errorf("attention: the first positions are those of the sequence itself, and chosen positions take none beside them")
	case a.Every < 0 || a.Every > maxChosen || a.Every > 0 && (a.Mask != MaskCausal || a.Window != 0 || a.First+a.Ask > 0 || a.Allowed || a.Cross || c.Window > 0 || a.Relative != nil || a.Buckets != nil || a.Score != ""):
		return fmt.Errorf("attention: one key of every %d goes with the mask %q, no window, no chosen positions, no bias by distance and the softmax", a.Every, MaskCausal)
	case a.First > 0 && c.Window > 0 && a.First > c.First:
		return fmt.Errorf("attention: the shared cache keeps the first %d positions beside its window, the reader sees %d", c.First, a.First)
	}
	return nil
}
