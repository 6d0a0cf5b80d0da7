package devicetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kv"
	"github.com/inferflow/inferflow/internal/program"
)

// part is n tokens of a sequence in a batch; out says how many of the last
// rows are wanted.
type part struct{ seq, n, out int }

// mixed prefills, goes on and decodes four sequences, as a server's steps do:
// decode rows beside chunks, batches without a wanted row, tiles of 16
// positions crossed by chunks and by single tokens.
var mixed = [][]part{
	{{0, 18, 18}, {1, 5, 1}},
	{{0, 1, 1}, {1, 1, 1}, {2, 31, 0}},
	{{2, 3, 0}},
	{{1, 1, 1}, {0, 1, 1}, {2, 2, 2}, {3, 3, 3}},
	{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}},
	{{3, 40, 2}, {1, 9, 9}, {0, 12, 4}},
	{{2, 1, 1}},
}

// atOnce is a single batch, for what must not be chunked.
var atOnce = [][]part{{{0, 18, 18}, {1, 5, 1}, {2, 33, 4}}}

// padToken is what positions by count pass over; every text has some.
const padToken = 7

// text is the tokens of a sequence, the same in every run.
func text(seq int) []int32 {
	rng := rand.New(rand.NewPCG(uint64(seq), 3))
	out := make([]int32, limits.Tokens)
	for i := range out {
		out[i] = int32(rng.IntN(vocab))
	}
	return out
}

// lengthOf stands for the length of a sequence's prompt, which chooses tables.
func lengthOf(seq int) int32 { return int32(12 * (seq + 1)) }

// seat is where a sequence lies and what it says.
type seat struct {
	id     int32
	length int32
	tokens []int32
	kv     *kv.Sequence
	at     int
	state  int32

	source []int32 // of a net with an encoder, and where it lies once encoded
	memory *kv.Sequence
}

// table holds the sequences of a run.
type table struct {
	pool   *kv.Pool
	slots  *kv.Slots
	seats  map[int]*seat
	copies []batch.StateCopy // for the next batch
	blocks []batch.BlockCopy // likewise
}

func newTable() *table {
	return &table{pool: kv.NewPool(limits.Blocks), slots: kv.NewSlots(limits.States), seats: map[int]*seat{}}
}

// slot hands out a state slot.
func (s *table) slot() int32 {
	i, err := s.slots.Take()
	if err != nil {
		panic(err) // a test with more sequences than slots
	}
	return i
}

func (s *table) seat(seq int) *seat {
	if s.seats[seq] == nil {
		s.seats[seq] = &seat{id: int32(seq), length: lengthOf(seq), tokens: text(seq), kv: s.pool.NewSequence(), state: s.slot(), source: sourceOf(seq)}
	}
	return s.seats[seq]
}

// batch appends the parts to a batch; at tells where each wanted row belongs.
func (s *table) batch(parts []part) (b *batch.Batch, at [][2]int, err error) {
	b = &batch.Batch{Copies: s.copies, Blocks: s.blocks}
	s.copies, s.blocks = nil, nil
	for _, p := range parts {
		q := s.seat(p.seq)
		if err := q.kv.Grow(p.n); err != nil {
			return nil, nil, err
		}
		row, counted := b.Rows(), int32(0)
		for _, id := range q.tokens[:q.at] {
			if id != padToken {
				counted++
			}
		}
		for i := 0; i < p.n; i++ {
			b.Tokens, b.Pos = append(b.Tokens, q.tokens[q.at+i]), append(b.Pos, int32(q.at+i))
			b.Types = append(b.Types, int32((q.at+i)/5%2))
			if i >= p.n-p.out {
				b.Out, at = append(b.Out, int32(row+i)), append(at, [2]int{p.seq, q.at + i})
			}
		}
		b.Seqs = append(b.Seqs, batch.Seq{ID: q.id, Row: int32(row), N: int32(p.n), Start: int32(q.at), State: q.state, Length: q.length, Counted: counted,
			Spans: append([]batch.Span{}, q.kv.Spans()...)})
		q.at += p.n
	}
	return b, at, nil
}

// rows is results by sequence and position.
type rows map[[2]int][]float32

// agree runs the mixed batches on the device and on the reference and returns
// the device's rows.
func (m *machine) agree(t *testing.T, n *net, tol float64) rows {
	t.Helper()
	steps := mixed
	if graph.Whole(n.G) {
		steps = atOnce
	}
	s, out := newTable(), rows{}
	for i, parts := range steps {
		b, at, err := s.batch(parts)
		if err != nil {
			t.Fatal(err)
		}
		if e := m.encode(t, s, parts, b); e != nil {
			n.referenceRun(t, e)
		}
		got := m.run(t, b)
		if err := near(fmt.Sprintf("batch %d", i), got, n.reference(t, i, b), tol); err != nil {
			t.Fatalf("%v\n%s", err, program.Text(m.p))
		}
		for k, a := range at {
			out[a] = got[k]
		}
	}
	return out
}

// reference is what device/ref says of batch i; it is computed once a net.
func (n *net) reference(t *testing.T, i int, b *batch.Batch) [][]float32 {
	t.Helper()
	if i == len(n.said) {
		n.said = append(n.said, n.referenceRun(t, b))
	}
	return n.said[i]
}

