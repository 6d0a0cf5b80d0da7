package embed

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
)

// loop runs batches until the service is closed.
func (s *Service) loop() {
	defer close(s.done)
	for range s.wake {
		for {
			items, closed := s.take()
			if closed {
				s.drain()
				return
			}
			if len(items) == 0 {
				break
			}
			s.run(items)
		}
	}
}

// take removes from the queue, in order of arrival, what fits one batch.
func (s *Service) take() (items []*item, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, blocks := 0, 0
	for len(s.queue) > 0 {
		it := s.queue[0]
		if err := it.ctx.Err(); err != nil {
			it.err = err
			it.left.Done()
			s.queue = s.queue[1:]
			continue
		}
		n, k := len(it.IDs), blocksOf(len(it.IDs))
		if len(items) > 0 && (len(items) == s.seqs || rows+n > s.rows || blocks+k > s.blocks) {
			break
		}
		items, rows, blocks = append(items, it), rows+n, blocks+k
		s.queue = s.queue[1:]
	}
	return items, s.closed
}

func blocksOf(n int) int { return (n + batch.BlockTokens - 1) / batch.BlockTokens }

// drain fails what waits when the service is closed.
func (s *Service) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.queue {
		it.err = fmt.Errorf("embed: %w", ErrClosed)
		it.left.Done()
	}
	s.queue = nil
}

// run computes one batch: the texts lie one after the other, each in blocks of
// its own, which nothing keeps after it.
func (s *Service) run(items []*item) {
	t0 := time.Now()
	s.fill(items)
	s.expect(items)
	err := s.m.Forward(&s.b)
	i := 0
	for _, it := range items {
		n := max(1, len(it.Out))
		if it.err = err; errors.Is(err, batch.ErrStopped) {
			it.err = cmp.Or(it.ctx.Err(), fmt.Errorf("embed: %w", ErrClosed))
		}
		if err == nil {
			it.rows = make([][]float32, n)
			for k := range it.rows {
				it.rows[k] = append([]float32(nil), s.m.Logits(i+k)...)
			}
		}
		i += n
	}
	if err == nil {
		s.judge(items)
	}
	s.mu.Lock()
	s.running = nil
	s.stats.Batches++
	s.stats.Texts += int64(len(items))
	s.stats.Tokens += int64(s.b.Rows())
	s.stats.Seconds += time.Since(t0).Seconds()
	s.mu.Unlock()
	for _, it := range items {
		it.left.Done()
	}
}

// expect says which texts the batch has that is computed now.
func (s *Service) expect(items []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = items
	s.stop.Store(false)
	s.b.Stop = &s.stop
	s.giveUp()
}

// giveUp stops the batch under way where nobody waits for its texts; s.mu is held.
func (s *Service) giveUp() {
	for _, it := range s.running {
		if !s.closed && it.ctx.Err() == nil {
			return
		}
	}
	s.stop.Store(true)
}

func (s *Service) fill(items []*item) {
	b := &s.b
	b.Reset()
	types := false
	for _, it := range items {
		types = types || it.Types != nil
	}
	block := int32(0)
	for i, it := range items {
		row, n := int32(b.Rows()), int32(len(it.IDs))
		b.Tokens = append(b.Tokens, it.IDs...)
		for k := range n {
			b.Pos = append(b.Pos, k)
		}
		if types {
			b.Types = append(b.Types, it.Types...)
			for int32(len(b.Types)) < row+n {
				b.Types = append(b.Types, 0)
			}
		}
		out := it.Out
		if out == nil {
			out = []int32{n - 1}
		}
		for _, r := range out {
			b.Out = append(b.Out, row+r)
		}
		b.Seqs = append(b.Seqs, seqOf(b.Seqs, int32(i), row, n, block, int32(it.Skip)))
		block += int32(blocksOf(int(n)))
	}
}

// seqOf is a sequence of n rows in blocks from the given one on; the memory of
// spans of an earlier batch is used again.
func seqOf(have []batch.Seq, id, row, n, block, skip int32) batch.Seq {
	q := batch.Seq{ID: id, Row: row, N: n, Length: n, Skip: skip, State: id}
	if len(have) < cap(have) {
		q.Spans = have[:len(have)+1][len(have)].Spans[:0]
	}
	for p := int32(0); p < n; p += batch.BlockTokens {
		q.Spans = append(q.Spans, batch.Span{Block: block + p/batch.BlockTokens, Pos: p, N: min(batch.BlockTokens, n-p)})
	}
	return q
}
