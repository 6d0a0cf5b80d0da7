package ref

import (
	"fmt"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// Memory is what operations keep of a sequence between calls, beside the keys
// and values of attention.
type Memory interface {
	// State returns the Size values of a CacheState as they stand before the
	// rows of q, zeros where q starts at 0; the caller leaves in them the state
	// after its rows. It is asked once a run for each cache and sequence.
	State(cache int, q *batch.Seq) ([]float32, error)
	// Row returns the KeyDim values of a CacheRows at an absolute position of q,
	// below q.Start + q.N, to be read or written.
	Row(cache int, q *batch.Seq, pos int) ([]float32, error)
}

// ownMemory keeps everything by sequence id.
type ownMemory struct {
	g    *graph.Graph
	seqs map[int32]*kept
}

// kept is what is kept of one sequence, by cache.
type kept struct {
	state [][]float32
	at    []int32 // the position that each state stands at
	rows  [][]float32
}

func (m *ownMemory) of(id int32) *kept {
	k := m.seqs[id]
	if k == nil {
		n := len(m.g.Caches)
		k = &kept{make([][]float32, n), make([]int32, n), make([][]float32, n)}
		m.seqs[id] = k
	}
	return k
}

// State implements Memory.
func (m *ownMemory) State(cache int, q *batch.Seq) ([]float32, error) {
	k := m.of(q.ID)
	switch {
	case q.Start == 0:
		k.state[cache] = make([]float32, m.g.Caches[cache].Size)
	case k.state[cache] == nil || k.at[cache] != q.Start:
		return nil, fmt.Errorf("sequence %d starts at position %d, its state stands at %d", q.ID, q.Start, k.at[cache])
	}
	k.at[cache] = q.Start + q.N
	return k.state[cache], nil
}

// Row implements Memory.
func (m *ownMemory) Row(cache int, q *batch.Seq, pos int) ([]float32, error) {
	k, d := m.of(q.ID), m.g.Caches[cache].KeyDim
	if pos < 0 || pos >= int(q.Start+q.N) {
		return nil, fmt.Errorf("sequence %d has no position %d", q.ID, pos)
	}
	if need := (pos + 1) * d; need > len(k.rows[cache]) {
		k.rows[cache] = append(k.rows[cache], make([]float32, need-len(k.rows[cache]))...)
	}
	return k.rows[cache][pos*d : (pos+1)*d], nil
}
