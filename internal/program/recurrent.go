package program

import "github.com/inferflow/inferflow/internal/graph"

// View is a run of Width values of each row of a buffer, from value At on.
type View struct {
	Buf       Buf
	At, Width int
}

// Conv1D is a graph.ConvAttr of In, a shift too, with an activation after it.
type Conv1D struct {
	In     View
	Kernel Buf // a constant, where Attr.Taps says so; else None
	Attr   *graph.ConvAttr
	Act    *graph.UnaryAttr // nil: none
	Out    Buf
}

// Recurrent is a graph.ScanAttr of x, B, C, dt, A, a graph.DeltaAttr of q, k, v,
// g, beta (or a, b), or a graph.LinearAttentionAttr of its inputs in their order.
// One of the three is set.
type Recurrent struct {
	Scan   *graph.ScanAttr
	Delta  *graph.DeltaAttr
	Linear *graph.LinearAttentionAttr
	In     []View
	// Sizes: heads and the width of a head's value; groups (or key heads) and
	// the width of each.
	Heads, Width, Groups, Size int
	PerChannel                 bool // the decay has a number for each channel of a key, or component of the state
	BonusPerChannel            bool // and so has the bonus
	// Unit says what happens to each head of q and k of a delta rule before it.
	Unit [2]Unit
	Out  Buf
}

// Unit is x / √(Σx² + Eps), where Norm is set, and then × Scale.
type Unit struct {
	Norm  bool
	Eps   float64
	Scale float64
}

// Cache is the cache that the step keeps its state in.
func (r *Recurrent) Cache() int {
	switch {
	case r.Scan != nil:
		return r.Scan.Cache
	case r.Delta != nil:
		return r.Delta.Cache
	}
	return r.Linear.Cache
}
