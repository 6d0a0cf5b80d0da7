package cpu

import (
	"fmt"
	"math"
	"sort"
	"unsafe"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/sys"
)

// states keeps the recurrent states of a stage: a slot a sequence, and in each
// slot two versions. A run reads the version that stands at the position where
// its sequence goes on and writes the other, so that a run that was refused,
// or is to be diagnosed, can be repeated.
type states struct {
	arena *sys.Arena
	mem   []float32
	size  int        // values of one version, all caches of the stage
	at    []int      // offset of each cache in a version, −1: not of this stage
	pos   [][2]int32 // by slot: where each version stands, −1: nowhere
	now   []uint8    // by slot: the version that was written last
	write []uint8    // by slot: the version that this run writes
	zeros []float32  // what stands before the first position, for the widest convolution
	seq   []int32    // by row: the index of its sequence
	seen  []bool     // by slot: a sequence of this batch has it
}

// StateBytes is what the states of one sequence take on this device.
func StateBytes(caches []graph.Cache, used func(int) bool) int64 {
	n := int64(0)
	for i, c := range caches {
		if used(i) && c.Kind == graph.CacheState && !c.Memory {
			n += 2 * 4 * int64(c.Size+stateAlign-1) &^ (stateAlign - 1)
		}
	}
	return n
}

const stateAlign = 16 // values: caches begin at a line of the processor's cache

func (s *Stage) layOutStates(used func(int) bool) error {
	st := &s.states
	for i, c := range s.p.Graph.Caches {
		st.at = append(st.at, -1)
		if used(i) && c.Kind == graph.CacheState && !c.Memory && c.Size > 0 {
			st.at[i] = st.size
			st.size += (c.Size + stateAlign - 1) &^ (stateAlign - 1)
		}
	}
	st.seq = make([]int32, 0, s.o.Limits.Capacity())
	if st.size == 0 {
		return nil
	}
	n := s.o.Limits.States
	if n < 1 || st.size > math.MaxInt/16/n {
		return fmt.Errorf("cpu: the program keeps states of %d values a sequence; no room for %d sequences", st.size, n)
	}
	a, err := sys.NewArena(max(64, 8*n*st.size))
	if err != nil {
		return fmt.Errorf("states of %d sequences: %w", n, err)
	}
	st.arena = a
	st.pos, st.now, st.write, st.seen = make([][2]int32, n), make([]uint8, n), make([]uint8, n), make([]bool, n)
	for i := range st.pos {
		st.pos[i] = [2]int32{-1, -1}
	}
	st.mem, err = a.Float32s(2 * n * st.size)
	return err
}

// version is the memory of a cache in one version of a slot.
func (st *states) version(slot int32, v uint8, from, n int) []float32 {
	o := (2*int(slot)+int(v))*st.size + from
	return st.mem[o : o+n : o+n]
}

// copies does the copies of a batch.
func (st *states) copies(list []batch.StateCopy) error {
	if st.size == 0 {
		return nil // another stage keeps them
	}
	for _, c := range list {
		if !st.has(c.From) || !st.has(c.To) {
			return fmt.Errorf("cpu: states are copied from slot %d to %d of %d", c.From, c.To, len(st.now))
		}
	}
	for _, c := range list {
		if c.From == c.To {
			continue
		}
		v := st.now[c.From]
		copy(st.version(c.To, 0, 0, st.size), st.version(c.From, v, 0, st.size))
		st.now[c.To], st.pos[c.To] = 0, [2]int32{st.pos[c.From][v], -1}
	}
	return nil
}

func (st *states) has(slot int32) bool { return slot >= 0 && int(slot) < len(st.now) }

// check refuses sequences without a slot of their own, or that do not go on
// where their state stands.
func (st *states) check(b *batch.Batch) error {
	if st.size == 0 || b.Encode {
		return nil
	}
	clear(st.seen)
	for i := range b.Seqs {
		q := &b.Seqs[i]
		switch {
		case !st.has(q.State):
			return fmt.Errorf("cpu: sequence %d has state slot %d; there are %d", q.ID, q.State, len(st.now))
		case st.seen[q.State]:
			return fmt.Errorf("cpu: state slot %d belongs to two sequences of the batch", q.State)
		case q.Start > 0 && st.pos[q.State][0] != q.Start && st.pos[q.State][1] != q.Start:
			return fmt.Errorf("cpu: sequence %d goes on at position %d; its states stand at %v", q.ID, q.Start, st.pos[q.State])
		}
		st.seen[q.State] = true
	}
	return nil
}

