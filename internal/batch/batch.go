// Package batch holds what one step of the engine gives to a device: tokens,
// positions, sequences and the rows whose logits are wanted. It imports
// nothing of the project. Read Batch first.
package batch

import (
	"errors"
	"sync/atomic"
)

// ErrStopped is of a batch that was given up by Batch.Stop.
var ErrStopped = errors.New("nobody waits for the batch any more")

// BlockTokens is the number of token positions of a key/value block.
const BlockTokens = 16

// Batch is one step: rows of several sequences, flat. It is reused from step
// to step and owned by the caller; devices only read it.
type Batch struct {
	Tokens []int32     // token id of each row
	Types  []int32     // token type of each row; empty: all 0
	Pos    []int32     // absolute position of each row
	Seqs   []Seq       // in order of their rows; together they cover all rows
	Out    []int32     // rows whose logits are wanted, ascending
	Copies []StateCopy // done in order before anything else; a batch without rows may hold them alone
	Blocks []BlockCopy // likewise
	// Encode: the rows are sources of the encoder, each whole, and fill what the
	// decoder reads of them; no row has logits.
	Encode bool
	// Stop is set by another goroutine when nobody waits for the batch any more: it
	// then ends early with ErrStopped, like a batch that was refused. nil: never.
	Stop *atomic.Bool
}

// Stopped says that nobody waits for the batch any more.
func (b *Batch) Stopped() bool { return b.Stop != nil && b.Stop.Load() }

// StateCopy gives the slot To what the slot From holds: a fork goes on from
// its parent's state.
type StateCopy struct{ From, To int32 }

// BlockCopy gives the block To what the block From holds, of all caches: a
// sequence that writes into a tile that others read too goes on in a copy.
type BlockCopy struct{ From, To int32 }

// Seq is the part of one sequence in a batch.
type Seq struct {
	ID      int32  // identifies the sequence between steps
	Row     int32  // first row
	N       int32  // number of rows
	Start   int32  // absolute position of the first row
	State   int32  // slot of the recurrent states, −1: the model keeps none; a sequence that starts at 0 begins from zeros
	Length  int32  // number of tokens that choose a length-dependent rotary table (the request's prompt)
	Counted int32  // tokens before Start that positions by count count (see Places); Start where nobody looked for others
	Skip    int32  // first rows that pooling leaves out
	Spans   []Span // blocks that hold positions 0 … Start+N−1, ascending
	Memory  []Span // blocks of the encoded source that the decoder reads; none where it encodes
}

// MemoryLen is the number of rows of the encoded source.
func (q *Seq) MemoryLen() int {
	if len(q.Memory) == 0 {
		return 0
	}
	last := q.Memory[len(q.Memory)-1]
	return int(last.Pos + last.N)
}

// Span says that a block holds the keys and values of N positions from Pos on,
// each in slot position mod BlockTokens. A span never crosses a multiple of
// BlockTokens; two spans may share one tile of positions (a shared prompt that
// ends inside a tile, and the answer that goes on).
type Span struct {
	Block int32
	Pos   int32
	N     int32
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Tokens, b.Types, b.Pos, b.Seqs, b.Out, b.Copies, b.Encode = b.Tokens[:0], b.Types[:0], b.Pos[:0], b.Seqs[:0], b.Out[:0], b.Copies[:0], false
	b.Blocks, b.Stop = b.Blocks[:0], nil
}

// Places writes to dst, one number a row, how many tokens of the row's sequence
// that are not pad stand before it; for a row that is pad itself, −1.
func (b *Batch) Places(dst []int32, pad int32) {
	for i := range b.Seqs {
		q := &b.Seqs[i]
		n := q.Counted
		for r := q.Row; r < q.Row+q.N; r++ {
			if b.Tokens[r] == pad {
				dst[r] = -1
				continue
			}
			dst[r] = n
			n++
		}
	}
}

// Rows is the number of rows.
func (b *Batch) Rows() int { return len(b.Tokens) }
