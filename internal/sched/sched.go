// Package sched decides what each step computes: continuous batching with
// chunked prefill, as a pure state machine without clock, threads or models.
// It must never import devices, models or tokenizers. Read Scheduler first.
package sched

import (
	"fmt"
	"slices"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kv"
)

// Limits bounds a step.
type Limits struct {
	Rows   int // rows of a batch
	Seqs   int // sequences of a batch
	Tokens int // positions of one sequence
	States int // slots of recurrent states; 0: the model keeps none
	Source int // tokens of a source, encoded at once; 0: the model has no encoder
}

// Task is one sequence that is to be continued token by token.
type Task struct {
	ID     int32
	Tokens []int32 // prompt and what was committed since
	Prompt int     // length of the prompt
	Max    int     // tokens that may follow the prompt
	AllOut bool    // logits of every prompt position are wanted
	Source []int32 // what an encoder-decoder's encoder reads; never changed
	Group  *Group  // of sequences that go on together; nil: it stands alone

	seq    *kv.Sequence
	state  int32 // slot of its recurrent states, −1: none
	done   int   // positions whose keys and values are stored
	parked int   // how often the task lost its blocks

	memory  *kv.Sequence // blocks of the encoded source, shared by forks
	encoded bool
}

// Done is the number of positions that are computed.
func (t *Task) Done() int { return t.done }

// Parked says how often the task gave its blocks away and began again.
func (t *Task) Parked() int { return t.parked }

// Scheduler holds the waiting and the running tasks.
type Scheduler struct {
	limits  Limits
	pool    *kv.Pool
	slots   *kv.Slots         // nil: the model keeps no states
	copies  []batch.StateCopy // of forks since the last step
	blocks  []batch.BlockCopy // of tiles that members of groups shared
	waiting []*Task           // in order of arrival; parked tasks in front
	running []*Task           // in order of admission
	nextID  int32
	parks   int
}

// Stats are numbers for gauges.
type Stats struct {
	Waiting, Running       int
	BlocksUsed, BlocksFree int
	Parked                 int // tasks parked so far
}

// New makes a scheduler over a pool of blocks.
func New(l Limits, pool *kv.Pool) *Scheduler {
	s := &Scheduler{limits: l, pool: pool}
	if l.States > 0 {
		s.slots = kv.NewSlots(l.States)
	}
	return s
}

// Add queues a task. It fails if the task could never run.
func (s *Scheduler) Add(t *Task) error {
	n := len(t.Tokens) + max(t.Max, 1) - 1
	switch {
	case len(t.Tokens) == 0:
		return fmt.Errorf("sched: the prompt is empty")
	case len(t.Tokens) >= s.limits.Tokens:
		return fmt.Errorf("sched: %d prompt tokens do not fit the context of %d with an answer", len(t.Tokens), s.limits.Tokens)
	case min(n, s.limits.Tokens) > s.pool.Total()*batch.BlockTokens:
		return fmt.Errorf("sched: %d tokens need more key/value blocks than there are (%d)", n, s.pool.Total())
	}
	if err := s.checkSource(t, n); err != nil {
		return err
	}
	t.ID = s.nextID
	s.nextID++
	t.seq, t.memory, t.state = s.pool.NewSequence(), s.pool.NewSequence(), -1
	if t.Group != nil {
		t.Group.tasks = append(t.Group.tasks, t)
	}
	s.waiting = append(s.waiting, t)
	return nil
}

// Remove drops a task, wherever it stands, and frees its blocks.
func (s *Scheduler) Remove(t *Task) {
	s.waiting, s.running = without(s.waiting, t), without(s.running, t)
	if t.Group != nil {
		t.Group.tasks = without(t.Group.tasks, t)
	}
	if t.seq != nil {
		t.seq.Release()
		t.memory.Release()
		s.giveState(t)
	}
}

