// Package attn computes attention of a group of query rows over the key and value
// tiles of one key-value head, with a running softmax (Dao et al. 2022; Milakov and
// Gimelshein 2018). It must never import devices, programs or the cache's
// bookkeeping: it sees bytes and offsets. Read Call first.
//
// The promise of bits: a row's result depends on its query, on the keys and values it
// sees and on its own parameters, never on which other rows share the call, on how
// queries were cut into calls, nor on tiles listed outside the row's range. To that
// end the softmax state of a row is updated once for each tile of 16 absolute
// positions, in ascending order, states are closed at absolute multiples of 512
// positions and merged in ascending order, and every sum inside a tile has one order
// in all forms of the kernels. Memory behind masked positions is never part of a
// sum, so it may hold anything.
package attn

import (
	"fmt"
	"math"
	"unsafe"
)

const (
	// Tile is the number of absolute positions that share a tile.
	Tile = 16
	// Chunk is the number of absolute positions that share a partial state.
	Chunk = 512

	// rowBlock is the number of rows that walk the tiles together: their states stay
	// in the first-level cache for common head sizes.
	rowBlock = 64
)

// Elem is the type of the stored keys or values.
type Elem int

const (
	F32 Elem = iota
	F16
	BF16
)

// Size is the number of bytes of an element.
func (e Elem) Size() int {
	if e == F32 {
		return 4
	}
	return 2
}

func (e Elem) String() string {
	if e < F32 || e > BF16 {
		return fmt.Sprintf("attn.Elem(%d)", int(e))
	}
	return [...]string{"f32", "f16", "bf16"}[e]
}

// KeyTileBytes is the size of a key tile [dk][16].
func KeyTileBytes(t Elem, dk int) int { return dk * Tile * t.Size() }

// ValueTileBytes is the size of a value tile [16][dv].
func ValueTileBytes(t Elem, dv int) int { return dv * Tile * t.Size() }

// Call is the attention of Rows query rows over one key-value head. Rows are usually
// the query heads of the group times the tokens of a chunk, neighbours in memory being
// neighbours in position; any order is right, that one is fast. The slices belong to
// the caller; a Call may be reused and is not changed by running it.
//
// The weight of key position p for row r is the softmax over all visible p of
//
//	softcap(Scale · q·k) + Slopes[r] · (p - Hi[r] + 1) + Bias[r][p]
//
// where softcap(s) is Softcap · tanh(s / Softcap). (The slope's term differs from
// ALiBi's slope · p by a constant of the row, which the softmax cancels; small
// numbers keep it exact in long contexts. Where nothing cancels it and a row does
// not end with its own position, At says where slopes are 0.)
type Call struct {
	DK, DV             int    // head sizes of keys and values, any value of at least 1
	KeyType, ValueType Elem   // of the tiles
	Keys, Values       []byte // memory that the tiles lie in, aligned to their elements
	// TileK and TileV are the byte offsets of the tiles in Keys and Values. Tile t
	// holds positions (FirstTile+t)·16 to +15: keys as [DK][16], values as [16][DV].
	TileK, TileV []int
	FirstTile    int
	// ValuesOfKeys says that the values are the first DV components of the keys;
	// Values and TileV are not read then. DV is at most DK.
	ValuesOfKeys bool
	// Skip marks listed tiles of which no row sees a position; nil: none.
	Skip []bool

	Rows      int
	Q         []float32 // row r is Q[r·QStride:][:DK]
	QStride   int
	Out       []float32 // row r is Out[r·OutStride:][:DV]
	OutStride int
	// Row r sees positions Lo[r] ≤ p < Hi[r]; all of them must be in listed tiles. A
	// row that sees nothing gives zeros.
	Lo, Hi []int32

	Scale   float32
	Softcap float32   // 0: none
	Sinks   []float32 // per row: one more logit, whose value is 0; nil: none
	Slopes  []float32 // per row; nil: none
	At      []int32   // per row, the position whose slope's term is 0; nil: Hi[r] − 1
	// Open leaves the softmax of each row open, to be joined with those of other
	// calls: Out[r·OutStride+DV] gets the logarithm of the sum of exp(logit), or
	// Nothing where the row sees nothing and has no sink.
	Open       bool
	Bias       []float32 // row r, position p: Bias[r·BiasStride + p - 16·FirstTile]; nil: none; -Inf hides p
	BiasStride int
}

