// Package graph holds the traced network: nodes with shapes, operations and
// the spec line that made each. It holds no bytes and must never import
// formats, devices or the spec language. Read Node first.
package graph

import "fmt"

// Graph is what a specification computes, as it stands: no fusion, no bytes.
// Nodes are in the order of tracing, so every input stands before its user.
type Graph struct {
	Nodes   []*Node
	Ropes   []*RopeTable // rotary tables, by RopeAttr.Table
	Caches  []Cache      // key/value caches and states, by attribute Cache fields
	Layers  int          // number of layers marked by the spec
	Outputs []Output     // named results; the first is what generation reads
	Named   []Output     // values that the specification names, to be compared with a reference's
	Vocab   int          // rows of the token embedding
}

// Output is a named result of the graph, such as "logits".
type Output struct {
	Name string
	Node int
}

// Line is a place in a specification.
type Line struct {
	File string
	Line int
}

func (l Line) String() string { return fmt.Sprintf("%s:%d", l.File, l.Line) }

// Rows says which rows a value has.
type Rows uint8

const (
	RowsToken  Rows = iota // one row for each token of the batch
	RowsConst              // one row for all tokens (a stored vector, a constant)
	RowsMemory             // one row for each token of the encoder's output
)

// Node is one operation and its result: for each row a float32 array of the
// given Shape (the row dimension is not part of it). A node with Op OpRoute has
// the shape [k] and carries k expert ids beside the k weights.
type Node struct {
	ID    int
	Op    Op
	Shape []int
	Rows  Rows
	In    []int // node ids
	Attr  any   // the operation's attributes: *EmbedAttr, *LinearAttr, … by Op
	Layer int   // −1 before the first layer, Graph.Layers after the last
	Name  string
	Line  Line   // innermost line of the specification, outside @std
	Stack []Line // the calls that led there, outermost first, @std included
}

// Width is the number of float32 values a row of the node.
func (n *Node) Width() int { return Product(n.Shape) }

// Product multiplies the dimensions.
func Product(shape []int) int {
	p := 1
	for _, d := range shape {
		p *= d
	}
	return p
}

// Op names a primitive operation.
type Op string

// The primitives. Each one's meaning is its function in device/ref.
const (
	OpTokens    Op = "tokens"          // the batch's token ids; no inputs; *TokensAttr; shape []
	OpPositions Op = "positions"       // absolute positions as float32; *PositionsAttr; shape []
	OpTypes     Op = "types"           // token types of the batch (segment A or B), 0 where there are none; shape []
	OpParam     Op = "param"           // a stored tensor as a value, RowsConst; *ParamAttr
	OpConst     Op = "const"           // numbers of the spec, RowsConst; *ConstAttr
	OpEmbed     Op = "embed"           // row of a table by token id (or by a given index); *EmbedAttr
	OpLinear    Op = "linear"          // x·Wᵀ + b over the last axis; *LinearAttr
	OpNorm      Op = "norm"            // rms, layer, l2 over the last axis; *NormAttr
	OpUnary     Op = "unary"           // elementwise function; *UnaryAttr
	OpBinary    Op = "binary"          // elementwise with broadcast over trailing dimensions; *BinaryAttr
	OpWhere     Op = "where"           // in[0] ≠ 0 ? in[1] : in[2], with broadcast
	OpReduce    Op = "reduce"          // over the last axis, keeping it as 1; *ReduceAttr
	OpSoftmax   Op = "softmax"         // over the last axis
	OpBalance   Op = "balance"         // square matrices made doubly stochastic; *BalanceAttr
	OpReshape   Op = "reshape"         // same values, another shape
	OpTranspose Op = "transpose"       // permutes the row's dimensions; *TransposeAttr
	OpSlice     Op = "slice"           // a range of one axis; *SliceAttr
	OpConcat    Op = "concat"          // along one axis; *ConcatAttr
	OpGather    Op = "gather"          // in[0] along the last axis by indices in[1]
	OpOrder     Op = "order"           // places of the last axis' numbers, the largest first, the earlier of equal ones first
	OpRope      Op = "rope"            // rotary positions on [.., d]; *RopeAttr
	OpAttention Op = "attention"       // q [H,dk], k [K,dk], v [K,dv] → [H,dv]; *AttentionAttr
	OpBlockSum  Op = "block_sum"       // the sum over the block of rows that a row belongs to; *BlockSumAttr
	OpBlockAttn Op = "block_attention" // q, k, v and keys and values of blocks → [H,dv]; *BlockAttnAttr
	OpRoute     Op = "route"           // router scores [E] → k expert ids and weights; *RouteAttr
	OpExperts   Op = "experts"         // x [h], route → [h]; *ExpertsAttr
	OpPool      Op = "pool"            // each row: a summary of all rows of its sequence; *PoolAttr

	// With a state of the sequence; see recurrent.go.
	OpConv1D          Op = "conv1d"           // causal convolution of each channel, or a shift; *ConvAttr
	OpScan            Op = "ssd_scan"         // selective state space recurrence; *ScanAttr
	OpGatedDelta      Op = "gated_delta"      // gated delta rule; *DeltaAttr
	OpLinearAttention Op = "linear_attention" // attention read from a state; *LinearAttentionAttr
	OpLoop            Op = "recur"            // operations for one token after the other; *LoopAttr, see loop.go
	OpArg             Op = "arg"              // an input, inside the body of a loop alone; *ArgAttr
	OpReverse         Op = "reverse"          // the rows of a whole sequence, the last first

	// Of latent and sparse attention; see latent.go.
	OpHeadLinear   Op = "head_linear"   // [H,d] by a matrix a head → [H,e]; *HeadLinearAttr
	OpExpertLinear Op = "expert_linear" // x [h] or [k,h], route → [k,e] or [e]; *ExpertLinearAttr
	OpDot          Op = "dot"           // x [..,d] and y [..,n,d] → [..,n]; *DotAttr
	OpIndex        Op = "index_topk"    // q [H,d], k [d], w [H] → the positions chosen; *IndexAttr

	// Of one softmax over several sources; see join.go.
	OpJoin   Op = "join"             // open attentions [H,e+1], … → [H,e]; *JoinAttr
	OpStored Op = "attention_stored" // q [H,dk], k [n,K,dk], v [n,K,dv], the same for all tokens → [H,dv]; *StoredAttr
)

