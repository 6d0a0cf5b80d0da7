package engine

import (
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
)

// fake is a model whose logits are a hash of all tokens up to a row, read back
// from the cells of the blocks as a device would: whatever goes wrong with
// blocks changes its answers.
type fake struct {
	t      testing.TB
	vocab  int
	cells  map[[2]int32]int32
	logits [][]float32
	nan    int32             // a row of this token has logits that are not finite; 0: none
	fail   int32             // a batch with this token fails; 0: none
	slots  map[int32][]int32 // by state slot: the tokens that went in; nil: the model keeps no states
	asked  int               // calls of Diagnose

	mu    sync.Mutex
	gate  chan struct{} // nil: never wait; else each Forward takes one
	enter chan struct{} // told at each Forward if not nil
}

var errBroken = errors.New("the device is gone")

func newFake(t testing.TB) *fake { return &fake{t: t, vocab: 40, cells: map[[2]int32]int32{}} }

func (m *fake) Vocab() int             { return m.vocab }
func (m *fake) Logits(i int) []float32 { return m.logits[i] }

func (m *fake) Diagnose(*batch.Batch) string {
	m.asked++
	return "layer 3"
}

func (m *fake) Forward(b *batch.Batch) error {
	m.mu.Lock()
	gate, enter := m.gate, m.enter
	m.mu.Unlock()
	if enter != nil {
		enter <- struct{}{}
	}
	if gate != nil {
		<-gate
	}
	if m.slots != nil {
		m.states(b)
	}
	for _, c := range b.Blocks {
		for slot := range int32(batch.BlockTokens) {
			m.cells[[2]int32{c.To, slot}] = m.cells[[2]int32{c.From, slot}]
		}
	}
	for _, tok := range b.Tokens {
		if m.fail != 0 && tok == m.fail {
			return errBroken
		}
	}
	m.logits = m.logits[:0]
	out := 0
	for _, q := range b.Seqs {
		for r := q.Row; r < q.Row+q.N; r++ {
			m.cells[[2]int32{blockOf(m.t, q, b.Pos[r]), b.Pos[r] % batch.BlockTokens}] = b.Tokens[r]
			if out < len(b.Out) && b.Out[out] == r {
				out++
				m.logits = append(m.logits, m.row(q, b.Pos[r], b.Tokens[r]))
			}
		}
	}
	return nil
}

func blockOf(t testing.TB, q batch.Seq, pos int32) int32 {
	for _, s := range q.Spans {
		if pos >= s.Pos && pos < s.Pos+s.N {
			return s.Block
		}
	}
	t.Errorf("position %d lies in no block", pos)
	return 0
}

func (m *fake) row(q batch.Seq, pos, tok int32) []float32 {
	text := make([]int32, 0, pos+1)
	for p := int32(0); p <= pos; p++ {
		text = append(text, m.cells[[2]int32{blockOf(m.t, q, p), p % batch.BlockTokens}])
	}
	row := hashed(text, m.vocab)
	if m.nan != 0 && tok == m.nan {
		row[5] = float32(math.NaN())
	}
	return row
}

// hashed are the logits of the token after a text.
func hashed(text []int32, vocab int) []float32 {
	h := fnv.New64a()
	for p, v := range text {
		_, _ = h.Write([]byte{byte(v), byte(p)})
	}
	x := h.Sum64()
	row := make([]float32, vocab)
	for i := range row {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		row[i] = float32(x%1000)/200 - 2
	}
	return row
}

// states does the copies of a batch, then holds each sequence's slot against
// the cells. A batch that fails afterwards has changed them: it is run again in halves.
func (m *fake) states(b *batch.Batch) {
	for _, c := range b.Copies {
		m.slots[c.To] = slices.Clone(m.slots[c.From])
	}
	seen := map[int32]bool{}
	for _, q := range b.Seqs {
		have := m.slots[q.State]
		if q.State < 0 || seen[q.State] || int(q.Start) > len(have) {
			m.t.Errorf("sequence %d at %d has slot %d, which holds %d tokens", q.ID, q.Start, q.State, len(have))
			continue
		}
		seen[q.State] = true
		for p := range q.Start {
			if v := m.cells[[2]int32{blockOf(m.t, q, p), p % batch.BlockTokens}]; v != have[p] {
				m.t.Errorf("sequence %d: slot %d holds token %d at %d, the blocks hold %d", q.ID, q.State, have[p], p, v)
			}
		}
		m.slots[q.State] = append(slices.Clone(have[:q.Start]), b.Tokens[q.Row:q.Row+q.N]...)
	}
}