// Fork adds a running task that shares all positions of t, which must all be
// computed: it is called between Computed and Commit. The caller then commits a
// token to each. Where no state slot is free the new task waits, before all
// that were never admitted, and is computed from its beginning.
func (s *Scheduler) Fork(t *Task) *Task {
	f := &Task{ID: s.nextID, Tokens: append([]int32{}, t.Tokens[:t.done]...), Prompt: t.Prompt, Max: t.Max, Source: t.Source, state: -1}
	s.nextID++
	if !s.takeState(f) {
		f.seq, f.memory, f.parked = s.pool.NewSequence(), s.pool.NewSequence(), 1
		s.parks++
		i := 0
		for i < len(s.waiting) && s.waiting[i].parked > 0 {
			i++
		}
		s.waiting = slices.Insert(s.waiting, i, f)
		return f
	}
	if f.state >= 0 {
		s.copies = append(s.copies, batch.StateCopy{From: t.state, To: f.state})
	}
	f.seq, f.done, f.memory, f.encoded = t.seq.Fork(), t.done, t.memory.Fork(), t.encoded
	s.running = append(s.running, f)
	return f
}

// takeState gives t a state slot if the model has states; false if none is free.
func (s *Scheduler) takeState(t *Task) bool {
	if s.slots == nil {
		return true
	}
	slot, err := s.slots.Take()
	t.state = slot
	return err == nil
}

func (s *Scheduler) giveState(t *Task) {
	if t.state >= 0 {
		s.slots.Give(t.state)
		t.state = -1
	}
}

// Stats counts.
func (s *Scheduler) Stats() Stats {
	return Stats{len(s.waiting), len(s.running), s.pool.Total() - s.pool.Free(), s.pool.Free(), s.parks}
}

// Next fills b with the next step and returns the tasks of its sequences, in
// order; none if there is nothing to do. Running answers come first, one row
// each, then prompts in order of arrival, cut to what fits; the oldest running
// task always has a row. A task that needs a block when none is free makes the
// youngest running task park: it gives its blocks back and is computed again
// later, to the same result. Sources that wait to be encoded make a step of their own.
func (s *Scheduler) Next(b *batch.Batch, tasks []*Task) []*Task {
	b.Reset()
	b.Copies, s.copies = append(b.Copies, s.copies...), s.copies[:0]
	if tasks = s.encode(b, tasks[:0]); len(tasks) > 0 {
		return tasks
	}
	tasks = s.answers(b, tasks)
	b.Blocks, s.blocks = append(b.Blocks, s.blocks...), s.blocks[:0]
	for i := 0; i < len(s.running); i++ {
		t := s.running[i]
		if n := s.chunk(b, t); n > 0 && len(t.Tokens)-t.done > 1 {
			tasks = append(tasks, s.put(b, t, n))
		}
	}
	if s.limits.Source > 0 {
		if len(tasks) == 0 { // all were parked
			tasks = s.encode(b, tasks)
		}
		return tasks
	}
	return s.admit(b, tasks)
}

// admit lets waiting tasks in as far as rows and blocks go.
func (s *Scheduler) admit(b *batch.Batch, tasks []*Task) []*Task {
	for len(s.waiting) > 0 {
		t := s.waiting[0]
		n := s.chunk(b, t)
		if n == 0 || !s.admissible(t) || t.seq.Grow(len(t.Tokens)) != nil {
			break
		}
		s.takeState(t) // admissible has seen a free one
		s.waiting = s.waiting[1:]
		s.running = append(s.running, t)
		tasks = append(tasks, s.put(b, t, n))
	}
	return tasks
}

// answers puts a row of each running answer. All have their room before the
// first is put: a group that parks may hold any of them.
func (s *Scheduler) answers(b *batch.Batch, tasks []*Task) []*Task {
	l := s.limits
	if len(s.running) > 0 && len(s.running[0].Tokens)-s.running[0].done > 1 {
		l.Rows, l.Seqs = l.Rows-1, l.Seqs-1 // the oldest is a prompt and gets what is left
	}
	most := min(l.Rows, l.Seqs)
	for !s.grow(most) {
	}
	for i := 0; i < len(s.running) && b.Rows() < most; i++ {
		if t := s.running[i]; len(t.Tokens)-t.done == 1 {
			tasks = append(tasks, s.put(b, t, 1))
		}
	}
	return tasks
}

