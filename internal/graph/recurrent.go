package graph

import (
	"fmt"
	"slices"
)

// ConvAttr convolves each channel of x [D] over the last K positions of its
// sequence (Conv1d with groups = D, padded on the left with zeros):
//
//	y_t[c] = B[c] + Σ_j W[c, j] · x_{t−K+1+j}[c]
//
// W is [D, K], B is [D] or nil. The state is the last K−1 inputs, [K−1, D].
// With Shift, W and B are nil and y_t is x_{t−Shift} itself; the state is the
// last Shift inputs. Below 0 it is an input ahead, zeros after the last, and
// there is no state: the sequence is computed whole.
// With Taps, W is nil, and what stands for it is a second input [D, Taps] that is
// the same for all tokens: a kernel that the specification computes.
type ConvAttr struct {
	Cache int
	W, B  *Weight
	Shift int
	Taps  int
}

// Past is the number of inputs that the operation keeps.
func (a *ConvAttr) Past() int {
	if a.Taps > 0 {
		return a.Taps - 1
	}
	if a.W == nil {
		return max(0, a.Shift)
	}
	return a.W.Shape[1] - 1
}

// ScanAttr is the selective state space recurrence (Gu and Dao 2023, with a
// decay of each component of the state; Dao and Gu 2024, structured state space
// duality). In: x [H, P], B and C [G, N], dt [H], which is after softplus and
// clamp, and A [H] or [H, N], negative. Head h reads group h·G/H.
//
//	S_t = e^(dt·A)·S_{t−1} + (dt·x) ⊗ B,   y = S_t·C
//
// The state is S, [H, P, N].
type ScanAttr struct{ Cache int }

// DeltaAttr is the gated delta rule (Yang, Kautz, Hatamizadeh 2024; with a
// decay of each channel, Kimi Delta Attention, 2025). In: q and k [Hk, dk], v [H, dv],
// the logarithm of the decay g [H] or [H, dk], beta [H]. Head h reads key head
// h·Hk/H, or h mod Hk when Tile is set.
//
//	S ← e^g·S,   S ← S + k ⊗ beta·(v − Sᵀk),   y = Sᵀq
//
// With General, beta is absent and a and b [Hk, dk] follow g: the general delta
// rule (Peng et al. 2025), diagonal plus low rank:
//
//	S ← e^g·S + b ⊗ Sᵀa + k ⊗ v,   y = Sᵀq
//
// With Steps above 0 a token takes so many steps of either rule before it reads
// (Siems et al. 2025): k, v, beta, a and b have an axis of them in front, and the
// decay is that of the first step alone.
//
// The state is S, [H, dk, dv].
type DeltaAttr struct {
	Cache   int
	Tile    bool
	General bool
	Steps   int // 0: one, without an axis
}

// maxSteps bounds the steps of a delta rule that a token takes.
const maxSteps = 1 << 10

// CacheOf is the cache that an operation reads or writes.
func CacheOf(n *Node) (cache int, ok bool) {
	switch a := n.Attr.(type) {
	case *AttentionAttr:
		return a.Cache, true
	case *ConvAttr:
		return a.Cache, true
	case *ScanAttr:
		return a.Cache, true
	case *DeltaAttr:
		return a.Cache, true
	case *LinearAttentionAttr:
		return a.Cache, true
	case *LoopAttr:
		return a.Cache, true
	case *IndexAttr:
		return a.Cache, true
	}
	return 0, false
}

// state checks that a cache keeps an array of a shape for a sequence.
func state(g *Graph, what string, cache int, shape ...int) error {
	if err := checkSize(shape); err != nil {
		return fmt.Errorf("%s: state: %w", what, err)
	}
	size := Product(shape)
	if cache < 0 || cache >= len(g.Caches) || g.Caches[cache].Kind != CacheState || g.Caches[cache].Size != size {
		return fmt.Errorf("%s: cache %d keeps no state of %d values", what, cache, size)
	}
	return nil
}

func inferState(g *Graph, attr any, in []*Node) ([]int, error) {
	switch a := attr.(type) {
	case *ConvAttr:
		return inferConv(g, a, in)
	case *ScanAttr:
		return inferScan(g, a, in)
	case *DeltaAttr:
		return inferDelta(g, a, in)
	case *LinearAttentionAttr:
		return inferLinearAttention(g, a, in)
	case *LoopAttr:
		return inferLoop(g, a, in)
	}
	return nil, fmt.Errorf("%T keeps no state", attr)
}