// EmbedAttr: Table is [V, …]; an id at or beyond Guard (if Guard > 0) reads row 0.
// Lead, if not nil, is [n, …]: the ids V … V+n−1 read its rows, which stand
// before each text; see lead.go.
type EmbedAttr struct {
	Table *Weight
	Guard int
	Lead  *Weight
}

// TokensAttr: the ids of the encoder's source when Memory is set.
type TokensAttr struct{ Memory bool }

// PositionsAttr: the row's absolute position plus Offset. With Count it is the
// number of tokens before it that are not Pad, plus Offset; for a row whose
// token is Pad, Offset − 1. With Memory the rows are those of the encoder's source.
type PositionsAttr struct {
	Offset int
	Count  bool
	Pad    int
	Memory bool
}

// ParamAttr is a stored tensor used as a value; it is decoded to float32.
type ParamAttr struct{ W *Weight }

// ConstAttr holds Product(Shape) numbers.
type ConstAttr struct{ Values []float64 }

// LinearAttr: W is [out, in], B is [out] or nil.
type LinearAttr struct {
	W *Weight
	B *Weight
}

// NormKind is the statistic of a norm.
type NormKind string

const (
	RMS   NormKind = "rms"   // x / √(mean x² + eps)
	Layer NormKind = "layer" // (x − mean) / √(var + eps), population variance
	L2    NormKind = "l2"    // x / √(Σ x² + eps)
)

// NormAttr normalises the last axis of its input (or each of Groups equal
// parts of it). W is nil, [d] or [n,d] for an input [n,d]; the factor is
// Offset + W. B (layer norm) is nil or shaped as W.
type NormAttr struct {
	Kind   NormKind
	Eps    float64
	W      *Weight
	B      *Weight
	Offset float64
	Groups int // 0 or 1: the whole axis
}

// UnaryAttr: F is one of the names of UnaryFuncs; A and B are its parameters.
type UnaryAttr struct {
	F    string
	A, B float64
}

// UnaryFuncs are the elementwise functions and what A and B mean.
var UnaryFuncs = map[string]string{
	"scale": "A·x", "add": "x+A", "pow": "x^A", "clamp": "min(max(x,A),B)", "softcap": "A·tanh(x/A)",
	"neg": "−x", "abs": "|x|", "exp": "eˣ", "log": "ln x", "log1p": "ln(1+x)", "expm1": "eˣ−1", "sqrt": "√x", "rsqrt": "1/√x", "square": "x²",
	"floor": "⌊x⌋", "round": "x to the nearest whole number, halves to the even one", "sigmoid": "1/(1+e⁻ˣ)", "tanh": "tanh x", "softplus": "ln(1+eˣ)", "relu": "max(x,0)", "relu2": "max(x,0)²",
	"silu": "x·sigmoid(x)", "gelu": "x·Φ(x), erf", "gelu_tanh": "tanh form of gelu", "gelu_quick": "x·sigmoid(1.702x)",
	"elu": "x>0 ? x : A(eˣ−1)", "sin": "sin x", "cos": "cos x",
}

