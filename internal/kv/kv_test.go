package kv

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
)

// naive is a sequence as the obvious model has it: a value for each position,
// and a note of where the fast one said it lies.
type naive struct {
	seq    *Sequence
	values []int32
}

// machine runs random operations on sequences and on plain slices. cells holds
// what a device would have stored: block and slot → value.
type machine struct {
	t     testing.TB
	pool  *Pool
	cells map[[2]int32]int32
	alive []*naive
	next  int32
}

func newMachine(t testing.TB, blocks int) *machine {
	return &machine{t: t, pool: NewPool(blocks), cells: map[[2]int32]int32{}}
}

// at finds the block of a position through the spans.
func at(s *Sequence, pos int32) (int32, bool) {
	for _, sp := range s.Spans() {
		if pos >= sp.Pos && pos < sp.Pos+sp.N {
			return sp.Block, true
		}
	}
	return 0, false
}

func (m *machine) grow(x *naive, n int) {
	need, free := x.seq.Needs(n), m.pool.Free()
	err := x.seq.Grow(n)
	if need > free {
		if !errors.Is(err, ErrFull) || m.pool.Free() != free || x.seq.Len() != len(x.values) {
			m.t.Fatalf("grow by %d with %d of %d blocks: %v; %d blocks and %d positions afterwards", n, free, need, err, m.pool.Free(), x.seq.Len())
		}
		return
	}
	if err != nil || free-m.pool.Free() != need {
		m.t.Fatalf("grow by %d took %d blocks, %d were said: %v", n, free-m.pool.Free(), need, err)
	}
	for range n {
		pos := int32(len(x.values))
		b, ok := at(x.seq, pos)
		if !ok {
			m.t.Fatalf("position %d has no block", pos)
		}
		if m.pool.refs[b] != 1 {
			m.t.Fatalf("position %d is written to block %d, which %d sequences read", pos, b, m.pool.refs[b])
		}
		m.next++
		m.cells[[2]int32{b, pos % batch.BlockTokens}] = m.next
		x.values = append(x.values, m.next)
	}
}

// check compares all sequences with their plain twins.
func (m *machine) check() {
	m.t.Helper()
	var seqs []*Sequence
	for i, x := range m.alive {
		seqs = append(seqs, x.seq)
		pos := int32(0)
		for _, sp := range x.seq.Spans() {
			if sp.Pos != pos || sp.N < 1 || sp.Pos/batch.BlockTokens != (sp.Pos+sp.N-1)/batch.BlockTokens {
				m.t.Fatalf("sequence %d: span %+v after position %d", i, sp, pos)
			}
			for ; pos < sp.Pos+sp.N; pos++ {
				if int(pos) >= len(x.values) || m.cells[[2]int32{sp.Block, pos % batch.BlockTokens}] != x.values[pos] {
					m.t.Fatalf("sequence %d: position %d does not hold what was stored", i, pos)
				}
			}
		}
		if int(pos) != len(x.values) || x.seq.Len() != len(x.values) {
			m.t.Fatalf("sequence %d: %d positions, %d said, want %d", i, pos, x.seq.Len(), len(x.values))
		}
	}
	if err := m.pool.Check(seqs); err != nil {
		m.t.Fatal(err)
	}
}

// op runs one operation that two bytes describe.
func (m *machine) op(kind, arg byte) {
	if len(m.alive) == 0 || kind%8 == 0 && len(m.alive) < 12 {
		m.alive = append(m.alive, &naive{seq: m.pool.NewSequence()})
	}
	i := int(arg) % len(m.alive)
	x := m.alive[i]
	switch kind % 8 {
	case 1, 2, 3:
		m.grow(x, int(arg)/4)
	case 4:
		m.grow(x, 1)
	case 5:
		if len(m.alive) < 12 {
			m.alive = append(m.alive, &naive{x.seq.Fork(), append([]int32{}, x.values...)})
		}
	case 6:
		n := int(arg) % (len(x.values) + 2)
		x.seq.Truncate(n)
		x.values = x.values[:min(n, len(x.values))]
	case 7:
		x.seq.Release()
		m.alive = append(m.alive[:i], m.alive[i+1:]...)
	}
	m.check()
}

func TestRandomTraffic(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newMachine(t, 4+int(seed)*2)
		for range 400 {
			m.op(byte(r.Uint32()), byte(r.Uint32()))
		}
		for _, x := range m.alive {
			x.seq.Release()
		}
		if m.alive = nil; m.pool.Free() != m.pool.Total() {
			t.Fatalf("seed %d: %d of %d blocks are free at the end", seed, m.pool.Free(), m.pool.Total())
		}
	}
}

func FuzzSequences(f *testing.F) {
	f.Add([]byte{1, 200, 5, 0, 4, 0, 4, 1, 6, 17, 7, 0, 4, 0})
	f.Add([]byte{1, 80, 5, 0, 6, 5, 7, 1, 1, 255, 1, 255, 1, 255})
	f.Add([]byte{0, 0, 1, 64, 5, 1, 5, 1, 4, 0, 4, 1, 4, 2, 6, 3})
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := newMachine(t, 20)
		for i := 0; i+1 < len(ops) && i < 600; i += 2 {
			m.op(ops[i], ops[i+1])
		}
	})
}

// TestFork pins where a shared tile splits: the prompt's block is read by both,
// each answer goes on in a block of its own at the same 16 positions.
func TestFork(t *testing.T) {
	p := NewPool(4)
	a := p.NewSequence()
	if err := a.Grow(20); err != nil {
		t.Fatal(err)
	}
	b := a.Fork()
	for _, s := range []*Sequence{a, b} {
		if err := s.Grow(1); err != nil {
			t.Fatal(err)
		}
	}
	want := []batch.Span{{Block: 0, Pos: 0, N: 16}, {Block: 1, Pos: 16, N: 4}, {Block: 3, Pos: 20, N: 1}}
	for i, sp := range b.Spans() {
		if sp != want[i] {
			t.Errorf("span %d is %+v, want %+v", i, sp, want[i])
		}
	}
	if err := b.Grow(12); !errors.Is(err, ErrFull) || b.Len() != 21 {
		t.Errorf("a full pool gives %v and %d positions", err, b.Len())
	}
	a.Release()
	if p.Free() != 1 || p.Check([]*Sequence{b}) != nil {
		t.Errorf("%d blocks free after the release of one", p.Free())
	}
}

func TestCheckFinds(t *testing.T) {
	p := NewPool(3)
	s := p.NewSequence()
	if err := s.Grow(17); err != nil {
		t.Fatal(err)
	}
	if p.Check(nil) == nil {
		t.Error("a forgotten sequence is not found")
	}
	p.refs[2] = 1
	if p.Check([]*Sequence{s}) == nil {
		t.Error("a lost block is not found")
	}
	p.refs[2] = 0
	p.free = append(p.free, p.free[0])
	if p.Check([]*Sequence{s}) == nil {
		t.Error("a block that is free twice is not found")
	}
}
