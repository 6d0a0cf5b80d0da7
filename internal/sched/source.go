package sched

import (
	"fmt"

	"github.com/inferflow/inferflow/internal/batch"
)

// checkSource refuses a source that could never be encoded.
func (s *Scheduler) checkSource(t *Task, tokens int) error {
	switch {
	case (len(t.Source) > 0) != (s.limits.Source > 0):
		return fmt.Errorf("sched: a source of %d tokens; the model's encoder takes %d (0: it has none)", len(t.Source), s.limits.Source)
	case len(t.Source) > s.limits.Source:
		return fmt.Errorf("sched: a source of %d tokens does not fit the %d that are encoded at once", len(t.Source), s.limits.Source)
	case blocksOf(len(t.Source))+blocksOf(min(tokens, s.limits.Tokens)) > s.pool.Total():
		return fmt.Errorf("sched: %d tokens need more key/value blocks than there are (%d)", tokens+len(t.Source), s.pool.Total())
	}
	return nil
}

func blocksOf(tokens int) int { return (tokens + batch.BlockTokens - 1) / batch.BlockTokens }

// admitSources lets waiting tasks with a source in, in order of arrival, as far
// as there are blocks for source and prompt.
func (s *Scheduler) admitSources() {
	for len(s.waiting) > 0 && len(s.waiting[0].Source) > 0 && len(s.running) < s.limits.Seqs {
		t := s.waiting[0]
		if !s.admissible(t) || t.memory.Grow(len(t.Source)) != nil || t.seq.Grow(len(t.Tokens)) != nil {
			return // admissible has counted both
		}
		s.takeState(t)
		s.waiting = s.waiting[1:]
		s.running = append(s.running, t)
	}
}

// encode fills b with the sources that are not encoded yet, each whole.
func (s *Scheduler) encode(b *batch.Batch, tasks []*Task) []*Task {
	if s.limits.Source == 0 {
		return tasks
	}
	s.admitSources()
	most := max(s.limits.Rows, s.limits.Source)
	for _, t := range s.running {
		if t.encoded || b.Rows()+len(t.Source) > most || len(b.Seqs) >= s.limits.Seqs {
			continue
		}
		n, row := len(t.Source), b.Rows()
		for i, id := range t.Source {
			b.Tokens, b.Pos = append(b.Tokens, id), append(b.Pos, int32(i))
		}
		b.Encode = true
		b.Seqs = append(b.Seqs, batch.Seq{ID: t.ID, Row: int32(row), N: int32(n), State: -1, Length: int32(n), Spans: t.memory.Spans()})
		tasks = append(tasks, t)
	}
	return tasks
}

// Encoded says that the source of t is encoded.
func (s *Scheduler) Encoded(t *Task) { t.encoded = true }
