package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

func (e *Engine) loop() {
	defer close(e.done)
	for {
		if !e.receive() {
			return
		}
		e.tasks = e.sched.Next(&e.b, e.tasks)
		e.publish()
		if len(e.tasks) == 0 {
			<-e.wake
			continue
		}
		e.step()
		if invariants {
			if err := e.sched.Check(); err != nil {
				panic(err)
			}
		}
	}
}

// receive takes new requests and cancellations; false when closed.
func (e *Engine) receive() bool {
	e.mu.Lock()
	inbox, cancels, closed := e.inbox, e.cancels, e.closed
	e.inbox, e.cancels = nil, nil
	e.stats.Waiting += len(inbox)
	e.mu.Unlock()
	for _, s := range inbox {
		e.admit(s)
	}
	for _, c := range cancels {
		e.cancel(c)
	}
	if closed {
		for t, c := range e.live {
			e.endAll(t, c, ErrClosed)
		}
		e.publish()
	}
	return !closed
}

// cancel drops the tasks of what is no longer wanted. A choice that is not
// forked yet has no task; choose will find that nobody reads it.
func (e *Engine) cancel(x cancel) {
	for t, c := range e.live {
		if c.stream == x.stream && (c.stream.over() || c.forked && c.search == nil && c.index == x.choice) {
			e.drop(t)
		}
	}
	if x.choice < 0 {
		e.mu.Lock()
		e.stats.Cancelled++
		e.mu.Unlock()
	}
}

func (e *Engine) admit(s *Stream) {
	r := s.Request
	t := &sched.Task{Tokens: slices.Concat(e.lead, r.Prompt), Prompt: len(e.lead) + len(r.Prompt), Max: r.Max, AllOut: r.PromptLogprobs, Source: r.Source}
	c := &choice{stream: s, end: map[int32]bool{}, forked: r.N == 1, told: len(e.lead)}
	var err error
	if r.Params.Beams.On() {
		if err = e.admitSearch(t, c); err != nil {
			e.endAll(t, c, fmt.Errorf("engine: %w: %w", ErrRequest, err))
		}
		return
	}
	if c.sampler, err = sample.NewSampler(r.Params, e.m.Vocab(), r.Prompt); err == nil {
		c.sampler.Share(e.scratch)
		err = e.sched.Add(t)
	}
	if err != nil {
		e.endAll(t, c, fmt.Errorf("engine: %w: %w", ErrRequest, err))
		return
	}
	for _, id := range r.End {
		c.end[id] = true
	}
	e.live[t] = c
}

// endAll ends a task's choice with an error, and all choices where they have
// no tasks of their own.
func (e *Engine) endAll(t *sched.Task, c *choice, err error) {
	e.drop(t)
	if c.search != nil {
		e.dropSearch(c.search)
	}
	last := c.index
	if !c.forked || c.search != nil {
		last = c.stream.Request.N - 1
	}
	for i := c.index; i <= last; i++ {
		c.stream.push(Event{Choice: i, Finish: FinishError, Err: err})
	}
	e.mu.Lock()
	e.stats.Errors++
	e.mu.Unlock()
}

func (e *Engine) drop(t *sched.Task) {
	e.sched.Remove(t)
	delete(e.live, t)
}

func (e *Engine) publish() {
	st := e.sched.Stats()
	e.mu.Lock()
	e.stats.Stats = st
	e.mu.Unlock()
}

// step computes the batch and hands out its tokens.
func (e *Engine) step() {
	for _, t := range e.tasks {
		e.live[t].stream.start()
	}
	e.expect(e.tasks)
	defer e.expect(nil)
	e.b.Stop = &e.stop
	copies, blocks := e.b.Copies, e.b.Blocks
	if len(copies)+len(blocks) > 0 {
		// Once and apart: the batch itself may have to be tried in halves.
		if err := e.m.Forward(&batch.Batch{Copies: copies, Blocks: blocks}); err != nil {
			for _, t := range e.tasks {
				e.fail(t, fmt.Errorf("engine: %w", err))
			}
			return
		}
	}
	whole := e.b
	whole.Copies, whole.Blocks = nil, nil
	e.compute(whole, e.tasks)
	whole.Copies, whole.Blocks = copies[:0], blocks[:0]
	e.b = whole
}

// expect says whose step is computed now.
func (e *Engine) expect(tasks []*sched.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading = e.reading[:0]
	for _, t := range tasks {
		e.reading = append(e.reading, e.live[t].stream)
	}
	e.stop.Store(false)
	e.giveUp()
}

// giveUp stops the step under way where nobody waits for any of its sequences; e.mu
// is held. They are dropped before the next step, for all their readers said so.
func (e *Engine) giveUp() {
	for _, s := range e.reading {
		if !e.closed && !s.over() {
			return
		}
	}
	e.stop.Store(true)
}

