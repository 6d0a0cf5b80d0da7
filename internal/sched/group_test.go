package sched

import (
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kv"
)

// crowd is a group with what its owner knows of it.
type crowd struct {
	g        *Group
	tasks    []*Task
	restarts int
}

// TestGroups mixes groups that branch at random with other tasks, where blocks
// and state slots are short: nothing is lost, each row reads what its own tokens
// stored, and all end.
func TestGroups(t *testing.T) {
	restarts := 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 5))
		l := Limits{Rows: 8 + r.IntN(40), Seqs: 4 + r.IntN(8), Tokens: 80}
		spare := 0
		switch seed % 3 {
		case 0:
			l.States = 4 + r.IntN(5)
		case 1:
			l.Source, spare = 40, 3
		}
		// The least that the largest group and the longest task need.
		least := 5 + spare
		for prompt := 1; prompt <= 40; prompt++ {
			least = max(least, GroupBlocks(4, l.Source, prompt, 39))
		}
		restarts += crowds(t, r, New(l, kv.NewPool(least+r.IntN(8))), l)
	}
	if restarts == 0 {
		t.Error("no group had to begin again")
	}
}

func crowds(t *testing.T, r *rand.Rand, s *Scheduler, l Limits) (restarts int) {
	var b batch.Batch
	var tasks []*Task
	mem, slots, token := stored{}, states{}, int32(0)
	groups := map[*Group]*crowd{}
	for left, steps := 40, 0; ; steps++ {
		if steps > 100000 {
			t.Fatalf("no end: %+v", s.Stats())
		}
		for left > 0 && r.IntN(3) == 0 {
			left--
			x := addRandom(t, r, s, l, &token)
			if x.Group != nil {
				groups[x.Group] = &crowd{g: x.Group, tasks: []*Task{x}}
			}
		}
		tasks = s.Next(&b, tasks)
		mem.copy(&b)
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
			continue
		}
		mem.write(t, &b, tasks, l)
		slots.write(t, &b, tasks, l)
		for i, x := range tasks {
			if s.Computed(x, int(b.Seqs[i].N)); x.Group != nil && x.Done() == len(x.Tokens) {
				restarts += groups[x.Group].step(r, s, x, &token)
			} else if token++; x.Group == nil && x.Done() == len(x.Tokens) && !s.Commit(x, token) {
				s.Remove(x)
			}
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if s.pool.Free() != s.pool.Total() || s.slots != nil && s.slots.Free() != s.slots.Total() {
		t.Fatalf("%d of %d blocks are free at the end, state slots: %+v", s.pool.Free(), s.pool.Total(), s.slots)
	}
	return restarts
}

// addRandom adds a task or, half the time, the first of a group.
func addRandom(t *testing.T, r *rand.Rand, s *Scheduler, l Limits, token *int32) *Task {
	x := &Task{Prompt: 1 + r.IntN(40), Max: 1 + r.IntN(39)}
	for range x.Prompt {
		*token++
		x.Tokens = append(x.Tokens, *token)
	}
	if l.Source > 0 {
		for range 1 + r.IntN(l.Source) {
			*token++
			x.Source = append(x.Source, *token)
		}
	}
	if r.IntN(2) == 0 {
		x.Group = NewGroup(2+r.IntN(3), len(x.Source), x.Prompt, x.Max)
	}
	if err := s.Add(x); err != nil {
		t.Fatal(err)
	}
	return x
}

// step branches at random once all tasks are computed.
func (c *crowd) step(r *rand.Rand, s *Scheduler, x *Task, token *int32) (restarts int) {
	if c.restarts != c.g.Restarts {
		restarts = c.g.Restarts - c.restarts
		c.restarts, c.tasks = c.g.Restarts, []*Task{x}
	}
	for _, o := range c.tasks {
		if o.Done() < len(o.Tokens) {
			return restarts
		}
	}
	parents := make([]*Task, 1+r.IntN(c.g.Width))
	live := map[*Task]bool{}
	for i := range parents {
		parents[i] = c.tasks[r.IntN(len(c.tasks))]
		live[parents[i]] = true
	}
	var idle, next []*Task
	for _, o := range c.tasks {
		if !live[o] {
			idle = append(idle, o)
		}
	}
	for _, p := range parents {
		switch {
		case live[p]:
			live[p], next = false, append(next, p)
		case len(idle) > 0:
			s.Follow(idle[0], p)
			next, idle = append(next, idle[0]), idle[1:]
		default:
			f := s.Branch(p)
			if f == nil {
				return restarts
			}
			next = append(next, f)
		}
	}
	for _, o := range idle {
		s.Remove(o)
	}
	more := true
	for _, o := range next {
		*token++
		more = s.Commit(o, *token)
	}
	c.tasks = next
	if !more || r.IntN(60) == 0 {
		for _, o := range next {
			s.Remove(o)
		}
	}
	return restarts
}

// TestGroupSizes: the tokens that fit are those whose blocks do.
func TestGroupSizes(t *testing.T) {
	for width := 1; width < 6; width++ {
		for prompt := 1; prompt < 40; prompt++ {
			for total := range 30 {
				n := GroupTokens(width, 20, prompt, total)
				if n >= 1 && GroupBlocks(width, 20, prompt, n) > total || n >= 0 && GroupBlocks(width, 20, prompt, n+1) <= total {
					t.Fatalf("%d sequences after %d tokens in %d blocks: %d tokens", width, prompt, total, n)
				}
			}
		}
	}
}