// BinaryAttr: F is add, sub, mul, div, max, min, pow, less, xielu_p…
type BinaryAttr struct{ F string }

// ReduceAttr: F is mean, std (population), sum, max, min.
type ReduceAttr struct{ F string }

// TransposeAttr: output dimension i is input dimension Perm[i].
type TransposeAttr struct{ Perm []int }

// SliceAttr takes From ≤ i < To by Step along Axis (of the row's shape).
type SliceAttr struct{ Axis, From, To, Step int }

// ConcatAttr joins the inputs along Axis.
type ConcatAttr struct{ Axis int }

// RopeTable gives the angle frequencies of rotary positions. Freq has Dim/2
// entries (zeros allowed). The cosine and sine are multiplied by Factor.
// Divisors, if not nil, is a stored tensor [Dim/2] that divides Freq.
type RopeTable struct {
	Dim      int
	Freq     []float64
	Factor   float64
	Divisors *Weight
	// By length: chosen for a request by its number of prompt tokens n.
	Kind      string    // "" static; "longrope": LongFreq when n > Original; "dynamic": see below
	LongFreq  []float64 // longrope
	LongDiv   *Weight   // longrope in GGUF: divisors of the long list
	Original  int       // longrope: threshold; dynamic: max_position_embeddings
	Theta     float64   // dynamic: base frequency
	NTKFactor float64   // dynamic: θ' = θ·(f·n/Original − (f−1))^(Dim/(Dim−2)) once n > Original
}

// RopeAttr rotates components At … At+table.Dim of the last axis by the row's
// position. Interleaved pairs (2j, 2j+1); otherwise (j, j+Dim/2).
type RopeAttr struct {
	Table       int
	Interleaved bool
	At          int
}

// CacheKind is what a sequence keeps between calls for one attention or recurrence.
type CacheKind string

const (
	CacheKV    CacheKind = "kv"    // keys [Heads, KeyDim] and values [Heads, ValueDim] a token
	CacheState CacheKind = "state" // Size float32 values a sequence
	CacheRows  CacheKind = "rows"  // KeyDim float32 values a token (index keys)

	// CacheLatent keeps keys [Heads, KeyDim] a token, whose first ValueDim
	// components are the value as well.
	CacheLatent CacheKind = "latent"
)

// Cache describes one cache, numbered in the order of use.
type Cache struct {
	Kind             CacheKind
	Heads            int
	KeyDim, ValueDim int
	Window           int // keys a query sees at most, 0 = all
	First            int // beside a Window: the positions below First are seen as well, and stay
	Size             int
	Layer            int
	// Memory: the cache holds the encoder's source, not the sequence. Unless
	// Kept, it is needed only while the encoder runs.
	Memory, Kept bool
}

// MaskKind says which keys a query at absolute position i sees.
type MaskKind string

const (
	MaskCausal MaskKind = "causal" // j ≤ i, and j > i − Window if Window > 0
	MaskChunk  MaskKind = "chunk"  // j ≤ i and ⌊j/Window⌋ = ⌊i/Window⌋
	MaskFull   MaskKind = "full"   // all keys of the sequence, or |i−j| ≤ Window if Window > 0
	MaskBefore MaskKind = "before" // j < i, and j > i − Window if Window > 0: the window counts the query's own position, which it does not see
)

