// Package kv keeps account of key/value blocks: which are free, who shares
// them, which positions of a sequence lie where. It knows ids, never bytes, and
// must never import devices or models. Read Sequence first.
package kv

import (
	"errors"
	"fmt"

	"github.com/inferflow/inferflow/internal/batch"
)

// ErrFull says that the pool has no free block.
var ErrFull = errors.New("kv: no free block")

// Pool hands out blocks of batch.BlockTokens positions and counts references.
type Pool struct {
	free []int32
	refs []int32
}

// NewPool makes a pool of n blocks, numbered from 0.
func NewPool(n int) *Pool {
	p := &Pool{refs: make([]int32, n), free: make([]int32, n)}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i)
	}
	return p
}

// Total and Free are numbers of blocks.
func (p *Pool) Total() int { return len(p.refs) }

// Free is the number of blocks that nobody holds.
func (p *Pool) Free() int { return len(p.free) }

func (p *Pool) take() (int32, error) {
	if len(p.free) == 0 {
		return 0, ErrFull
	}
	b := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.refs[b] = 1
	return b, nil
}

func (p *Pool) drop(b int32) {
	if p.refs[b]--; p.refs[b] == 0 {
		p.free = append(p.free, b)
	}
}

// Check returns an error if the references and the free list contradict each
// other or do not match the given sequences, which must be all that are alive.
func (p *Pool) Check(seqs []*Sequence) error {
	want := make([]int32, len(p.refs))
	for _, s := range seqs {
		for _, sp := range s.spans {
			want[sp.Block]++
		}
	}
	for _, b := range p.free {
		if p.refs[b] != 0 {
			return fmt.Errorf("kv: free block %d has %d references", b, p.refs[b])
		}
	}
	used := 0
	for b, n := range p.refs {
		if n != want[b] {
			return fmt.Errorf("kv: block %d has %d references, %d sequences hold it", b, n, want[b])
		}
		if n > 0 {
			used++
		}
	}
	if used+len(p.free) != len(p.refs) {
		return fmt.Errorf("kv: %d blocks used and %d free of %d", used, len(p.free), len(p.refs))
	}
	return nil
}

// Sequence is where the positions of one request lie. Blocks that others hold
// too are sealed: they are read, never written. What comes after them goes to
// blocks of this sequence alone, even inside the same 16 positions.
type Sequence struct {
	pool  *Pool
	spans []batch.Span
	n     int32 // positions held
}

// NewSequence makes an empty sequence of the pool.
func (p *Pool) NewSequence() *Sequence { return &Sequence{pool: p} }

// Len is the number of positions that the sequence has room for.
func (s *Sequence) Len() int { return int(s.n) }

// Spans lists the blocks in ascending order of positions. The slice belongs to
// the sequence and is valid until it changes.
func (s *Sequence) Spans() []batch.Span { return s.spans }

// Needs is the number of free blocks that n more positions take.
func (s *Sequence) Needs(n int) int {
	room := 0
	if k := len(s.spans); k > 0 && s.pool.refs[s.spans[k-1].Block] == 1 {
		room = int((batch.BlockTokens - s.n%batch.BlockTokens) % batch.BlockTokens)
	} else if k > 0 && s.n%batch.BlockTokens != 0 {
		// The tile goes on in a block of its own.
		first := min(n, int(batch.BlockTokens-s.n%batch.BlockTokens))
		if n == 0 {
			return 0
		}
		return 1 + (n-first+batch.BlockTokens-1)/batch.BlockTokens
	}
	return max(0, (n-room+batch.BlockTokens-1)/batch.BlockTokens)
}

// Grow makes room for n more positions. On ErrFull nothing has changed.
func (s *Sequence) Grow(n int) error {
	if s.Needs(n) > s.pool.Free() {
		return ErrFull
	}
	for n > 0 {
		slot := s.n % batch.BlockTokens
		k := len(s.spans) - 1
		if slot == 0 || s.pool.refs[s.spans[k].Block] > 1 {
			b, err := s.pool.take()
			if err != nil {
				return err
			}
			s.spans = append(s.spans, batch.Span{Block: b, Pos: s.n})
			k++
		}
		m := min(int32(n), batch.BlockTokens-slot)
		s.spans[k].N += m
		s.n += m
		n -= int(m)
	}
	return nil
}

// Truncate keeps the first n positions. A block that others hold too is kept
// as long as one of its positions is.
func (s *Sequence) Truncate(n int) {
	for k := len(s.spans) - 1; k >= 0 && s.n > int32(n); k-- {
		sp := &s.spans[k]
		if sp.Pos >= int32(n) {
			s.pool.drop(sp.Block)
			s.n = sp.Pos
			s.spans = s.spans[:k]
			continue
		}
		sp.N = int32(n) - sp.Pos
		s.n = int32(n)
	}
}

// Fork makes a sequence that shares all positions of s.
func (s *Sequence) Fork() *Sequence {
	f := &Sequence{pool: s.pool, n: s.n, spans: append([]batch.Span{}, s.spans...)}
	for _, sp := range f.spans {
		s.pool.refs[sp.Block]++
	}
	return f
}

// Own makes the last tile of the sequence its own where that is not full and
// others hold it too: a new block stands in its place, and the caller copies
// what the old one holds before anything is written. On ErrFull nothing has
// changed.
func (s *Sequence) Own() (c batch.BlockCopy, copied bool, err error) {
	k := len(s.spans) - 1
	if k < 0 || s.n%batch.BlockTokens == 0 || s.pool.refs[s.spans[k].Block] == 1 {
		return c, false, nil
	}
	c.From = s.spans[k].Block
	if c.To, err = s.pool.take(); err != nil {
		return c, false, err
	}
	s.pool.drop(c.From)
	s.spans[k].Block = c.To
	return c, true, nil
}

// Follow makes the sequence share all positions of o in place of its own.
func (s *Sequence) Follow(o *Sequence) {
	for _, sp := range o.spans {
		s.pool.refs[sp.Block]++
	}
	s.Release()
	s.spans, s.n = append(s.spans[:0], o.spans...), o.n
}

// Release gives all blocks back; the sequence is empty afterwards.
func (s *Sequence) Release() { s.Truncate(0) }