func inferConv(g *Graph, a *ConvAttr, in []*Node) ([]int, error) {
	if len(in) != 1+min(a.Taps, 1) {
		return nil, fmt.Errorf("conv1d: takes a value, and a kernel where none is stored, got %d inputs", len(in))
	}
	x, d := in[0], in[0].Width()
	if a.Taps > 0 {
		if k := in[1]; k.Rows != RowsConst || !slices.Equal(k.Shape, []int{d, a.Taps}) || a.Taps > maxShift {
			return nil, fmt.Errorf("conv1d: the input %v needs a kernel [%d, taps] that is the same for all tokens, of at most %d taps, got %v", x.Shape, d, maxShift, k.Shape)
		}
		if err := expect("conv1d: bias", a.B, d); err != nil {
			return nil, err
		}
		return x.Shape, state(g, "conv1d", a.Cache, a.Taps-1, d)
	}
	if a.W == nil {
		if a.Shift < -maxShift || a.Shift > maxShift || a.B != nil {
			return nil, fmt.Errorf("shift: by %d tokens; %d to %d are possible", a.Shift, -maxShift, maxShift)
		}
		return x.Shape, state(g, "shift", a.Cache, a.Past(), d)
	}
	if len(a.W.Shape) != 2 || a.W.Shape[0] != d || a.W.Shape[1] < 1 {
		return nil, fmt.Errorf("conv1d: the input %v needs a weight [%d, taps], got %v of %v", x.Shape, d, a.W.Shape, a.W)
	}
	if err := expect("conv1d: bias", a.B, d); err != nil {
		return nil, err
	}
	return x.Shape, state(g, "conv1d", a.Cache, a.W.Shape[1]-1, d)
}

func inferScan(g *Graph, a *ScanAttr, in []*Node) ([]int, error) {
	x, b, c, dt, decay := in[0].Shape, in[1].Shape, in[2].Shape, in[3].Shape, in[4].Shape
	switch {
	case len(x) != 2 || len(b) != 2 || !slices.Equal(b, c):
		return nil, fmt.Errorf("ssd_scan: takes x [heads, width] and B, C [groups, state], got %v, %v and %v", x, b, c)
	case b[0] < 1 || x[0]%b[0] != 0:
		return nil, fmt.Errorf("ssd_scan: %d groups do not divide %d heads", b[0], x[0])
	case !slices.Equal(dt, x[:1]):
		return nil, fmt.Errorf("ssd_scan: dt is one number a head, [%d], got %v", x[0], dt)
	case !slices.Equal(decay, dt) && !slices.Equal(decay, []int{x[0], b[1]}):
		return nil, fmt.Errorf("ssd_scan: A is [%d] or [%d, %d], got %v", x[0], x[0], b[1], decay)
	}
	return x, state(g, "ssd_scan", a.Cache, x[0], x[1], b[1])
}

func inferDelta(g *Graph, a *DeltaAttr, in []*Node) ([]int, error) {
	word := Written(OpGatedDelta, a)
	if want := a.inputs(); len(in) != want {
		return nil, fmt.Errorf("%s: takes %d inputs, got %d", word, want, len(in))
	}
	q, k, v, decay, beta := in[0].Shape, in[1].Shape, in[2].Shape, in[3].Shape, in[4].Shape
	keys := q // as k, a and b are
	if a.Steps > 0 {
		keys = append([]int{a.Steps}, q...)
		if len(q) != 2 || len(v) != 3 || v[0] != a.Steps || a.Steps > maxSteps || !slices.Equal(k, keys) || !a.General && !slices.Equal(beta, v[:2]) {
			return nil, fmt.Errorf("%s: %d steps take q [key heads, dk], k [steps, key heads, dk], v [steps, heads, dv]%s, at most %d steps, got %v, %v, %v and %v", word, a.Steps, or(!a.General, " and beta [steps, heads]"), maxSteps, q, k, v, beta)
		}
		k, v = k[1:], v[1:]
		if !a.General {
			beta = beta[1:]
		}
	}
	switch {
	case len(q) != 2 || len(v) != 2 || !slices.Equal(q, k):
		return nil, fmt.Errorf("%s: takes q, k [key heads, dk] and v [heads, dv], got %v, %v and %v", word, q, k, v)
	case q[0] < 1 || v[0]%q[0] != 0:
		return nil, fmt.Errorf("%s: %d key heads do not divide %d heads", word, q[0], v[0])
	case !slices.Equal(decay, v[:1]) && !slices.Equal(decay, []int{v[0], q[1]}):
		return nil, fmt.Errorf("%s: the decay is [%d] or [%d, %d], got %v", word, v[0], v[0], q[1], decay)
	case a.General && (!slices.Equal(beta, keys) || !slices.Equal(in[5].Shape, keys)):
		return nil, fmt.Errorf("general_delta: a and b are %v as k, got %v and %v", keys, beta, in[5].Shape)
	case !a.General && !slices.Equal(beta, v[:1]):
		return nil, fmt.Errorf("gated_delta: beta is one number a head, [%d], got %v", v[0], beta)
	}
	return v, state(g, word, a.Cache, v[0], q[1], v[1])
}