func (n *net) referenceRun(t *testing.T, b *batch.Batch) [][]float32 {
	t.Helper()
	if n.ref == nil {
		n.ref = ref.New(n.G, n.src)
	}
	want, err := n.ref.Run(b)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// sameBits runs each sequence alone, whole, in chunks of 7 and token by token.
func (m *machine) sameBits(t *testing.T, n *net, want rows) {
	t.Helper()
	m.alone(t, want, 0, 7, 1)
}

// alone runs each sequence in chunks of those lengths, 0 for all at once.
func (m *machine) alone(t *testing.T, want rows, chunks ...int) {
	t.Helper()
	m.aloneOf(t, want, []int{0, 1, 2, 3}, chunks...)
}

// aloneOf is alone for those sequences.
func (m *machine) aloneOf(t *testing.T, want rows, seqs []int, chunks ...int) {
	t.Helper()
	for _, seq := range seqs {
		total := 0
		for at := range want {
			if at[0] == seq {
				total = max(total, at[1]+1)
			}
		}
		if total == 0 {
			continue
		}
		for _, chunk := range chunks {
			if chunk == 0 {
				chunk = total
			}
			s := newTable()
			if err := s.occupy(chunk % 5); err != nil {
				t.Fatal(err)
			}
			for done := 0; done < total; done += chunk {
				k := min(chunk, total-done)
				m.same(t, s, []part{{seq, k, k}}, want, fmt.Sprintf("sequence %d in chunks of %d", seq, chunk))
			}
		}
	}
}

// occupy takes n blocks, so that a run lies elsewhere.
func (s *table) occupy(n int) error {
	s.slot()
	return s.pool.NewSequence().Grow(n * batch.BlockTokens)
}

// same runs a batch and compares those rows in bits that want has.
func (m *machine) same(t *testing.T, s *table, parts []part, want rows, what string) {
	t.Helper()
	b, at, err := s.batch(parts)
	if err != nil {
		t.Fatal(err)
	}
	m.encode(t, s, parts, b)
	got := m.run(t, b)
	for k, a := range at {
		if w := want[a]; w != nil {
			if err := equal(fmt.Sprintf("%s, position %d", what, a[1]), got[k], w); err != nil {
				t.Fatalf("%v\n%s", err, program.Text(m.p))
			}
		}
	}
}

// shared forks sequences inside a tile of 16 positions, twice, so that up to
// three blocks supply one tile, and holds the answers in bits against the same
// tokens of a sequence of their own; with copies each fork copies the block of
// that tile instead.
func (m *machine) shared(t *testing.T, n *net, copies bool) {
	t.Helper()
	s := newTable()
	root := s.seat(0)
	first := []part{{0, 21, 1}}
	if _, _, err := s.run(m, t, first); err != nil {
		t.Fatal(err)
	}
	fork := func(from, to int) {
		f, g := s.seats[from], *root
		g.id, g.kv, g.at, g.state = int32(to), f.kv.Fork(), f.at, s.slot()
		s.copies = append(s.copies, batch.StateCopy{From: f.state, To: g.state})
		if copies {
			c, _, err := g.kv.Own()
			if err != nil {
				t.Fatal(err)
			}
			s.blocks = append(s.blocks, c)
		}
		g.tokens = append(append([]int32{}, f.tokens[:f.at]...), text(to)[f.at:]...)
		s.seats[to] = &g
	}
	fork(0, 5)
	_, _, err := s.run(m, t, []part{{5, 3, 1}, {0, 2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	fork(5, 6)
	got, at, err := s.run(m, t, []part{{6, 2, 2}, {5, 1, 1}, {0, 14, 2}})
	if err != nil {
		t.Fatal(err)
	}
	more, at2, err := s.run(m, t, []part{{6, 14, 3}, {5, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	got, at = append(got, more...), append(at, at2...)
	for _, seq := range []int{0, 5, 6} {
		own, f := newTable(), s.seats[seq]
		own.seats[seq] = &seat{id: f.id, length: f.length, tokens: f.tokens, kv: own.pool.NewSequence(), state: own.slot(), source: f.source}
		whole, where, err := own.run(m, t, []part{{seq, f.at, f.at}})
		if err != nil {
			t.Fatal(err)
		}
		for k, a := range at {
			for j, w := range where {
				if a == w {
					if err := equal(fmt.Sprintf("sequence %d on shared blocks, position %d", seq, a[1]), got[k], whole[j]); err != nil {
						t.Fatalf("%v\n%s", err, program.Text(m.p))
					}
				}
			}
		}
	}
}

func (s *table) run(m *machine, t *testing.T, parts []part) ([][]float32, [][2]int, error) {
	t.Helper()
	b, at, err := s.batch(parts)
	if err != nil {
		return nil, nil, err
	}
	m.encode(t, s, parts, b)
	return m.run(t, b), at, nil
}

// testCuts runs the program in two stages, cut before each layer.
func (d Device) testCuts(t *testing.T, n *net, want rows) {
	t.Helper()
	for l := 1; l < n.G.Layers; l++ {
		p, err := compile.Fuse(n.G, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := program.Cut(p, l); err != nil {
			continue // a layer that reads another's keys stays with it
		}
		m, s := d.open(t, n, compile.Options{}, l), newTable()
		for _, parts := range mixed {
			m.same(t, s, parts, want, fmt.Sprintf("cut before layer %d", l))
		}
	}
}
