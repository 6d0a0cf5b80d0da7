package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Scores of an attention pass through a softmax unless AttentionAttr.Score names
// something else, with x_j the score of key j, biases and cap included:
//
//	a function f of ScoreFuncs   Σ_j f(x_j)·v_j over the keys seen, not divided by anything
//	ScoreSticks                  Σ_j w_j·v_j,  w_j = σ(x_j)·Π_{j < k ≤ i, k seen} (1 − σ(x_k))
//
//	ScoreSparsemax, ScoreEntmax  Σ_j p_j·v_j,  p = [x − τ]₊, or [x/2 − τ]₊² with 1.5-entmax, where τ makes Σ p = 1
//
// The second breaks a stick, newest key first (Tan et al. 2024). When Open is
// set its heads end with the logarithm of what is left of the stick,
// Σ_k log(1 − σ(x_k)), 0 where nothing is seen.
//
// With Counted, ByQuery is set and Buckets is nil. The numbers t [H, P] of the
// query's row belong to positions 0 … P−1 that gates count (Golovneva et al.
// 2024): p_j = min(Σ_{j ≤ k ≤ i, k seen} σ(x_k), P − 1), and t at p_j, between
// two whole numbers by a straight line, is added to x_j; the x of the gates is
// that before the addition.

// With Faded, the last component of a key of one's own is the logarithm of a
// gate f, beside which queries have a 0, and Σ_{j < k ≤ i, k seen} log f_k is added
// to x_j (Lin et al. 2025).

// ScoreSticks is the score kind of stick-breaking attention.
const ScoreSticks = "stick_breaking"

// Sparse transformations in place of the softmax (Martins and Astudillo 2016;
// Peters, Niculae and Martins 2019).
const (
	ScoreSparsemax = "sparsemax"
	ScoreEntmax    = "entmax15"
)

// ScoreNone takes scores as they are for weights.
const ScoreNone = "none"

// ScoreFuncs are the functions that may make weights of scores: ScoreNone, and
// names of UnaryFuncs.
var ScoreFuncs = []string{ScoreNone, "sigmoid", "silu", "relu", "relu2", "square", "exp", "tanh", "softplus", "gelu", "gelu_tanh"}

// maxCounted bounds the positions that gates count.
const maxCounted = 1 << 16

func inferScore(a *AttentionAttr) error {
	if a.Faded && (a.Mask == MaskFull || a.Allowed || a.First > 0 || a.Relative != nil || a.Buckets != nil || a.Counted) {
		return fmt.Errorf("attention: gates that fade keys go with the masks %q, %q and %q, and no bias by distance but slopes", MaskCausal, MaskBefore, MaskChunk)
	}
	if a.Score == "" {
		return nil
	}
	sticks, sparse := a.Score == ScoreSticks, a.Score == ScoreSparsemax || a.Score == ScoreEntmax
	switch {
	case !sticks && !sparse && !slices.Contains(ScoreFuncs, a.Score):
		return fmt.Errorf("attention: there is no score %q; it is \"softmax\", %q, %q, %q, or one of %s", a.Score, ScoreSticks, ScoreSparsemax, ScoreEntmax, strings.Join(ScoreFuncs, ", "))
	case a.Sinks != nil || a.SinkOf:
		return fmt.Errorf("attention: sinks take weight in a softmax; with the score %q there is none", a.Score)
	case a.Open && !sticks:
		return fmt.Errorf("attention: only a softmax is left open to be joined, and a stick to be read; results with the score %q are simply added", a.Score)
	case sparse && a.Allowed:
		return fmt.Errorf("attention: the score %q goes with no chosen positions", a.Score)
	case sticks && (a.Mask == MaskFull || a.Allowed):
		return fmt.Errorf("attention: the score %q breaks a stick from the newest key to the oldest: masks %q, %q and %q", a.Score, MaskCausal, MaskBefore, MaskChunk)
	}
	return nil
}

// inferCounted checks the numbers of positions that gates count.
func inferCounted(a *AttentionAttr, heads int, tables []*Node) error {
	if len(tables) != 1 || !a.ByQuery || a.ByKey || a.Buckets != nil {
		return fmt.Errorf("attention: positions counted by gates have one table, of the query, and no buckets")
	}
	t := tables[0].Shape
	switch {
	case len(t) != 2 || t[0] != heads || t[1] < 1 || t[1] > maxCounted:
		return fmt.Errorf("attention: the numbers of counted positions are [%d heads, 1 to %d positions], got %v", heads, maxCounted, t)
	case a.Mask == MaskFull || a.Allowed || a.First > 0 || a.Relative != nil || a.Slopes != nil || a.Score != "" || a.Every > 0:
		return fmt.Errorf("attention: positions counted by gates go with a softmax, the masks %q, %q and %q, keys of every token, and no other bias by distance", MaskCausal, MaskBefore, MaskChunk)
	}
	return nil
}
