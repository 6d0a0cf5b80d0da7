package model

import (
	"errors"
	"fmt"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/device/cpu"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/sys"
)

// defaultContext is the length of a sequence where nobody asks for another.
const defaultContext = 8192

// maxTokens bounds the context, so that no sum of sizes overflows.
const maxTokens = 1 << 28

// wholeRows is the number of rows of a batch of whole sequences: what stays is
// nothing, and the float product works in bands of 96.
const wholeRows = 8 * 96

// size settles the context, the slots of recurrent states and the key/value
// pool. The context is what was
// asked for, else the smaller of the model's own and 8192. The pool is what
// was asked for, else room for four sequences of that context, or the beams of a
// search, but at most half of the memory that is left beside the weights.
func (m *Model) size(keys, values attn.Elem) error {
	o := &m.o
	l := device.Limits{Rows: o.Rows, Seqs: o.maxSeqs(), Tokens: o.Context}
	if l.Rows <= 0 {
		l.Rows = 512
	}
	if l.Tokens <= 0 {
		l.Tokens = defaultContext
		if m.MaxContext > 0 {
			l.Tokens = min(l.Tokens, m.MaxContext)
		}
	}
	if l.Tokens > maxTokens {
		return fmt.Errorf("model: a context of %d tokens was asked for; %d are possible", l.Tokens, maxTokens)
	}
	if m.MaxContext > 0 && l.Tokens > m.MaxContext {
		m.notice(fmt.Sprintf("a context of %d tokens was asked for; the model was made for %d", l.Tokens, m.MaxContext))
	}
	if m.Whole() && o.Rows <= 0 {
		l.Rows = max(wholeRows, l.Tokens)
	}
	m.BlockBytes = cpu.BlockBytes(m.Traced.Graph.Caches, func(int) bool { return true }, keys, values)
	states := cpu.StateBytes(m.Traced.Graph.Caches, func(int) bool { return true })
	per := (l.Tokens + batch.BlockTokens - 1) / batch.BlockTokens
	search := m.beams() * per
	if m.Encodes() {
		l.Source, per, search = l.Tokens, 2*per, search+per
	}
	free, source := m.memoryLeft()
	left := free - m.TensorBytes() - program.ConstantBytes(m.Program)
	l.States = stateSlots(l.Seqs, states, left)
	m.StateBytes = int64(l.States) * states
	left -= m.StateBytes
	pool := o.KVMemory
	if pool <= 0 {
		blocks := max(4*per, search)
		if m.Whole() { // one batch, and nothing that stays
			blocks = max(per, l.Rows/batch.BlockTokens+l.Seqs)
		}
		pool = int64(blocks) * int64(m.BlockBytes)
		if left > 0 && pool > left/2 {
			pool = left / 2
		}
	} else if left > 0 && pool > left {
		return fmt.Errorf("model: %s of key/value memory were asked for; %s are left beside the weights (%s). Ask for less with --kv-memory",
			Bytes(pool), Bytes(left), source)
	}
	if m.BlockBytes > 0 {
		l.Blocks = int(pool / int64(m.BlockBytes))
	} else {
		l.Blocks = per * l.Seqs // they take nothing
	}
	short := l.Blocks < per
	if short {
		l.Tokens = l.Blocks * batch.BlockTokens
		if l.Source > 0 {
			l.Tokens = l.Blocks / 2 * batch.BlockTokens
			l.Source = l.Tokens
		}
	}
	if l.Blocks < 2 || l.Tokens < 1 {
		return fmt.Errorf("model: %s of key/value memory hold no sequence; one block of 16 tokens takes %s. Ask for more with --kv-memory", Bytes(pool), Bytes(int64(m.BlockBytes)))
	}
	if short {
		m.notice(fmt.Sprintf("the context is %d tokens: the key/value memory of %s holds no more", l.Tokens, Bytes(pool)))
	}
	if rows, _ := graph.Lead(m.Traced.Graph); l.Tokens < rows+2 {
		more := "--context"
		if short {
			more = "--kv-memory"
		}
		return fmt.Errorf("model: the context of %d tokens holds no text: %d rows of the model's own stand before each; ask for more with %s", l.Tokens, rows, more)
	}
	m.Limits, m.KVBytes = l, int64(l.Blocks)*int64(m.BlockBytes)
	return nil
}

// ErrMemory marks a model whose fixed values the machine has no memory for.
var ErrMemory = errors.New("not enough memory")

// Fits refuses a model whose values that are the same for all tokens, which are
// computed and kept when it is loaded, take more memory than there is. A
// specification can make much of little: weights are no measure of it.
func (m *Model) Fits() error {
	free, source := m.memoryLeft()
	if n := program.ConstantBytes(m.Program); free > 0 && n > free {
		return fmt.Errorf("model: %s: %w: what the specification computes once for all tokens takes %s; %s are left (%s). Make it of smaller values in %s, or take a machine with more memory",
			m.Name, ErrMemory, Bytes(n), Bytes(free), source, m.Traced.SpecName)
	}
	return nil
}

func (m *Model) memoryLeft() (free int64, source string) {
	if m.memory != nil {
		return m.memory()
	}
	return sys.MemoryLimit()
}

// beams is the number of beams of a search that the pool is to have room for.
func (m *Model) beams() int {
	n := m.o.Beams
	if n <= 0 {
		n = m.Generation.Decoding.Beams
	}
	return min(max(n, 0), m.o.maxSeqs())
}

// maxSeqs is the number of sequences of a batch.
func (o *Options) maxSeqs() int {
	if o.Seqs <= 0 {
		return 64
	}
	return o.Seqs
}

// stateSlots is the number of sequences whose recurrent states are kept: as
// many as a batch may hold, but at most a quarter of the memory that is left.
func stateSlots(seqs int, bytes, left int64) int {
	if bytes == 0 {
		return 0
	}
	if left > 0 {
		seqs = min(seqs, int(left/4/bytes))
	}
	return max(1, seqs)
}

// Bytes renders a number of bytes for people.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