// Run computes Out. It allocates nothing. It panics if the slices are too short for
// what the numbers say: that is a fault of the program, not of its input.
func (c *Call) Run(s *Scratch) {
	c.check(s)
	for r := 0; r < c.Rows; r += rowBlock {
		n := min(rowBlock, c.Rows-r)
		lo, hi := c.chunks(r, n)
		if lo+1 == hi { // a merge with nothing is a copy
			c.runChunk(s, lo, r, n, &s.total, 0)
			c.finish(&s.total, r, n, 0)
			continue
		}
		s.total.clear(n)
		for k := lo; k < hi; k++ {
			c.runChunk(s, k, r, n, &s.part, 0)
			s.total.merge(&s.part, n)
		}
		c.finish(&s.total, r, n, 0)
	}
}

// Chunks is the range of chunks, of 512 absolute positions each, that any row sees.
// Long contexts may be split over threads by them; see RunChunk.
func (c *Call) Chunks() (lo, hi int) { return c.chunks(0, c.Rows) }

// RunChunk computes the state of all rows over one chunk. To get the bits of Run,
// clear a total, Merge the states of Chunks() into it in ascending order, and Finish.
func (c *Call) RunChunk(s *Scratch, chunk int, st *State) {
	c.check(s)
	for r := 0; r < c.Rows; r += rowBlock {
		c.runChunk(s, chunk, r, min(rowBlock, c.Rows-r), st, r)
	}
}

// Finish writes Out from the merged state of all chunks.
func (c *Call) Finish(total *State) { c.finish(total, 0, c.Rows, 0) }

// chunks is the range of chunks that rows r to r+n see.
func (c *Call) chunks(r, n int) (lo, hi int) {
	first, end := math.MaxInt, 0
	for i := r; i < r+n; i++ {
		if c.Lo[i] < c.Hi[i] {
			first, end = min(first, int(c.Lo[i])), max(end, int(c.Hi[i]))
		}
	}
	if first >= end {
		return 0, 0
	}
	return first / Chunk, (end + Chunk - 1) / Chunk
}

func (c *Call) check(s *Scratch) {
	n := c.Rows
	switch {
	case c.DK < 1 || c.DV < 1 || c.DK > s.maxDK || c.DV > s.maxDV || min(n, rowBlock) > s.maxRows:
		panic(fmt.Sprintf("attn: %d rows of %d, %d do not fit a scratch of %d rows of %d, %d",
			n, c.DK, c.DV, s.maxRows, s.maxDK, s.maxDV))
	case n == 0:
	case len(c.Lo) < n || len(c.Hi) < n || len(c.Q) < (n-1)*c.QStride+c.DK || len(c.Out) < (n-1)*c.OutStride+c.outWidth():
		panic("attn: a slice of the call is shorter than its rows")
	case c.ValuesOfKeys && c.DV > c.DK:
		panic("attn: values are wider than the keys that they are a part of")
	case c.Sinks != nil && len(c.Sinks) < n || c.At != nil && len(c.At) < n || c.Slopes != nil && len(c.Slopes) < n:
		panic("attn: sinks or slopes are shorter than the rows")
	}
}

// outWidth is the number of values that a row of Out takes.
func (c *Call) outWidth() int {
	if c.Open {
		return c.DV + 1
	}
	return c.DV
}

// runChunk computes the states at, at+1, … of rows r to r+n over one chunk.
func (c *Call) runChunk(s *Scratch, chunk, r, n int, st *State, at int) {
	st.clearRange(at, n)
	begin, end := math.MaxInt, 0 // what any row sees
	all, most := 0, math.MaxInt  // what every row sees
	for i := r; i < r+n; i++ {
		lo, hi := max(int(c.Lo[i]), chunk*Chunk), min(int(c.Hi[i]), (chunk+1)*Chunk)
		if lo < hi {
			begin, end = min(begin, lo), max(end, hi)
		}
		all, most = max(all, lo), min(most, hi)
	}
	for t := begin / Tile; t*Tile < end; t++ {
		if c.Skip != nil && c.Skip[t-c.FirstTile] {
			continue
		}
		s.keysOf, s.valuesOf = -1, -1
		if all <= t*Tile && (t+1)*Tile <= most {
			c.runWhole(s, t, r, n, st, at)
			continue
		}
		for i := r; i < r+n; {
			if !c.sees(i, t) {
				i++
				continue
			}
			j := i + 1
			for j < r+n && c.sees(j, t) {
				j++
			}
			c.runPart(s, t, i, j-i, st, at+i-r)
			i = j
		}
	}
}

