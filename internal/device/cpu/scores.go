package cpu

import (
	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/attn"
)

// scoreKernel is what makes weights of scores; nil where a softmax does, or the
// breaking of a stick.
func scoreKernel(a *graph.AttentionAttr) (func(dst, x []float32), error) {
	switch a.Score {
	case "", graph.ScoreSticks, graph.ScoreSparsemax, graph.ScoreEntmax:
		return nil, nil
	case graph.ScoreNone:
		return func(dst, x []float32) { copy(dst, x) }, nil
	}
	return unaryKernel(&graph.UnaryAttr{F: a.Score})
}

// sparse says that the weights of most scores are 0.
func sparse(a *graph.AttentionAttr) bool {
	return a.Score == graph.ScoreSparsemax || a.Score == graph.ScoreEntmax
}

// evaluate runs the call that is filled in, with the weights that the step says.
func (e *attend) evaluate(s *Stage, a *attention, it *item, first int) {
	if e.step.Attr.Faded {
		stride := len(a.call.TileK) * batch.BlockTokens
		a.call.Fades(a.scratch, a.bias, stride, e.step.Attr.Every)
		a.call.Bias, a.call.BiasStride = a.bias, stride
	}
	switch {
	case e.score != nil:
		a.call.RunMapped(a.scratch, e.score)
	case sparse(e.step.Attr):
		a.call.RunSparse(a.scratch, a.bias, e.step.Attr.Score == graph.ScoreEntmax)
	case e.step.Attr.Score == graph.ScoreSticks:
		a.call.RunSticks(a.scratch)
	case e.step.Attr.Counted:
		e.counted(s, a, it, first)
		a.call.Run(a.scratch)
	default:
		a.call.Run(a.scratch)
	}
}

// counted makes biases of the positions that gates count: those of the item's
// rows, the first of which is that of the batch.
func (e *attend) counted(s *Stage, a *attention, it *item, first int) {
	call, heads := &a.call, int(it.nHeads)
	stride := len(call.TileK) * batch.BlockTokens
	call.Gates(a.scratch, a.bias, stride)
	base := call.FirstTile * attn.Tile
	for r := range call.Rows {
		h := headOf(e.step.Attr, int(it.group), int(it.head)+r%heads)
		table := headPartOf(s, e.step.ByQuery, e.step.Attr.Heads, first+r/heads, h)
		row := a.bias[r*stride:][:stride]
		for p := int(call.Lo[r]); p < int(call.Hi[r]); p++ {
			row[p-base] = float32(ref.Between(table, float64(row[p-base])))
		}
	}
	call.Bias, call.BiasStride = a.bias, stride
}