// begin chooses the version that each sequence writes.
func (st *states) begin(b *batch.Batch) {
	st.seq = st.seq[:0]
	for i := range b.Seqs {
		for range b.Seqs[i].N {
			st.seq = append(st.seq, int32(i))
		}
	}
	if st.size == 0 || b.Encode {
		return
	}
	for i := range b.Seqs {
		q := &b.Seqs[i]
		p := &st.pos[q.State]
		if q.Start == 0 {
			*p = [2]int32{-1, -1}
		}
		w := uint8(0)
		if p[0] == q.Start {
			w = 1
		}
		st.write[q.State], p[w] = w, -1
	}
}

// end makes the written versions the current ones.
func (st *states) end(b *batch.Batch) {
	if st.size == 0 || b.Encode {
		return
	}
	for i := range b.Seqs {
		q := &b.Seqs[i]
		w := st.write[q.State]
		st.pos[q.State][w], st.now[q.State] = q.Start+q.N, w
	}
}

// pair is a part of a cache's state before and after this run's rows of q;
// before is nil where the sequence starts.
func (st *states) pair(cache int, q *batch.Seq, from, n int) (before, after []float32) {
	w, at := st.write[q.State], st.at[cache]+from
	if q.Start > 0 {
		before = st.version(q.State, 1-w, at, n)
	}
	return before, st.version(q.State, w, at, n)
}

// State implements ref.Memory.
func (s *Stage) State(cache int, q *batch.Seq) ([]float32, error) {
	size := s.p.Graph.Caches[cache].Size
	if size == 0 {
		return nil, nil
	}
	if s.p.Graph.Caches[cache].Memory { // of a source, which is computed whole
		return make([]float32, size), nil
	}
	if s.states.at[cache] < 0 {
		return nil, fmt.Errorf("cache %d is not of this stage", cache)
	}
	before, after := s.states.pair(cache, q, 0, size)
	if before == nil {
		clear(after)
	} else {
		copy(after, before)
	}
	return after, nil
}

// Row implements ref.Memory.
func (s *Stage) Row(cache int, q *batch.Seq, pos int) ([]float32, error) {
	c := &s.lay.cache[cache]
	i := sort.Search(len(q.Spans), func(i int) bool { return int(q.Spans[i].Pos) > pos }) - 1
	if !c.used || pos < 0 || i < 0 || pos >= int(q.Spans[i].Pos+q.Spans[i].N) {
		return nil, fmt.Errorf("sequence %d holds no row of cache %d at position %d", q.ID, cache, pos)
	}
	o := int(q.Spans[i].Block)*s.lay.block + c.k + pos%batch.BlockTokens*c.KeyDim*4
	return unsafe.Slice((*float32)(unsafe.Pointer(&s.place.mem[o])), c.KeyDim), nil
}

// usedCaches says which caches the steps of a program read or write.
func usedCaches(p *program.Program) func(int) bool {
	used := map[int]bool{}
	for i := range p.Steps {
		if c, ok := cacheOf(p, &p.Steps[i]); ok {
			used[c] = true
		}
	}
	return func(i int) bool { return used[i] }
}

// cacheOf is the cache that a step reads or writes.
func cacheOf(p *program.Program, st *program.Step) (int, bool) {
	switch x := st.Body.(type) {
	case *program.QKV:
		return x.Cache, true
	case *program.Attention:
		return x.Attr.Cache, true
	case *program.Index:
		return x.Attr.Cache, true
	case *program.Put:
		return x.Cache, true
	case *program.Conv1D:
		return x.Attr.Cache, true
	case *program.Recurrent:
		return x.Cache(), true
	case *program.OpStep:
		return graph.CacheOf(p.Graph.Nodes[x.Node])
	}
	return 0, false
}
