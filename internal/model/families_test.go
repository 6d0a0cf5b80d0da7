package model_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/model"
)

// families lists the zoo: names in the order of its index.
func families(t *testing.T, dir string) (names []string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.FieldsPerRecord = '\t', -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 100 {
		t.Fatalf("%d families: %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		names = append(names, row[0])
	}
	return names
}

// own is how far the compiled program may be from the exact graph. The tiny
// models of the delta rule make rounding larger: PyTorch's own forms of it are
// 1e-5 apart on them.
func own(m *model.Model) float64 {
	for _, n := range m.Graph().Nodes {
		if n.Op == graph.OpGatedDelta {
			return 6e-5
		}
	}
	return 1e-5
}

// TestFamilies holds every family of the zoo, as a folder and as a GGUF file
// where there is one, against PyTorch's logits: exact; node by node; compiled at
// once, in chunks of 5, token by token, and with three sequences of different
// lengths in one batch. In each the rows are the same.
func TestFamilies(t *testing.T) {
	dir := zoo(t)
	for _, family := range families(t, dir) {
		g := readGolden(t, filepath.Join(dir, family, "golden.json"))
		t.Run(family, func(t *testing.T) { testFamily(t, filepath.Join(dir, family), g) })
		if file := filepath.Join(dir, "gguf", family+".gguf"); exists(file) {
			t.Run(family+".gguf", func(t *testing.T) { testFamily(t, file, g) })
		}
	}
}

func testFamily(t *testing.T, path string, g golden) {
	o := model.Options{Threads: 2, Keys: "f32", Values: "f32", Context: 128, NoTokenizer: true, KVMemory: 64 << 20}
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	exact := exactRows(t, m, g)
	within(t, "exact", exact, g.Logits, 1e-4)
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	p, tol := newPlayer(t, m), own(m)
	chunks := []int{len(g.sequence(m)), 5, 1}
	if m.Whole() {
		chunks = chunks[:1]
	}
	for _, n := range chunks {
		got := p.alone(g, n)
		within(t, fmt.Sprintf("compiled, chunks of %d", n), got, g.Logits, 1e-4)
		within(t, fmt.Sprintf("compiled against exact, chunks of %d", n), got, exact, tol)
	}
	p.greedy(g)
	for i, got := range p.company(g) {
		within(t, fmt.Sprintf("in company, sequence %d", i), got, exact[:len(got)], tol)
	}
	o.Unfused = true
	plain, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if err := plain.Load(); err != nil {
		t.Fatal(err)
	}
	within(t, "node by node", newPlayer(t, plain).alone(g, len(g.sequence(plain))), exact, tol)
}

// sequence is what rows of logits are for: the ids, or the decoder's.
func (g *golden) sequence(m *model.Model) []int32 {
	if m.Encodes() {
		return g.Decoder
	}
	return g.IDs
}

func exactRows(t *testing.T, m *model.Model, g golden) [][]float32 {
	t.Helper()
	x := m.Exact()
	if m.Encodes() {
		if _, err := x.Run(encodeBatch(g.IDs, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return run(t, x, sequence(g.sequence(m), 0, len(g.sequence(m))))
}

func run(t *testing.T, x *ref.Machine, b *batch.Batch) [][]float32 {
	t.Helper()
	out, err := x.Run(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// encodeBatch is the encode batch of sequence id, in blocks from first on.
func encodeBatch(ids []int32, id, first int32) *batch.Batch {
	b := sequence(ids, 0, len(ids))
	b.Encode, b.Out = true, nil
	b.Seqs[0].ID = id
	for i := range b.Seqs[0].Spans {
		b.Seqs[0].Spans[i].Block += first
	}
	return b
}

// player runs sequences of a golden on a loaded model; each has blocks and a
// state of its own.
type player struct {
	t *testing.T
	m *model.Model
}

func newPlayer(t *testing.T, m *model.Model) *player { return &player{t, m} }

// room is the number of blocks of one seat: a source and a sequence.
const room = 16

// part is n tokens of a seat's sequence from position at on.
func (p *player) part(b *batch.Batch, seat int, ids []int32, at, n, source int) {
	row := len(b.Tokens)
	one := sequence(ids, at, n)
	for i := range one.Seqs[0].Spans {
		one.Seqs[0].Spans[i].Block += int32(seat * room)
	}
	q := one.Seqs[0]
	q.ID, q.Row, q.State, q.Counted = int32(seat), int32(row), int32(seat), int32(at)
	if p.m.Encodes() {
		q.Memory = sequence(make([]int32, source), 0, source).Seqs[0].Spans
		for i := range q.Memory {
			q.Memory[i].Block += int32(seat*room + room/2)
		}
	}
	b.Tokens, b.Pos, b.Seqs = append(b.Tokens, one.Tokens...), append(b.Pos, one.Pos...), append(b.Seqs, q)
	for i := range n {
		b.Out = append(b.Out, int32(row+i))
	}
}

func (p *player) forward(b *batch.Batch) {
	p.t.Helper()
	if err := p.m.Forward(b); err != nil {
		p.t.Fatal(err)
	}
}

// encode runs the source of a seat where the model has an encoder.
func (p *player) encode(seat int, ids []int32) {
	p.t.Helper()
	if p.m.Encodes() {
		p.forward(encodeBatch(ids, int32(seat), int32(seat*room+room/2)))
	}
}

func (p *player) rows(n int) (out [][]float32) {
	for i := range n {
		out = append(out, append([]float32{}, p.m.Logits(i)...))
	}
	return out
}

// alone runs the golden's sequence by itself in chunks.
func (p *player) alone(g golden, chunk int) (out [][]float32) {
	p.t.Helper()
	p.encode(0, g.IDs)
	ids := g.sequence(p.m)
	for at := 0; at < len(ids); at += chunk {
		n := min(chunk, len(ids)-at)
		b := &batch.Batch{}
		p.part(b, 0, ids, at, n, len(g.IDs))
		p.forward(b)
		out = append(out, p.rows(n)...)
	}
	return out
}

// greedy continues after the golden's ids, whose keys and values alone has left,
// and holds each token against PyTorch's.
func (p *player) greedy(g golden) {
	p.t.Helper()
	ids, last := append([]int32{}, g.IDs...), g.Logits[len(g.Logits)-1]
	for i, want := range g.Greedy {
		best := 0
		for k, v := range last {
			if v > last[best] {
				best = k
			}
		}
		if int32(best) != want {
			p.t.Fatalf("greedy token %d is %d, the reference says %d", i, best, want)
		}
		b := &batch.Batch{}
		ids = append(ids, want)
		p.part(b, 0, ids, len(ids)-1, 1, 0)
		b.Seqs[0].Length = int32(len(g.IDs))
		p.forward(b)
		last = p.rows(1)[0]
	}
}

// company runs the whole sequence, its first half and two thirds of it in one
// batch (where sequences may be cut: after a first batch of uneven parts).
func (p *player) company(g golden) [][][]float32 {
	p.t.Helper()
	ids := g.sequence(p.m)
	lengths := []int{len(ids), len(ids) / 2, len(ids) * 2 / 3}
	if p.m.Whole() { // what a row sees depends on the length: the whole thrice
		lengths = []int{len(ids), len(ids), len(ids)}
	}
	out := make([][][]float32, len(lengths))
	at := make([]int, len(lengths))
	for seat := range lengths {
		p.encode(seat, g.IDs)
	}
	for _, first := range []bool{true, false} {
		b := &batch.Batch{}
		var counts []int
		for seat, n := range lengths {
			n -= at[seat]
			if first && !p.m.Whole() {
				n = 1 + seat
			}
			if n > 0 {
				p.part(b, seat, ids, at[seat], n, len(g.IDs))
			}
			counts = append(counts, n)
			at[seat] += n
		}
		if len(b.Seqs) == 0 {
			continue
		}
		p.forward(b)
		row := 0
		all := p.rows(len(b.Out))
		for seat, n := range counts {
			out[seat] = append(out[seat], all[row:row+n]...)
			row += n
		}
	}
	return out
}
