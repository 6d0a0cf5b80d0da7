// Package program holds Steps: what a device runs for each batch, and the ways
// to cut a program. It holds no bytes of weights and must never import devices.
// Read Program and Step first.
package program

import (
	"github.com/inferflow/inferflow/internal/graph"
)

// Buf numbers a row buffer of a program; None stands where there is none.
type Buf int

// None is the absent buffer.
const None Buf = -1

// Buffer is a float32 array of Width values for each row of the batch, or for
// each wanted row when Out is set. The last Ids of them are the expert ids that a
// row of a route carries behind its weights; they are exact as float32.
type Buffer struct {
	Width int
	Out   bool
	Const bool // one row for all tokens
	Ids   int
	// Memory: the rows are those of the encoder's source.
	Memory bool
}

// Program is the flat list of steps of one stage.
type Program struct {
	Steps   []Step
	Buffers []Buffer
	Graph   *graph.Graph // caches, rotary tables, nodes of Op steps
	Layers  int
	In, Out []Buf // live values received from the stage before, sent to the next
	Logits  Buf   // None in a stage that is not the last
}

// Kind names a step.
type Kind string

// The kinds of steps.
const (
	KindEmbed       Kind = "Embed"
	KindNorm        Kind = "Norm"
	KindLinear      Kind = "Linear"
	KindQKV         Kind = "QKV"
	KindAttention   Kind = "Attention"
	KindPut         Kind = "Put"
	KindMoE         Kind = "MoE"
	KindRows        Kind = "Rows"
	KindElementwise Kind = "Elementwise"
	KindPool        Kind = "Pool"
	KindReverse     Kind = "Reverse"
	KindHeads       Kind = "Heads"
	KindIndex       Kind = "Index"
	KindConv1D      Kind = "Conv1D"
	KindRecurrent   Kind = "Recurrent"
	KindJoin        Kind = "Join"
	KindStored      Kind = "Stored"
	KindOp          Kind = "Op"
)

// Step is one fused piece of work. Body is *Embed, *Norm, … by Kind.
type Step struct {
	Kind  Kind
	Layer int
	Nodes []int  // graph nodes that it computes
	Why   string // for Op steps: why no pattern took the node
	Body  Body
	// Rows says which batches run the step: those of tokens, those that encode a
	// source (graph.RowsMemory), or all of them (graph.RowsConst).
	Rows graph.Rows
}

// Runs says whether the step belongs to a batch.
func (s *Step) Runs(encode bool) bool {
	return s.Rows == graph.RowsConst || (s.Rows == graph.RowsMemory) == encode
}

// Embed writes Scale × the table's row of each token, of each token's type
// (Types), or of each position (At).
type Embed struct {
	Table *graph.Weight
	Guard int
	Lead  *graph.Weight // rows of the ids behind the table's, or nil
	Scale float64
	At    *graph.PositionsAttr
	Types bool
	Out   Buf
}

// Norm writes the normalised In, times Scale, plus Residual if there is one.
type Norm struct {
	In, Out  Buf
	Part     int // values that are normalised together; 0: the whole row
	Norm     *graph.NormAttr
	Residual Buf
	Scale    float64
}

// Epilogue is what follows a matrix product y, in this order: act(y), × Scale,
// softcap, + Residual. A gated Linear has act(y)·up instead of act(y).
type Epilogue struct {
	Act      *graph.UnaryAttr // nil: none
	Scale    float64          // 0 or 1: none
	Softcap  float64          // 0: none
	Residual Buf
}

// Linear computes Out = epilogue(pre-norm(In)·Wᵀ + B). Up, if not nil, is the
// second matrix of a gated pair: act(W·x + B) ⊙ (Up·x + UpB).
type Linear struct {
	In      Buf
	PreNorm *graph.NormAttr
	W, B    *graph.Weight
	Up, UpB *graph.Weight
	Epi     Epilogue
	Out     Buf
}

