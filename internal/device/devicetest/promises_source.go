package devicetest

import (
	"runtime/debug"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

// testSource holds what a device promises of encoded sources beside their
// values: nothing is allocated, and what cannot be run is refused.
func (d Device) testSource(t *testing.T) {
	n := newNet(t, 9)
	n.finish(n.translator(n.relative(both, 12, 20, true), n.relative(graph.AttentionAttr{}, 8, 30, false), heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}))
	m, s := d.open(t, n, compile.Options{}), newTable()
	parts := []part{{0, 4, 1}, {1, 7, 2}}
	b, _, err := s.batch(parts)
	if err != nil {
		t.Fatal(err)
	}
	e := m.encode(t, s, parts, b)
	want := m.run(t, b)
	old := debug.SetGCPercent(-1) // a collection's own work is not the step's
	for name, x := range map[string]*batch.Batch{"encodes": e, "decodes": b} {
		got := testing.AllocsPerRun(20, func() {
			if _, err := m.stages[0].Run(x, nil); err != nil {
				t.Error(err)
			}
		})
		if got != 0 {
			t.Errorf("a batch that %s allocates %v times", name, got)
		}
	}
	debug.SetGCPercent(old)
	for name, spoil := range map[string]func(e, b *batch.Batch) *batch.Batch{
		"a wanted row of a source":      func(e, _ *batch.Batch) *batch.Batch { e.Out = []int32{1}; return e },
		"a source that reads a source":  func(e, b *batch.Batch) *batch.Batch { e.Seqs[0].Memory = b.Seqs[0].Memory; return e },
		"a source from its middle":      func(e, _ *batch.Batch) *batch.Batch { e.Seqs[0].Start = 4; return e },
		"a source beyond the table":     func(e, _ *batch.Batch) *batch.Batch { e.Tokens[2] = vocab; return e },
		"a source without blocks":       func(e, _ *batch.Batch) *batch.Batch { e.Seqs[0].Spans = nil; return e },
		"an answer to nothing":          func(_, b *batch.Batch) *batch.Batch { b.Seqs[1].Memory = nil; return b },
		"a gap in the source":           func(_, b *batch.Batch) *batch.Batch { b.Seqs[1].Memory[1].Pos++; return b },
		"an empty span of the source":   func(_, b *batch.Batch) *batch.Batch { b.Seqs[1].Memory[0].N = 0; return b },
		"half a tile inside the source": func(_, b *batch.Batch) *batch.Batch { b.Seqs[1].Memory[0].N = 8; b.Seqs[1].Memory[1].Pos = 8; return b },
		"a block that does not exist":   func(_, b *batch.Batch) *batch.Batch { b.Seqs[0].Memory[0].Block = int32(limits.Blocks); return b },
		"a negative block":              func(_, b *batch.Batch) *batch.Batch { b.Seqs[0].Memory[0].Block = -1; return b },
		"a source of too many rows": func(_, b *batch.Batch) *batch.Batch {
			for i := int32(0); i < 8; i++ {
				b.Seqs[0].Memory = append(b.Seqs[0].Memory[:i:i], batch.Span{Block: i, Pos: 16 * i, N: 16})
			}
			return b
		},
	} {
		bad := spoil(cloned(e), cloned(b))
		if _, err := m.try(bad); err == nil {
			t.Errorf("%s was run", name)
		}
	}
	if _, err := m.try(e); err != nil {
		t.Fatal(err)
	}
	for i, row := range m.run(t, b) {
		if err := equal("after the bad batches", row, want[i]); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.open(t, decoder(t, quant.F32), compile.Options{}).try(e); err == nil {
		t.Error("a program without an encoder encodes")
	}
}

// cloned is a batch that may be spoilt.
func cloned(b *batch.Batch) *batch.Batch {
	c := &batch.Batch{Encode: b.Encode}
	c.Tokens, c.Types, c.Pos, c.Out = append(c.Tokens, b.Tokens...), append(c.Types, b.Types...), append(c.Pos, b.Pos...), append(c.Out, b.Out...)
	for _, q := range b.Seqs {
		q.Spans, q.Memory = append([]batch.Span{}, q.Spans...), append([]batch.Span{}, q.Memory...)
		c.Seqs = append(c.Seqs, q)
	}
	return c
}
