package sched

import (
	"github.com/inferflow/inferflow/internal/batch"
)

// Group is a request of several sequences that go on together, as the beams of
// a search do: each step of all of them decides what becomes of each. It begins
// as one task, which is added with the group; Branch and Follow change its
// tasks. When memory is short the whole group parks: it begins again from the
// first task's prompt, and Restarts counts that.
type Group struct {
	Width    int // tasks at most
	Reserve  int // blocks that its tasks take at most, all together
	Restarts int

	tasks []*Task
}

// NewGroup makes the group of a request with so many tokens of source and
// prompt, which width sequences follow that have most further tokens each.
func NewGroup(width, source, prompt, most int) *Group {
	return &Group{Width: width, Reserve: GroupBlocks(width, source, prompt, most)}
}

// GroupBlocks is the number of blocks that such a group takes at most. Those of
// the source and the full ones of the prompt are shared; a last token is chosen
// and not stored.
func GroupBlocks(width, source, prompt, most int) int {
	shared := prompt / batch.BlockTokens
	return blocksOf(source) + shared + width*(blocksOf(prompt+most-1)-shared)
}

// GroupTokens is the largest number of tokens that may follow the prompt in
// total blocks; below 1 if there is no room for one.
func GroupTokens(width, source, prompt, total int) int {
	shared := prompt / batch.BlockTokens
	left := total - blocksOf(source) - shared
	if left < 0 {
		return 0
	}
	return (shared+left/max(1, width))*batch.BlockTokens - prompt + 1
}

// Branch is Fork for a task of a group. It is nil where no state slot is free:
// then the group has parked.
func (s *Scheduler) Branch(t *Task) *Task {
	if s.slots != nil && s.slots.Free() == 0 {
		s.park(t)
		return nil
	}
	f := s.Fork(t)
	f.Group = t.Group
	f.Group.tasks = append(f.Group.tasks, f)
	return f
}

// Follow makes t, a running task whose own tokens nobody wants any more, share
// all positions of parent, another of its group. Both are computed; the caller
// then commits a token to each.
func (s *Scheduler) Follow(t, parent *Task) {
	t.Tokens = append(t.Tokens[:0], parent.Tokens[:parent.done]...)
	t.done = parent.done
	t.seq.Follow(parent.seq)
	if t.state >= 0 {
		s.copies = append(s.copies, batch.StateCopy{From: parent.state, To: t.state})
	}
}

// restart drops all tasks of a group but the first, which begins again from its
// prompt, and returns that one.
func (s *Scheduler) restart(g *Group) *Task {
	for len(g.tasks) > 1 {
		s.Remove(g.tasks[len(g.tasks)-1])
	}
	g.Restarts++
	t := g.tasks[0]
	t.Tokens = t.Tokens[:t.Prompt]
	return t
}
