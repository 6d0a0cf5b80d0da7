package sched

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kv"
)

// stored is what a device would hold: for each block and slot the token and position.
type stored map[[2]int32][2]int32

// write checks a batch and stores its rows; a position that is read must hold
// the token that the task has there.
func (m stored) write(t *testing.T, b *batch.Batch, tasks []*Task, l Limits) {
	t.Helper()
	if b.Rows() > l.Rows || len(b.Seqs) > l.Seqs || len(b.Seqs) != len(tasks) {
		t.Fatalf("%d rows, %d sequences, %d tasks", b.Rows(), len(b.Seqs), len(tasks))
	}
	row := int32(0)
	for i, q := range b.Seqs {
		m.memory(t, &q, tasks[i])
		if q.Row != row || q.N < 1 || int(q.Start) != tasks[i].Done() {
			t.Fatalf("sequence %d: %+v, done %d", i, q, tasks[i].Done())
		}
		row += q.N
		for pos := q.Start; pos < q.Start+q.N; pos++ {
			r := q.Row + pos - q.Start
			if b.Pos[r] != pos || b.Tokens[r] != tasks[i].Tokens[pos] {
				t.Fatalf("row %d is token %d at %d", r, b.Tokens[r], b.Pos[r])
			}
			block, ok := blockAt(q.Spans, pos)
			if !ok {
				t.Fatalf("position %d lies in no block", pos)
			}
			m[[2]int32{block, pos % batch.BlockTokens}] = [2]int32{tasks[i].Tokens[pos], pos}
		}
	}
	if int(row) != b.Rows() {
		t.Fatalf("sequences cover %d of %d rows", row, b.Rows())
	}
	for i, q := range b.Seqs {
		for pos := int32(0); pos < q.Start+q.N; pos++ {
			block, _ := blockAt(q.Spans, pos)
			if got := m[[2]int32{block, pos % batch.BlockTokens}]; got != [2]int32{tasks[i].Tokens[pos], pos} {
				t.Fatalf("task %d reads %v at position %d, want token %d", tasks[i].ID, got, pos, tasks[i].Tokens[pos])
			}
		}
	}
}

// states is what a device would hold in its slots: the tokens that went in.
type states map[int32][]int32

// write does the copies of a batch, then holds each sequence's state against
// the tokens that it has.
func (m states) write(t *testing.T, b *batch.Batch, tasks []*Task, l Limits) {
	t.Helper()
	for _, c := range b.Copies {
		m[c.To] = slices.Clone(m[c.From])
	}
	seen := map[int32]bool{}
	for i, q := range b.Seqs {
		if l.States == 0 {
			if q.State != -1 {
				t.Fatalf("task %d has state slot %d of none", q.ID, q.State)
			}
			continue
		}
		if q.State < 0 || int(q.State) >= l.States || seen[q.State] {
			t.Fatalf("task %d has state slot %d of %d, or not alone", q.ID, q.State, l.States)
		}
		seen[q.State] = true
		if q.Start == 0 {
			m[q.State] = nil
		}
		if !slices.Equal(m[q.State], tasks[i].Tokens[:q.Start]) {
			t.Fatalf("task %d goes on from the state of %v, its tokens are %v", q.ID, m[q.State], tasks[i].Tokens[:q.Start])
		}
		m[q.State] = append(m[q.State], b.Tokens[q.Row:q.Row+q.N]...)
	}
}

// copy does the copies of a batch.
func (m stored) copy(b *batch.Batch) {
	for _, c := range b.Blocks {
		for slot := range int32(batch.BlockTokens) {
			m[[2]int32{c.To, slot}] = m[[2]int32{c.From, slot}]
		}
	}
}

// encode stores the rows of sources, each of which must be whole.
func (m stored) encode(t *testing.T, b *batch.Batch, tasks []*Task, l Limits) {
	t.Helper()
	if b.Rows() > max(l.Rows, l.Source) || len(b.Seqs) > l.Seqs || len(b.Seqs) != len(tasks) || len(b.Out) > 0 {
		t.Fatalf("%d rows, %d sequences, %d tasks, %d wanted", b.Rows(), len(b.Seqs), len(tasks), len(b.Out))
	}
	for i, q := range b.Seqs {
		if !slices.Equal(b.Tokens[q.Row:q.Row+q.N], tasks[i].Source) || q.Start != 0 || len(q.Memory) != 0 {
			t.Fatalf("sequence %d encodes %v of %v from %d", i, b.Tokens[q.Row:q.Row+q.N], tasks[i].Source, q.Start)
		}
		for pos := range q.N {
			block, ok := blockAt(q.Spans, pos)
			if !ok {
				t.Fatalf("position %d of a source lies in no block", pos)
			}
			m[[2]int32{block, pos % batch.BlockTokens}] = [2]int32{tasks[i].Source[pos], pos}
		}
	}
}

