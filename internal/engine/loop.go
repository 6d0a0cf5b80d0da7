package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

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
	}
}

// receive takes new requests and cancellations; false when closed.
func (e *Engine) receive() bool {
	e.mu.Lock()
	inbox, cancels, closed := e.inbox, e.cancels, e.closed
	e.inbox, e.cancels = nil, nil
	e.mu.Unlock()
	for _, s := range inbox {
		e.admit(s)
	}
	for _, s := range cancels {
		for t, c := range e.live {
			if c.stream == s {
				e.drop(t)
			}
		}
	}
	e.mu.Lock()
	e.stats.Cancelled += int64(len(cancels))
	e.mu.Unlock()
	if closed {
		for t, c := range e.live {
			c.stream.push(Event{Choice: c.index, Finish: FinishError, Err: ErrClosed})
			e.drop(t)
		}
	}
	return !closed
}

func (e *Engine) admit(s *Stream) {
	r := s.Request
	fail := func(err error) {
		for i := 0; i < r.N; i++ {
			s.push(Event{Choice: i, Finish: FinishError, Err: err})
		}
	}
	sampler, err := sample.NewSampler(r.Params, e.m.Vocab(), r.Prompt)
	if err != nil {
		fail(fmt.Errorf("engine: %w: %w", ErrRequest, err))
		return
	}
	sampler.Share(e.scratch)
	t := &sched.Task{Tokens: append([]int32{}, r.Prompt...), Prompt: len(r.Prompt), Max: r.Max, AllOut: r.PromptLogprobs}
	if err := e.sched.Add(t); err != nil {
		fail(fmt.Errorf("engine: %w: %w", ErrRequest, err))
		return
	}
	end := map[int32]bool{}
	for _, id := range r.End {
		end[id] = true
	}
	e.live[t] = &choice{stream: s, sampler: sampler, end: end}
	e.mu.Lock()
	e.stats.Requests++
	e.stats.PromptTokens += int64(len(r.Prompt))
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
	t0 := time.Now()
	err := e.m.Forward(&e.b)
	e.mu.Lock()
	e.stats.Steps++
	e.stats.StepSeconds += time.Since(t0).Seconds()
	e.mu.Unlock()
	if err != nil {
		for _, t := range e.tasks {
			e.fail(t, fmt.Errorf("engine: %w", err))
		}
		return
	}
	out := 0
	for i, t := range e.tasks {
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
	for i := from; i < to; i++ {
		pos := int(e.b.Pos[e.b.Out[i]])
		if c.stream.Request.PromptLogprobs && pos+1 < t.Prompt && pos >= c.told {
			e.promptEvent(t, c, pos, e.m.Logits(i))
			c.told = pos + 1
		}
		if pos == len(t.Tokens)-1 {
			e.choose(t, c, e.m.Logits(i))
		}
	}
}

// promptEvent tells the log-probability of the prompt token after pos.
func (e *Engine) promptEvent(t *sched.Task, c *choice, pos int, logits []float32) {
	id := t.Tokens[pos+1]
	ev := Event{Prompt: true, ID: id, Logprob: float32(Logprob(logits, id))}
	if k := c.stream.Request.Params.TopLogprobs; k > 0 {
		ev.Top = likeliest(logits, k)
	}
	c.stream.push(ev)
}

// Logprob is the natural logarithm of the probability of id under the softmax
// of logits, summed in float64.
func Logprob(logits []float32, id int32) float64 {
	top := math.Inf(-1)
	for _, v := range logits {
		top = math.Max(top, float64(v))
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return float64(logits[id]) - top - math.Log(sum)
}

func likeliest(logits []float32, k int) []sample.TokenLogprob {
	used := map[int32]bool{}
	var out []sample.TokenLogprob
	for ; k > 0 && len(out) < len(logits); k-- {
		best := int32(-1)
		for i, v := range logits {
			if !used[int32(i)] && (best < 0 || v > logits[best]) {
				best = int32(i)
			}
		}
		used[best] = true
		out = append(out, sample.TokenLogprob{ID: best, Logprob: float32(Logprob(logits, best))})
	}
	return out
}

// choose samples the token after a task's last, for each answer that still
// shares the prompt.
func (e *Engine) choose(t *sched.Task, c *choice, logits []float32) {
	n := c.stream.Request.N
	if c.index == 0 && n > 1 && len(t.Tokens) == t.Prompt {
		keep := append([]float32{}, logits...)
		for k := 1; k < n; k++ {
			f := e.sched.Fork(t)
			fc := &choice{stream: c.stream, index: k, sampler: c.sampler.Fork(), end: c.end, told: c.told}
			e.live[f] = fc
			e.next(f, fc, keep)
			copy(keep, logits)
		}
	}
	e.next(t, c, logits)
}

func (e *Engine) next(t *sched.Task, c *choice, logits []float32) {
	pos := len(t.Tokens)
	res, err := c.sampler.Next(logits, pos, c.index, nil)
	if err != nil {
		if errors.Is(err, sample.ErrNonFinite) {
			err = fmt.Errorf("%w: first in %s", err, e.m.Diagnose(&e.b))
		}
		e.fail(t, fmt.Errorf("engine: %w", err))
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

func (e *Engine) fail(t *sched.Task, err error) {
	c, ok := e.live[t]
	if !ok {
		return
	}
	e.mu.Lock()
	e.stats.Errors++
	e.mu.Unlock()
	e.drop(t)
	c.stream.push(Event{Choice: c.index, Finish: FinishError, Err: err})
}