// Head is one of q, k, v: a matrix and what happens to each head after it.
// Order: clamp, norm (over each head, or over the whole width), rope, or
// rope then norm when NormLast is set; then × Scale.
type Head struct {
	W, B     *graph.Weight
	Heads    int
	Dim      int
	Clamp    float64         // 0: none; |x| ≤ Clamp
	Norm     *graph.NormAttr // nil: none
	WholeN   bool            // norm over all heads at once
	NormLast bool
	Rope     *graph.RopeAttr // nil: none
}

// QKV computes queries, keys and values of the normalised input, appends keys
// and values to the cache and writes the queries.
type QKV struct {
	In      Buf
	PreNorm *graph.NormAttr
	Q, K, V Head
	Cache   int
	OutQ    Buf
}

// Attention reads queries and the cache and writes [Heads·ValueDim]. When Put
// is set, K and V are row buffers that are appended to the cache first.
type Attention struct {
	Q, Out Buf
	K, V   Buf // None where the cache is already filled (by QKV or an earlier layer), and V where the values are a part of the keys
	Allow  Buf // the positions seen, or None
	// Numbers that the query's row and the key's add to scores by distance, or None.
	ByQuery, ByKey Buf
	Sinks          Buf // one logit a head that the query's row makes, or None
	Attr           *graph.AttentionAttr
}

// Put appends keys and values of the encoder's rows to the cache that cross
// attention reads.
type Put struct {
	K, V  Buf
	Cache int
}

// MoE computes the router, picks experts and adds their outputs.
type MoE struct {
	In       Buf
	PreNorm  *graph.NormAttr
	RouterIn Buf // where the router reads another value than the experts; None: the same
	Router   *graph.LinearAttr
	Route    *graph.RouteAttr
	Experts  *graph.ExpertsAttr
	Epi      Epilogue
	Out      Buf
}

// Heads writes vectors of several heads, each the parts of it one after the other.
type Heads struct {
	Heads int
	Parts []HeadPart
	Out   Buf
}

// HeadPart is Dim values of each head: Width values of In from From + h·Stride
// on, times the head's matrix, normalised, × Scale and rotated, in this order.
type HeadPart struct {
	In                  Buf
	From, Stride, Width int
	W                   *graph.Weight   // [Heads, Dim, Width]; nil: Dim is Width, unless there is an
	M                   Buf             // M: the same as a constant value, or [Dim, Width] for all heads; None
	Norm                *graph.NormAttr // over the values of a head; nil: none
	Scale               float64         // 0 or 1: none
	Rope                *graph.RopeAttr // nil: none
	Dim                 int
}

// Index keeps the key K of each row and writes the positions that it chooses by
// the queries Q and the weights W of their heads.
type Index struct {
	Q, K, W, Out Buf
	Attr         *graph.IndexAttr
}

// Rows keeps the wanted rows of In.
type Rows struct{ In, Out Buf }

// Pool writes for each row of Out the summary of its sequence's rows of In; How
// is a name of graph.PoolFuncs.
type Pool struct {
	In, Out Buf
	How     string
}

// Reverse writes the rows of each sequence, the last first.
type Reverse struct{ In, Out Buf }

// Instr is one elementwise operation on registers of a tile: Dst = F(A, B).
type Instr struct {
	Op   string // "load", "const", a UnaryFuncs name (Args 1), a BinaryAttr name (Args 2), "where" (Args 3)
	Args int
	Dst  int
	A, B int
	C    int
	P, Q float64
	Buf  Buf // load
	// Span of the load's value inside a row: value i of the output reads
	// value At + (i / Div) mod Mod of the buffer's row.
	At, Div, Mod int
}

// Elementwise runs a chain of simple operations over tiles of a row.
type Elementwise struct {
	Code  []Instr
	Width int
	Out   Buf
}

// OpStep runs one node of the graph with its float32 reference.
type OpStep struct {
	Node int
	In   []Buf
	Out  Buf
}
