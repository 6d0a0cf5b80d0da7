package cpu

import (
	"fmt"

	"github.com/inferflow/inferflow/internal/batch"
)

// check refuses what the stage cannot run, before anything is touched.
func (s *Stage) check(b *batch.Batch, in [][]float32) error {
	rows, most := b.Rows(), s.o.Limits.Rows
	if b.Encode {
		most = s.o.Limits.Capacity()
	}
	switch {
	case rows == 0:
		return fmt.Errorf("cpu: empty batch")
	case b.Encode && !s.encodes:
		return fmt.Errorf("cpu: a batch to encode, but the program has no encoder")
	case b.Encode && len(b.Out) > 0:
		return fmt.Errorf("cpu: %d rows of a source are wanted; they have no logits", len(b.Out))
	case rows > most || len(b.Seqs) > s.o.Limits.Seqs:
		return fmt.Errorf("cpu: batch of %d rows and %d sequences; the stage holds %d and %d", rows, len(b.Seqs), most, s.o.Limits.Seqs)
	case len(b.Pos) != rows:
		return fmt.Errorf("cpu: %d positions for %d rows", len(b.Pos), rows)
	case len(b.Types) != 0 && len(b.Types) != rows:
		return fmt.Errorf("cpu: %d token types for %d rows", len(b.Types), rows)
	case len(in) != len(s.p.In):
		return fmt.Errorf("cpu: %d values received, the stage expects %d", len(in), len(s.p.In))
	}
	for i, v := range in {
		if s.idle(s.p.In[i], b) {
			continue
		}
		if len(v) != rows*s.p.Buffers[s.p.In[i]].Width {
			return fmt.Errorf("cpu: received value %d has %d numbers for %d rows of %d", i, len(v), rows, s.p.Buffers[s.p.In[i]].Width)
		}
	}
	if err := checkOut(b); err != nil {
		return err
	}
	return s.checkSeqs(b)
}

// checkOut wants the wanted rows ascending, each once.
func checkOut(b *batch.Batch) error {
	last := int32(-1)
	for i, r := range b.Out {
		if r <= last || int(r) >= b.Rows() {
			return fmt.Errorf("cpu: wanted row %d is %d; want ascending rows of 0 … %d", i, r, b.Rows()-1)
		}
		last = r
	}
	return nil
}

// checkSeqs wants sequences that cover the rows in order, at their positions.
func (s *Stage) checkSeqs(b *batch.Batch) error {
	row := 0
	for i := range b.Seqs {
		q := &b.Seqs[i]
		n, start := int(q.N), int(q.Start)
		if int(q.Row) != row || n < 1 || n > b.Rows()-row || start < 0 {
			return fmt.Errorf("cpu: sequence %d has %d rows from %d on at position %d; row %d of %d is next", q.ID, n, q.Row, start, row, b.Rows())
		}
		if q.Skip < 0 || q.Skip >= q.N {
			return fmt.Errorf("cpu: sequence %d: pooling leaves out %d of its %d rows", q.ID, q.Skip, n)
		}
		if b.Encode && start > 0 {
			return fmt.Errorf("cpu: sequence %d: a source is encoded whole, not from position %d on", q.ID, start)
		}
		if !b.Encode && n > s.o.Limits.Tokens-start {
			return fmt.Errorf("cpu: sequence %d ends at position %d; the stage holds %d of one sequence", q.ID, start+n-1, s.o.Limits.Tokens)
		}
		for k, p := range b.Pos[row : row+n] {
			if int(p) != start+k {
				return fmt.Errorf("cpu: sequence %d: row %d is at position %d, not %d", q.ID, row+k, p, start+k)
			}
		}
		row += n
	}
	if row != b.Rows() {
		return fmt.Errorf("cpu: the sequences have %d rows of %d", row, b.Rows())
	}
	return s.states.check(b)
}
