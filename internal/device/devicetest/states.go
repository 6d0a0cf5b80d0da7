package devicetest

import (
	"fmt"
	"math"
	"runtime/debug"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
)

// hybrid is a net with every kind of state beside attention, in two layers.
func hybrid(t *testing.T) *net {
	n := newNet(t, 8)
	x := n.embed()
	for n.Layer = 0; n.Layer < 2; n.Layer++ {
		x = n.add(x, n.linear(n.flat(n.scan(n.rms(x), 4, 8, 2, 16, 4)), width))
		x = n.attend(x, heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}, func(_ int, y *graph.Node) *graph.Node { return y })
		x = n.add(x, n.linear(n.flat(n.recall(n.rms(n.shift(x, 2)), recalls{keyHeads: 2, heads: 2, dk: 8, dv: 8, decays: 1, gate: true, bonus: n.Layer, norm: "sum"})), width))
		y := n.delta(n.rms(x), 2, 4, 8, 16, 1, n.Layer == 1)
		y = n.norm(y, graph.NormAttr{Kind: graph.RMS, Eps: 1e-6, W: n.vector(1, 16)})
		x = n.add(x, n.linear(n.flat(y), width))
	}
	n.Layer--
	n.finish(n.head(x))
	return n
}

// testStates holds what is promised of recurrent states: a batch may be run
// again, a fork goes on from its parent, what is refused leaves no trace, and
// the steady state allocates nothing.
func (d Device) testStates(t *testing.T) {
	for name, cuts := range map[string][]int{"one stage": nil, "two stages": {1}} {
		t.Run(name, func(t *testing.T) {
			n := hybrid(t)
			m := d.open(t, n, compile.Options{}, cuts...)
			m.repeats(t)
			m.copiesChain(t)
			m.refusesStates(t)
			if cuts == nil {
				m.keepsNothing(t)
			}
		})
	}
}

// repeats runs every batch twice.
func (m *machine) repeats(t *testing.T) {
	t.Helper()
	s := newTable()
	for i, parts := range mixed {
		b, _, err := s.batch(parts)
		if err != nil {
			t.Fatal(err)
		}
		want := m.run(t, b)
		for k, row := range m.run(t, b) {
			if err := equal(fmt.Sprintf("batch %d run again", i), row, want[k]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// copiesChain forks a sequence, forks the fork, gives the first one's slot to a
// newcomer, all before the next batch, whose copies come alone first.
func (m *machine) copiesChain(t *testing.T) {
	t.Helper()
	s := newTable()
	s.mustRun(t, m, []part{{0, 21, 1}})
	root := s.seats[0]
	for i, from := range []int{0, 5} {
		f := s.seats[from]
		g := &seat{id: int32(5 + i), length: root.length, tokens: root.tokens, kv: f.kv.Fork(), at: f.at, state: s.slot()}
		s.seats[5+i] = g
		s.copies = append(s.copies, batch.StateCopy{From: f.state, To: g.state})
	}
	s.seats[1] = &seat{id: 1, length: lengthOf(1), tokens: text(1), kv: s.pool.NewSequence(), state: root.state}
	delete(s.seats, 0)
	if _, err := m.try(&batch.Batch{Copies: s.copies}); err != nil {
		t.Fatalf("a batch of copies alone: %v", err)
	}
	s.copies = nil
	got, at, err := s.run(m, t, []part{{6, 3, 3}, {1, 9, 9}, {5, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	own := newTable()
	want, where, err := own.run(m, t, []part{{0, 24, 24}, {1, 9, 9}})
	if err != nil {
		t.Fatal(err)
	}
	for k, a := range at {
		for j, w := range where {
			if w[1] == a[1] && w[0] == map[int]int{6: 0, 5: 0, 1: 1}[a[0]] {
				if err := equal(fmt.Sprintf("sequence %d after copies, position %d", a[0], a[1]), got[k], want[j]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// refusesStates gives batches whose slots are wrong.
func (m *machine) refusesStates(t *testing.T) {
	t.Helper()
	s := newTable()
	s.mustRun(t, m, []part{{0, 5, 1}, {1, 3, 1}})
	next := func() *batch.Batch {
		b := &batch.Batch{Tokens: []int32{7, 8}, Pos: []int32{5, 3}, Out: []int32{0, 1}}
		for i := range int32(2) {
			q := s.seats[int(i)]
			b.Seqs = append(b.Seqs, batch.Seq{ID: q.id, Row: i, N: 1, Start: b.Pos[i], State: q.state, Length: q.length,
				Spans: []batch.Span{{Block: q.kv.Spans()[0].Block, N: b.Pos[i] + 1}}})
		}
		return b
	}
	want := m.run(t, next())
	for name, spoil := range map[string]func(b *batch.Batch){
		"no slot":              func(b *batch.Batch) { b.Seqs[0].State = -1 },
		"a slot beyond":        func(b *batch.Batch) { b.Seqs[1].State = int32(limits.States) },
		"one slot twice":       func(b *batch.Batch) { b.Seqs[1].State = b.Seqs[0].State },
		"another position":     func(b *batch.Batch) { b.Seqs[1].State, b.Seqs[0].State = b.Seqs[0].State, b.Seqs[1].State },
		"a copy from nowhere":  func(b *batch.Batch) { b.Copies = []batch.StateCopy{{From: -2, To: 3}} },
		"a copy to nowhere":    func(b *batch.Batch) { b.Copies = []batch.StateCopy{{From: 0, To: math.MaxInt32}} },
		"a slot nobody filled": func(b *batch.Batch) { b.Seqs[0].State = int32(limits.States) - 1 },
	} {
		b := next()
		spoil(b)
		if _, err := m.try(b); err == nil {
			t.Errorf("%s: no error", name)
		}
		for k, row := range m.run(t, next()) {
			if err := equal("the batch after "+name, row, want[k]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// keepsNothing counts allocations of a decode step and of a chunk.
func (m *machine) keepsNothing(t *testing.T) {
	t.Helper()
	s := newTable()
	for _, parts := range mixed[:5] {
		s.mustRun(t, m, parts)
	}
	for _, parts := range [][]part{{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}}, {{3, 20, 1}, {1, 1, 1}}} {
		b, _, err := s.batch(parts)
		if err != nil {
			t.Fatal(err)
		}
		m.run(t, b)
		old := debug.SetGCPercent(-1)
		got := testing.AllocsPerRun(20, func() {
			if _, err := m.stages[0].Run(b, nil); err != nil {
				t.Error(err)
			}
		})
		debug.SetGCPercent(old)
		if got != 0 {
			t.Errorf("a batch of %v allocates %v times", parts, got)
		}
	}
}