// grow makes room for the first answers that run, at most so many. It is false
// where it parked another, and then has to be called again.
func (s *Scheduler) grow(most int) bool {
	for i := 0; i < len(s.running) && most > 0; i++ {
		t := s.running[i]
		if len(t.Tokens)-t.done != 1 {
			continue
		}
		if s.room(t) != nil {
			s.park(s.running[len(s.running)-1])
			return false
		}
		most--
	}
	return true
}

// admissible wants a state slot, blocks for all tokens of t, and keeps one free for each
// running task, so that a newcomer does not park those that are under way.
func (s *Scheduler) admissible(t *Task) bool {
	if s.slots != nil && s.slots.Free() == 0 {
		return false
	}
	need := t.seq.Needs(len(t.Tokens)) + t.memory.Needs(len(t.Source))
	if g := t.Group; g != nil {
		if s.slots != nil && s.slots.Free() < g.Width {
			return false
		}
		if t.parked > 0 {
			need = max(need, g.Reserve)
		}
	}
	return need+len(s.running) <= s.pool.Free() || len(s.running) == 0 && need <= s.pool.Free()
}

// chunk is the number of rows of t that still fit.
func (s *Scheduler) chunk(b *batch.Batch, t *Task) int {
	if len(b.Seqs) >= s.limits.Seqs {
		return 0
	}
	return min(len(t.Tokens)-t.done, s.limits.Rows-b.Rows())
}

// room grows t to hold all its tokens, a member of a group in tiles of its own.
func (s *Scheduler) room(t *Task) error {
	n := len(t.Tokens) - t.seq.Len()
	if n > 0 && t.Group != nil {
		c, copied, err := t.seq.Own()
		if err != nil {
			return err
		}
		if copied {
			s.blocks = append(s.blocks, c)
		}
	}
	return t.seq.Grow(n)
}

// park takes the blocks of a running task, with its group all of them.
func (s *Scheduler) park(t *Task) {
	if t.Group != nil {
		t = s.restart(t.Group)
	}
	t.seq.Release()
	t.memory.Release()
	s.giveState(t)
	t.done, t.encoded = 0, false
	t.parked++
	s.parks++
	s.running = without(s.running, t)
	s.waiting = append([]*Task{t}, s.waiting...)
}

// put appends n rows of t to the batch.
func (s *Scheduler) put(b *batch.Batch, t *Task, n int) *Task {
	row := b.Rows()
	for i := 0; i < n; i++ {
		pos := t.done + i
		b.Tokens, b.Pos = append(b.Tokens, t.Tokens[pos]), append(b.Pos, int32(pos))
		if pos == len(t.Tokens)-1 || t.AllOut && pos < t.Prompt {
			b.Out = append(b.Out, int32(row+i))
		}
	}
	b.Seqs = append(b.Seqs, batch.Seq{ID: t.ID, Row: int32(row), N: int32(n), Start: int32(t.done), State: t.state, Length: int32(t.Prompt), Counted: int32(t.done), Spans: t.seq.Spans(),
		Memory: t.memory.Spans()})
	return t
}

// Computed says that the step's rows of t are stored.
func (s *Scheduler) Computed(t *Task, n int) { t.done += n }

// Commit appends the token that follows t. It reports false where no further
// token can be computed: the answer is as long as asked for, or the context full.
func (s *Scheduler) Commit(t *Task, id int32) bool {
	t.Tokens = append(t.Tokens, id)
	return len(t.Tokens)-t.Prompt < t.Max && len(t.Tokens) < s.limits.Tokens
}

// Check verifies the blocks and state slots of all tasks.
func (s *Scheduler) Check() error {
	var seqs []*kv.Sequence
	if s.slots != nil {
		var held []int32
		for _, t := range s.running {
			held = append(held, t.state)
		}
		if err := s.slots.Check(held); err != nil {
			return err
		}
	}
	for _, t := range append(append([]*Task{}, s.waiting...), s.running...) {
		seqs = append(seqs, t.seq, t.memory)
	}
	return s.pool.Check(seqs)
}

func without(ts []*Task, t *Task) []*Task {
	for i, x := range ts {
		if x == t {
			return append(ts[:i:i], ts[i+1:]...)
		}
	}
	return ts
}
