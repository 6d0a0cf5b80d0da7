package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

// search is a request that searches with beams: its tasks are the running beams.
type search struct {
	find     *sample.Search
	group    *sched.Group
	restarts int           // of the group, as far as they were seen
	tasks    []*sched.Task // by running beam
	spare    []*sched.Task // another slice for them
	scored   []bool        // by running beam
	held     []bool        // by task: it goes on with its own text, or another's
	left     int           // beams that are not scored
}

// checkBeams refuses a search that the engine's limits cannot hold; asked is
// the number of tokens that was asked for, 0 for as many as there is room for.
func (e *Engine) checkBeams(r *Request, asked int) error {
	n, l := r.Params.Beams.N, e.o.Limits
	if !r.Params.Beams.On() {
		return nil
	}
	switch {
	case r.N > n:
		return fmt.Errorf("engine: %w: %d answers were asked for; a search with %d beams finds %d", ErrRequest, r.N, n, n)
	case r.Counted < 0 || r.Counted >= len(r.Prompt):
		return fmt.Errorf("engine: %w: %d of %d tokens of the prompt count as answer", ErrRequest, r.Counted, len(r.Prompt))
	case n > l.Rows || n > l.Seqs:
		return fmt.Errorf("engine: %w: %d beams are rows of one batch, which has %d of %d sequences at most; ask for fewer beams", ErrRequest, n, l.Rows, l.Seqs)
	case l.States > 0 && n > l.States:
		return fmt.Errorf("engine: %w: %d beams have a recurrent state each, and there is room for %d; ask for fewer beams", ErrRequest, n, l.States)
	}
	prompt := len(e.lead) + len(r.Prompt)
	most := sched.GroupTokens(n, len(r.Source), prompt, e.o.Blocks)
	if most >= r.Max {
		return nil
	}
	if most < 1 || asked > 0 {
		return fmt.Errorf("engine: %w: %d beams of %d tokens after a prompt of %d need up to %d blocks of key/value memory; there are %d. Ask for fewer beams or tokens, or for more of that memory (--kv-memory)", ErrRequest,
			n, r.Max, len(r.Source)+len(r.Prompt), sched.GroupBlocks(n, len(r.Source), prompt, r.Max), e.o.Blocks)
	}
	r.Max = most
	return nil
}

// admitSearch begins a search with the task of its prompt.
func (e *Engine) admitSearch(t *sched.Task, c *choice) error {
	r := &c.stream.Request
	find, err := sample.NewSearch(r.Params, e.m.Vocab(), r.Prompt, r.Counted, r.Max, r.End)
	if err != nil {
		return err
	}
	find.Share(e.scratch)
	n := r.Params.Beams.N
	s := &search{find: find, group: sched.NewGroup(n, len(r.Source), len(t.Tokens), r.Max),
		tasks: append(make([]*sched.Task, 0, n), t), spare: make([]*sched.Task, 0, n), scored: make([]bool, n), held: make([]bool, n), left: 1}
	t.Group = s.group
	c.search = s
	if err := e.sched.Add(t); err != nil {
		return err
	}
	e.live[t] = c
	return nil
}

// dropSearch drops all tasks of a search.
func (e *Engine) dropSearch(s *search) {
	for _, t := range s.tasks {
		e.drop(t)
	}
	s.tasks = s.tasks[:0]
}

// explore takes the logits after a beam, and goes on when all beams have theirs.
func (e *Engine) explore(t *sched.Task, c *choice, logits []float32) {
	s := c.search
	if s.restarts != s.group.Restarts {
		e.restartSearch(t, c)
	}
	i := 0
	for s.tasks[i] != t {
		i++
	}
	if s.scored[i] {
		return
	}
	if err := s.find.Score(i, logits); err != nil {
		if errors.Is(err, sample.ErrNonFinite) {
			err = fmt.Errorf("%w: first in %s", err, e.diagnose())
		}
		e.endAll(t, c, fmt.Errorf("engine: %w", err))
		return
	}
	s.scored[i] = true
	if s.left--; s.left > 0 {
		return
	}
	c.stream.stepped()
	steps, over := s.find.Advance()
	if over {
		e.endSearch(c)
		return
	}
	e.branch(c, steps)
}

// restartSearch begins again with t: memory was short, and the group has parked.
func (e *Engine) restartSearch(t *sched.Task, c *choice) {
	s := c.search
	for _, x := range s.tasks {
		if x != t {
			delete(e.live, x)
		}
	}
	s.restarts, s.tasks, s.left = s.group.Restarts, append(s.tasks[:0], t), 1
	clear(s.scored)
	s.find.Reset()
}

// branch gives each running beam the task of its parent, a task that has no
// beam any more, or a new one; then it commits their tokens.
func (e *Engine) branch(c *choice, steps []sample.Step) {
	s := c.search
	next := s.spare[:len(steps)]
	clear(next)
	held := s.held[:len(s.tasks)]
	clear(held)
	for i, st := range steps {
		if !held[st.Parent] {
			held[st.Parent], next[i] = true, s.tasks[st.Parent]
		}
	}
	free := 0
	for i, st := range steps {
		if next[i] != nil {
			continue
		}
		for free < len(held) && held[free] {
			free++
		}
		if free < len(held) {
			held[free], next[i] = true, s.tasks[free]
			e.sched.Follow(next[i], s.tasks[st.Parent])
			continue
		}
		if next[i] = e.sched.Branch(s.tasks[st.Parent]); next[i] == nil {
			e.forget(s, next)
			return // no state slot: the group has parked, and explore will see it
		}
		e.live[next[i]] = c
	}
	for i, t := range s.tasks {
		if !held[i] {
			e.drop(t)
		}
	}
	s.tasks, s.spare = next, s.tasks
	for i, st := range steps {
		e.sched.Commit(next[i], st.ID)
	}
	s.left = len(steps)
	clear(s.scored)
}

// forget takes new tasks of a search that has parked out of the account.
func (e *Engine) forget(s *search, tasks []*sched.Task) {
	for _, t := range tasks {
		if t != nil && !slices.Contains(s.tasks, t) {
			delete(e.live, t)
		}
	}
}

// endSearch delivers the best answers.
func (e *Engine) endSearch(c *choice) {
	s := c.search
	e.dropSearch(s)
	tokens := 0
	for k := range c.stream.Request.N {
		a, ok := s.find.Best(k)
		if !ok {
			c.stream.push(Event{Choice: k, Finish: FinishError, Err: fmt.Errorf("engine: %w: penalties and rules leave no more than %d answers", sample.ErrNoCandidate, k)})
			continue
		}
		tokens += len(a.IDs)
		for i, id := range a.IDs {
			ev := Event{Choice: k, ID: id}
			if a.Logprobs != nil {
				ev.Logprob = a.Logprobs[i]
			}
			if i == len(a.IDs)-1 {
				ev.Score, ev.Finish = a.Score, FinishLength
				if a.Ended {
					ev.Finish = FinishStop
				}
			}
			c.stream.push(ev)
		}
	}
	e.mu.Lock()
	e.stats.Tokens += int64(tokens)
	e.mu.Unlock()
}

// stepped notes that a step of a search is done, for the timings.
func (s *Stream) stepped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last = time.Now(); s.first.IsZero() {
		s.first = s.last
	}
}