func (a *DeltaAttr) inputs() int {
	if a.General {
		return 6
	}
	return 5
}

// maxShift bounds what a shift keeps.
const maxShift = 1 << 16

// keep appends a state of size values a sequence.
func (b *Builder) keep(size int) (cache int) {
	b.G.Caches = append(b.G.Caches, Cache{Kind: CacheState, Size: size, Layer: b.Layer})
	return len(b.G.Caches) - 1
}

// stateful adds a node and takes the cache back where its inputs do not fit. The
// state of rows of a source begins with each source and is not kept.
func (b *Builder) stateful(op Op, attr any, cache int, in ...*Node) (*Node, error) {
	if c := &b.G.Caches[cache]; c.Kind == CacheState {
		if !anyMemory(in) && op != OpLoop { // whose first input is where its states begin
			if err := b.ofSource(&in[0]); err != nil {
				return nil, err
			}
		}
		c.Memory = anyMemory(in)
	}
	n, err := b.Add(op, attr, nil, in...)
	if err != nil {
		b.G.Caches = b.G.Caches[:cache]
	}
	return n, err
}

// Conv1D convolves each channel of x [D] causally with w [D, K]; bias [D] or nil.
func (b *Builder) Conv1D(x *Node, w, bias *Weight) (*Node, error) {
	taps := 1
	if len(w.Shape) == 2 {
		taps = max(1, w.Shape[1])
	}
	at := b.keep(x.Width() * (taps - 1))
	return b.stateful(OpConv1D, &ConvAttr{Cache: at, W: w, B: bias}, at, x)
}

// ConvolveBy is Conv1D with a kernel [D, K] that is the same for all tokens.
func (b *Builder) ConvolveBy(x, kernel *Node, bias *Weight) (*Node, error) {
	taps := 1
	if len(kernel.Shape) == 2 {
		taps = max(1, kernel.Shape[1])
	}
	at := b.keep(x.Width() * (taps - 1))
	return b.stateful(OpConv1D, &ConvAttr{Cache: at, B: bias, Taps: taps}, at, x, kernel)
}

// Shift gives the value of n tokens ago, or −n ahead; zeros before the first and after the last.
func (b *Builder) Shift(x *Node, n int) (*Node, error) {
	at := b.keep(x.Width() * min(max(n, 0), maxShift))
	return b.stateful(OpConv1D, &ConvAttr{Cache: at, Shift: n}, at, x)
}

// Scan runs the recurrence of ScanAttr.
func (b *Builder) Scan(x, bm, cm, dt, a *Node) (*Node, error) {
	n := 0
	if len(bm.Shape) == 2 {
		n = bm.Shape[1]
	}
	at := b.keep(x.Width() * n)
	return b.stateful(OpScan, &ScanAttr{Cache: at}, at, x, bm, cm, dt, a)
}

// GatedDelta runs the recurrence of DeltaAttr, of several steps a token where k
// and v have an axis of them.
func (b *Builder) GatedDelta(q, k, v, g, beta *Node, tile bool) (*Node, error) {
	return b.delta(DeltaAttr{Tile: tile}, q, k, v, g, beta)
}

// GeneralDelta runs the second recurrence of DeltaAttr.
func (b *Builder) GeneralDelta(q, k, v, g, a, bb *Node, tile bool) (*Node, error) {
	return b.delta(DeltaAttr{Tile: tile, General: true}, q, k, v, g, a, bb)
}

func (b *Builder) delta(a DeltaAttr, in ...*Node) (*Node, error) {
	q, k, v, size := in[0].Shape, in[1].Shape, in[2].Shape, 0
	if len(k) == 3 && len(v) == 3 {
		a.Steps, v = k[0], v[1:]
	}
	if len(q) == 2 {
		size = Product(v) * q[1]
	}
	a.Cache = b.keep(size)
	return b.stateful(OpGatedDelta, &a, a.Cache, in...)
}