// compute runs a batch and hands out its tokens. Where the model refuses it,
// its halves are tried apart, so that only the guilty sequences end; what a
// refused run stored is stored again, to the same values.
func (e *Engine) compute(b batch.Batch, tasks []*sched.Task) {
	e.b, e.sick = b, ""
	t0 := time.Now()
	err := e.m.Forward(&e.b)
	e.mu.Lock()
	e.stats.Steps++
	e.stats.StepSeconds += time.Since(t0).Seconds()
	e.mu.Unlock()
	switch half := len(tasks) / 2; {
	case err == nil:
		e.handOut(tasks)
	case errors.Is(err, batch.ErrStopped):
	case half == 0:
		e.fail(tasks[0], fmt.Errorf("engine: %w", err))
	default:
		e.compute(part(b, 0, half), tasks[:half])
		e.compute(part(b, half, len(tasks)), tasks[half:])
	}
}

// fail ends a task's choice, unless another beam of its request has ended it before.
func (e *Engine) fail(t *sched.Task, err error) {
	if c := e.live[t]; c != nil {
		e.endAll(t, c, err)
	}
}

// part is the batch of the sequences [from, to) of b.
func part(b batch.Batch, from, to int) batch.Batch {
	first := b.Seqs[from].Row
	last := b.Seqs[to-1].Row + b.Seqs[to-1].N
	p := batch.Batch{Tokens: b.Tokens[first:last], Pos: b.Pos[first:last], Seqs: slices.Clone(b.Seqs[from:to]), Encode: b.Encode, Stop: b.Stop}
	for i := range p.Seqs {
		p.Seqs[i].Row -= first
	}
	for _, row := range b.Out {
		if row >= first && row < last {
			p.Out = append(p.Out, row-first)
		}
	}
	return p
}

// handOut delivers the wanted rows of the computed batch.
func (e *Engine) handOut(tasks []*sched.Task) {
	if e.b.Encode {
		for _, t := range tasks {
			e.sched.Encoded(t)
		}
		return
	}
	out := 0
	for i, t := range tasks {
		q := e.b.Seqs[i]
		from := out
		for out < len(e.b.Out) && e.b.Out[out] < q.Row+q.N {
			out++
		}
		e.sched.Computed(t, int(q.N))
		e.deliver(t, q.Row, from, out)
	}
}

// deliver handles the wanted rows [from, to) of one task.
func (e *Engine) deliver(t *sched.Task, row int32, from, to int) {
	c := e.live[t]
	if c == nil {
		return // another beam of its request has ended it
	}
	for i := from; i < to; i++ {
		pos := int(e.b.Pos[e.b.Out[i]])
		if c.stream.Request.PromptLogprobs && pos+1 < t.Prompt && pos >= c.told {
			c.told = pos + 1
			if !e.promptEvent(t, c, pos, e.m.Logits(i)) {
				return
			}
		}
		switch {
		case pos != len(t.Tokens)-1:
		case c.search != nil:
			e.explore(t, c, e.m.Logits(i))
		default:
			e.choose(t, c, e.m.Logits(i))
		}
	}
}

// choose samples the token after a task's last, for each answer that still
// shares the prompt.
func (e *Engine) choose(t *sched.Task, c *choice, logits []float32) {
	if !c.forked {
		c.forked = true
		for k := 1; k < c.stream.Request.N; k++ {
			if c.stream.wants(k) {
				f := e.sched.Fork(t)
				fc := &choice{stream: c.stream, index: k, sampler: c.sampler.Fork(), end: c.end, told: c.told, forked: true}
				e.live[f] = fc
				e.next(f, fc, logits)
			}
		}
		if !c.stream.wants(0) {
			e.drop(t)
			return
		}
	}
	e.next(t, c, logits)
}

func (e *Engine) next(t *sched.Task, c *choice, logits []float32) {
	res, err := c.sampler.Next(logits, len(t.Tokens), c.index, nil)
	if err != nil {
		if errors.Is(err, sample.ErrNonFinite) {
			err = fmt.Errorf("%w: first in %s", err, e.diagnose())
		}
		e.endAll(t, c, fmt.Errorf("engine: %w", err))
		return
	}
	c.sampler.Accept(res.ID)
	ev := Event{Choice: c.index, ID: res.ID, Logprob: res.Logprob, Top: append([]sample.TokenLogprob(nil), res.Top...)}
	more := e.sched.Commit(t, res.ID)
	switch {
	case c.end[res.ID]:
		ev.Finish = FinishStop
	case !more:
		ev.Finish = FinishLength
	}
	e.mu.Lock()
	e.stats.Tokens++
	e.mu.Unlock()
	if ev.Finish != FinishNone {
		e.drop(t)
	}
	c.stream.push(ev)
}

// diagnose runs the step's batch again, once, to find where it went wrong.
func (e *Engine) diagnose() string {
	if e.sick == "" {
		if e.sick = e.m.Diagnose(&e.b); e.sick == "" {
			e.sick = "the logits"
		}
	}
	return e.sick
}