// AttentionAttr: softmax(mask(softcap(Scale·q·k) + bias))·v. Query head h
// reads key head h·K/H, or h mod K when Tile is set. The inputs are q, k, v; q
// and k where the cache is a CacheLatent; when Shared is set only q, and the
// node reads the cache that an earlier node fills. When Allowed is set, one
// more input lists the positions that a row sees, as OpIndex does; the mask is
// causal then, and there is no window.
// When Cross is set the keys and values are rows of the encoder's source and
// every query sees all of them.
// When Buckets is set, one or two more inputs [H, B] follow q, k, v: of the
// query's row where ByQuery, then of the key's where ByKey. Key j adds to the
// score of query i the numbers of head h at Buckets[j − i + (len−1)/2]; offsets
// beyond the ends count as the ends. When SinkOf is set, one more input [H] of
// the query's row is a logit with value 0, as Sinks is; it stands before the
// list of allowed positions.
// Sides, with MaskFull and no Window, is how far before itself and after itself
// a query sees.
// With First > 0 every query sees the positions below First as well, whatever
// the window; with MaskFull those see all. With Ask > 0 queries from that
// position on see nothing and give 0.
// With Every > 0 a query sees the keys of positions Every − 1, 2·Every − 1, …
// alone: those that stand for a block of Every, its own only once it is complete.
// Where they fade, the gates of these keys alone count.
// When Open is set the result is [H, dv + 1]: each head ends with the logarithm
// of the sum of exp(score), sinks counted, or Nothing; see JoinAttr.
// Score names what makes weights of the scores instead of the softmax, and
// Counted makes of the numbers of the query a bias by a counted position, and
// Faded of a component of the keys one that grows with every key between: see scores.go.
type AttentionAttr struct {
	Cache          int
	Shared         bool
	Cross          bool
	Scale          float64
	Softcap        float64 // 0: none
	Mask           MaskKind
	Window         int
	Sinks          *Weight   // [H]: one more logit with value 0
	Slopes         []float64 // ALiBi: + slope[h]·(j − i)
	Relative       *Weight   // [buckets, H]: + Relative[Bucket(j − i)][h], by the two that follow
	TwoSided       bool      // half of the buckets are for keys after the query; else those share bucket 0
	Farthest       int       // from this distance on all keys share the last bucket
	Buckets        []int32
	ByQuery, ByKey bool
	Tile           bool
	Allowed        bool
	SinkOf         bool
	First, Ask     int
	Sides          []int // nil, or two
	Every          int
	Open           bool
	Score          string
	Counted, Faded bool
	Heads, KVHeads int
}

// BlockSumAttr: the rows of a source are parted into blocks of Size; a last
// part that does not fill one belongs to the block before it. A source of fewer
// rows than Size has no block, and the sums are 0.
type BlockSumAttr struct{ Size int }

// BlockAttnAttr is attention of a source's rows to the rows near them and to one
// key and value for each block of Size rows, in one softmax (Guo et al. 2022).
// In: q [H,dk], k [K,dk], v [K,dv] and the same of blocks, where any row of a
// block holds what belongs to the block. Row i sees rows j with |i − j| ≤ Window
// (0: all), with the bias Relative[Bucket(j − i)][h], and every block b, with
// Side[Bucket(b − block of i)][h]. Both tables are two-sided.
type BlockAttnAttr struct {
	Size, Window   int
	Scale          float64
	Relative, Side *Weight // [buckets, H] or nil
	Farthest       int
	Heads, KVHeads int
}

// RouteAttr picks TopK of E experts by the scores of its input.
//
// Score maps the logits: "softmax" over all, "sigmoid", "none". Bias is added
// for the choice only. Groups > 1 keeps TopGroups of them by GroupScore ("max"
// or "top2"); the scores of others become GroupFill. Ties go to the lower
// index. ChosenSoftmax applies a softmax over the chosen scores. Renorm divides
// by their sum + RenormEps (NormPow: the p of a p-norm, 0 = sum). Then Scale and
// PerExpert multiply.
type RouteAttr struct {
	TopK          int
	Score         string
	Bias          *Weight
	Groups        int
	TopGroups     int
	GroupScore    string
	GroupFill     float64
	ChosenSoftmax bool
	ChosenSigmoid bool
	Renorm        bool
	RenormEps     float64
	NormPow       float64
	Scale         float64
	PerExpert     *Weight
	Identity      int // the last Identity experts return their input
}

// ExpertsAttr: Σ_j w_j · (Down_e·(act(Gate_e·x) ⊙ Up_e·x)), experts added in
// ascending id. Gate is nil for an ungated expert (act applies to Up).
// Weights are [E, I, h] and Down [E, h, I]; biases [E, I] and [E, h] or nil.
// In: x, route.
type ExpertsAttr struct {
	Experts                    int
	Gate, Up, Down             *Weight
	GateBias, UpBias, DownBias *Weight
	Act                        string  // a UnaryFuncs name, or "swiglu_clamp": (min(max(u,−L),L)+1)·g·sigmoid(Alpha·g) with g=min(gate,L)
	Alpha, Limit               float64 // swiglu_clamp; with another Act, Limit > 0 clamps gate from above and up to ±Limit
	WeightInput                bool    // multiply x by w_j before the expert, not its output
}