// memory checks that a sequence reads its own source.
func (m stored) memory(t *testing.T, q *batch.Seq, x *Task) {
	t.Helper()
	if q.MemoryLen() != len(x.Source) {
		t.Fatalf("task %d reads %d rows of a source of %d", x.ID, q.MemoryLen(), len(x.Source))
	}
	for pos := range int32(len(x.Source)) {
		block, _ := blockAt(q.Memory, pos)
		if got := m[[2]int32{block, pos % batch.BlockTokens}]; got != [2]int32{x.Source[pos], pos} {
			t.Fatalf("task %d reads %v at position %d of its source, want token %d", x.ID, got, pos, x.Source[pos])
		}
	}
}

func blockAt(spans []batch.Span, pos int32) (int32, bool) {
	for _, sp := range spans {
		if pos >= sp.Pos && pos < sp.Pos+sp.N {
			return sp.Block, true
		}
	}
	return 0, false
}

// TestRandomTraffic: whatever arrives, forks and leaves, blocks are never lost,
// each row reads what its own tokens stored, the oldest running task gets a row
// in every step, and all tasks end.
func TestRandomTraffic(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := Limits{Rows: 1 + r.IntN(40), Seqs: 1 + r.IntN(8), Tokens: 20 + r.IntN(100)}
		spare := 0
		if seed%4 == 1 {
			l.Source = 1 + r.IntN(60)
			spare = (l.Source + 15) / 16
		} else if seed%3 != 0 {
			l.States = 1 + r.IntN(10)
		}
		traffic(t, r, New(l, kv.NewPool((l.Tokens+15)/16+spare+r.IntN(12))), l)
	}
}

func traffic(t *testing.T, r *rand.Rand, s *Scheduler, l Limits) {
	var b batch.Batch
	var tasks []*Task
	mem, left, token, slots := stored{}, 60, int32(0), states{}
	for steps := 0; ; steps++ {
		for left > 0 && r.IntN(3) == 0 {
			left--
			x := &Task{Prompt: 1 + r.IntN(l.Tokens), Max: r.IntN(30), AllOut: r.IntN(4) == 0}
			for range x.Prompt {
				token++
				x.Tokens = append(x.Tokens, token)
			}
			for range min(l.Source, 1+r.IntN(60)) {
				token++
				x.Source = append(x.Source, token)
			}
			if err := s.Add(x); (err != nil) != (x.Prompt >= l.Tokens) {
				t.Fatalf("a prompt of %d in a context of %d: %v", x.Prompt, l.Tokens, err)
			}
		}
		tasks = s.Next(&b, tasks)
		if len(tasks) == 0 {
			if st := s.Stats(); st.Waiting+st.Running > 0 {
				t.Fatalf("nothing is done for %+v", st)
			} else if left == 0 {
				break
			}
			continue
		}
		if b.Encode {
			mem.encode(t, &b, tasks, l)
			for _, x := range tasks {
				s.Encoded(x)
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !slices.Contains(tasks, s.running[0]) {
			t.Fatalf("the oldest task (%d) waits", s.running[0].ID)
		}
		mem.write(t, &b, tasks, l)
		slots.write(t, &b, tasks, l)
		for i, x := range tasks {
			s.Computed(x, int(b.Seqs[i].N))
			if x.Done() < len(x.Tokens) {
				continue
			}
			for range r.IntN(2) * r.IntN(3) * r.IntN(2) {
				f := s.Fork(x)
				token++
				if !s.Commit(f, token) {
					s.Remove(f)
				}
			}
			token++
			if !s.Commit(x, token) || r.IntN(40) == 0 {
				s.Remove(x)
			}
		}
		for _, x := range append(append([]*Task{}, s.waiting...), s.running...) {
			if r.IntN(150) == 0 {
				s.Remove(x)
			}
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if steps > 200000 {
			t.Fatalf("no end: %+v", s.Stats())
		}
	}
	if s.pool.Free() != s.pool.Total() || s.slots != nil && s.slots.Free() != s.slots.Total() {
		t.Fatalf("%d of %d blocks are free at the end, state slots: %+v", s.pool.Free(), s.pool.Total(), s.slots)
	}
}

// TestSteadyStep: a step of running answers allocates nothing.
func TestSteadyStep(t *testing.T) {
	s := New(Limits{Rows: 64, Seqs: 16, Tokens: 4096}, kv.NewPool(2000))
	for range 8 {
		if err := s.Add(&Task{Tokens: append(make([]int32, 0, 4096), 1, 2, 3), Prompt: 3, Max: 4000}); err != nil {
			t.Fatal(err)
		}
	}
	var b batch.Batch
	var tasks []*Task
	step := func() {
		tasks = s.Next(&b, tasks)
		for i, x := range tasks {
			s.Computed(x, int(b.Seqs[i].N))
			s.Commit(x, 5)
		}
	}
	for range 600 { // until the lists of blocks have room
		step()
	}
	if n := testing.AllocsPerRun(100, step); n > 1 {
		t.Errorf("a step allocates %.0f times", n)
	}
}