// sees tells whether row i sees any position of absolute tile t.
func (c *Call) sees(i, t int) bool {
	return int(c.Lo[i]) < (t+1)*Tile && int(c.Hi[i]) > t*Tile && c.Lo[i] < c.Hi[i]
}

// wholeFrom and wholeTo are the ranges of rows that see a whole tile.
var wholeFrom, wholeTo = func() (from, to [rowBlock]int32) {
	for i := range to {
		to[i] = Tile
	}
	return from, to
}()

// runWhole takes tile t into the states at, at+1, … of rows r to r+n, which see all
// of it.
func (c *Call) runWhole(s *Scratch, t, r, n int, st *State, at int) {
	logits, scale := c.logits(s, t, r, n)
	s.softmax(logits, scale, wholeFrom[:n], wholeTo[:n], st, at, n)
	s.weigh(c, t, 0, n, 0, Tile, st, at)
}

// runPart is runWhole for rows that each see some of the tile.
func (c *Call) runPart(s *Scratch, t, r, n int, st *State, at int) {
	for i := range n {
		s.from[i] = int32(max(int(c.Lo[r+i])-t*Tile, 0))
		s.to[i] = int32(min(int(c.Hi[r+i])-t*Tile, Tile))
	}
	logits, scale := c.logits(s, t, r, n)
	s.softmax(logits, scale, s.from[:n], s.to[:n], st, at, n)
	for i := 0; i < n; {
		j := i + 1
		for j < n && s.from[j] == s.from[i] && s.to[j] == s.to[i] {
			j++
		}
		s.weigh(c, t, i, j-i, int(s.from[i]), int(s.to[i]), st, at+i)
		i = j
	}
}

// logits computes the logits of rows r to r+n with tile t, but for a factor scale.
func (c *Call) logits(s *Scratch, t, r, n int) (logits []float32, scale float32) {
	logits = s.logits[:n*Tile]
	s.scores(c, t, r, n, logits)
	if c.Softcap == 0 && c.Slopes == nil && c.Bias == nil {
		return logits, c.Scale
	}
	c.adjust(logits, t, r, n)
	return logits, 1
}

// Scratch is the working memory of one thread. It may serve any number of calls, one
// after the other.
type Scratch struct {
	maxRows, maxDK, maxDV int
	avx2                  bool
	logits, alpha, ref    []float32
	from, to              []int32
	keys, values          []float32 // a tile as float32: [dk][16] and [16][stride(dv)]
	keysOf, valuesOf      int       // the tile they hold, -1 for none
	part, total           State
	near                  []float64 // the logits of a row that can have weight, of RunSparse
}

// NewScratch makes working memory for calls of up to maxRows rows (or of any number,
// if maxRows is at least 64), key size maxDK and value size maxDV.
func NewScratch(maxRows, maxDK, maxDV int) *Scratch {
	n := min(maxRows, rowBlock)
	st := StateFloats(n, maxDV)
	return &Scratch{
		maxRows: n, maxDK: maxDK, maxDV: maxDV, avx2: useAVX2,
		logits: make([]float32, n*Tile), alpha: make([]float32, stride(n)), ref: make([]float32, stride(n)),
		from: make([]int32, n), to: make([]int32, n),
		keys: make([]float32, maxDK*Tile), values: make([]float32, Tile*stride(maxDV)),
		part: StateOf(make([]float32, st), n, maxDV), total: StateOf(make([]float32, st), n, maxDV),
	}
}

// useAVX2 is decided once at start; tests change it.
var useAVX2 = haveAVX2()

// halves views memory as 16-bit elements.
func halves(b []byte) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

// floats views memory as float32.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
