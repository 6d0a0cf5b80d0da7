package devicetest

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// decoder is a small model of the usual steps, with experts.
func decoder(t *testing.T, typ quant.Type) *net {
	n := newNet(t, 5)
	table := n.table(16)
	x := n.embed()
	for n.Layer = 0; n.Layer < 2; n.Layer++ {
		x = n.attend(x, heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{Window: 20 * n.Layer}, func(i int, y *graph.Node) *graph.Node {
			if i == 2 {
				return y
			}
			return n.rope(y, graph.RopeAttr{Table: table})
		})
		x = n.ffn(x, "silu")
		x = n.moe(x, typ, nil)
	}
	n.Layer--
	n.finish(n.head(x))
	return n
}

// testAllocations counts what a decode step and a chunk allocate: nothing.
func (d Device) testAllocations(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.Q4_0} {
		n := decoder(t, typ)
		m := d.open(t, n, compile.Options{})
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
			old := debug.SetGCPercent(-1) // a collection's own work is not the step's
			got := testing.AllocsPerRun(20, func() {
				if _, err := m.stages[0].Run(b, nil); err != nil {
					t.Error(err)
				}
			})
			debug.SetGCPercent(old)
			if got != 0 {
				t.Errorf("%s: a batch of %v allocates %v times", typ, parts, got)
			}
		}
	}
}

func (s *table) mustRun(t *testing.T, m *machine, parts []part) {
	t.Helper()
	if _, _, err := s.run(m, t, parts); err != nil {
		t.Fatal(err)
	}
}

// testErrors gives batches that no device may run: each ends in an error, and
// the stage goes on serving the next one to the same bits.
func (d Device) testErrors(t *testing.T) {
	n := decoder(t, quant.F32)
	m := d.open(t, n, compile.Options{})
	good := func() *batch.Batch {
		b, _, err := newTable().batch([]part{{0, 20, 1}, {1, 3, 1}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	want := m.run(t, good())
	for name, spoil := range map[string]func(b *batch.Batch){
		"empty":                       func(b *batch.Batch) { *b = batch.Batch{} },
		"token beyond the table":      func(b *batch.Batch) { b.Tokens[4] = vocab },
		"negative token":              func(b *batch.Batch) { b.Tokens[21] = -1 },
		"a block that does not exist": func(b *batch.Batch) { b.Seqs[1].Spans[0].Block = int32(limits.Blocks) },
		"a copy of no block":          func(b *batch.Batch) { b.Blocks = []batch.BlockCopy{{From: 0, To: 1}, {From: -1, To: 0}} },
		"a copy to no block":          func(b *batch.Batch) { b.Blocks = []batch.BlockCopy{{From: 0, To: int32(limits.Blocks)}} },
		"a negative block":            func(b *batch.Batch) { b.Seqs[0].Spans[0].Block = -1 },
		"too few blocks":              func(b *batch.Batch) { b.Seqs[0].Spans = b.Seqs[0].Spans[:1] },
		"a gap between blocks":        func(b *batch.Batch) { b.Seqs[0].Spans[1].Pos++ },
		"a block over two tiles":      func(b *batch.Batch) { b.Seqs[0].Spans[0].N = 20 },
		"an empty span":               func(b *batch.Batch) { b.Seqs[1].Spans[0].N = 0 },
		"more sequences than allowed": func(b *batch.Batch) {
			for len(b.Seqs) <= limits.Seqs {
				b.Seqs = append(b.Seqs, b.Seqs[1])
			}
		},
		"more rows than allowed": func(b *batch.Batch) {
			for b.Rows() <= limits.Rows {
				b.Tokens, b.Pos = append(b.Tokens, 1), append(b.Pos, 1)
			}
		},
		"sequences that do not cover the rows": func(b *batch.Batch) { b.Seqs = b.Seqs[:1] },
		"sequences that overlap":               func(b *batch.Batch) { b.Seqs[1].Row-- },
		"a wanted row beyond the batch":        func(b *batch.Batch) { b.Out[1] = int32(b.Rows()) },
		"a negative wanted row":                func(b *batch.Batch) { b.Out[0] = -1 },
		"more wanted rows than rows": func(b *batch.Batch) {
			for len(b.Out) <= b.Rows() {
				b.Out = append(b.Out, 0)
			}
		},
		"positions that contradict the sequence": func(b *batch.Batch) { b.Pos[3] = 7 },
		"fewer positions than tokens":            func(b *batch.Batch) { b.Pos = b.Pos[:b.Rows()-1] },
		"a start below zero":                     func(b *batch.Batch) { b.Seqs[1].Start = -1 },
		"more positions than a sequence may hold": func(b *batch.Batch) {
			q := &b.Seqs[1]
			q.Spans = nil
			for p := 0; p <= limits.Tokens; p += batch.BlockTokens {
				q.Spans = append(q.Spans, batch.Span{Block: int32(p/batch.BlockTokens) + 8, Pos: int32(p), N: batch.BlockTokens})
			}
			q.Start = int32(limits.Tokens) - 1
			for i := range q.N {
				b.Pos[q.Row+i] = q.Start + i
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := good()
			spoil(b)
			if _, err := m.stages[0].Run(b, nil); err == nil {
				t.Fatal("no error")
			}
			for i, r := range m.run(t, good()) {
				if err := equal("the batch after it", r, want[i]); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if _, err := m.stages[0].Run(good(), [][]float32{{1}}); err == nil {
		t.Error("a value that the stage does not expect was taken")
	}
	d.testLoadErrors(t)
}

// testLoadErrors loads programs whose weights are missing or do not fit.
func (d Device) testLoadErrors(t *testing.T) {
	for name, spoil := range map[string]func(v *tensor.View){
		"missing":       func(v *tensor.View) { v.Name = "" },
		"another shape": func(v *tensor.View) { v.Shape = tensor.Shape{v.Shape[0] + 1, v.Shape.Cols()} },
		"another width": func(v *tensor.View) { v.Shape = tensor.Shape{v.Shape[0], v.Shape.Cols() - 1} },
		"no such type":  func(v *tensor.View) { v.Type = 9999 },
		"not decodable": func(v *tensor.View) { v.Type, v.Shape = quant.IQ1_S, tensor.Shape{1, 256} },
	} {
		t.Run("load/"+name, func(t *testing.T) {
			n := newNet(t, 1)
			w := n.matrix(quant.F32, vocab, width)
			n.finish(n.must(n.Linear(n.embed(), w, nil)))
			v := n.src[w.Name]
			spoil(&v)
			if delete(n.src, w.Name); v.Name != "" {
				n.src[w.Name] = v
			}
			p, err := compile.Fuse(n.G, compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			program.Assign(p)
			s, err := d.Load(p, n.src, limits)
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), w.Name) {
				t.Errorf("%v: does not name the tensor %s", err, w.Name)
			}
		})
	}
}

// testDiagnose spoils one layer's weight: the first step with a value that is
// not finite is found and named; a sound batch gives "".
func (d Device) testDiagnose(t *testing.T) {
	n := decoder(t, quant.F32)
	m := d.open(t, n, compile.Options{})
	b, _, err := newTable().batch([]part{{0, 9, 9}})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.stages[0].Diagnose(b, nil); got != "" {
		t.Errorf("a sound batch is called %q", got)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		n := decoder(t, quant.F32)
		for _, x := range n.G.Nodes {
			a, ok := x.Attr.(*graph.LinearAttr)
			if ok && x.Layer == 1 {
				v := n.src[a.W.Name]
				if err := quant.F32.Encode(v.Data[4*5:4*6], []float32{float32(bad)}); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		m := d.open(t, n, compile.Options{})
		got := m.stages[0].Diagnose(b, nil)
		if !strings.Contains(got, "layer 1") || !strings.Contains(got, string(program.KindQKV)) && !strings.Contains(got, string(program.KindAttention)) {
			t.Errorf("a weight of %v in layer 1 gives the diagnosis %q", bad, got)
		}
	}
}

// SameBits runs the usual steps on two devices that promise the same bits,
// such as one with another number of threads.
func SameBits(t *testing.T, a, b Device) {
	for i := range len(Types) + 1 {
		n, typ := hybrid(t), quant.F32
		if i < len(Types) {
			typ = Types[i]
			n = decoder2(t, typ)
		}
		x, y := a.open(t, n, compile.Options{}), b.open(t, n, compile.Options{})
		s, r := newTable(), newTable()
		for i, parts := range mixed {
			b1, at, err1 := s.batch(parts)
			b2, _, err2 := r.batch(parts)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			got, want := x.run(t, b1), y.run(t, b2)
			for k := range got {
				if err := equal(fmt.Sprintf("%s: batch %d, sequence %d, position %d", typ, i, at[k][0], at[k][1]), got[k], want[k]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// decoder2 is a decoder whose products all have the type.
func decoder2(t *testing.T, typ quant.Type) *net {
	n := newNet(t, 6)
	l, _ := typ.Layout()
	k := max(64, l.Block)
	mul := func(x *graph.Node, out int) *graph.Node {
		return n.must(n.Linear(x, n.matrix(typ, out, x.Width()), nil))
	}
	x := n.must(n.Embed(n.Tokens(), n.store(quant.F32, n.floats(vocab*k, 0, 1), vocab, k), 0))
	h := n.rms(x)
	n.Layer = 0
	a := n.must(n.Attention(n.reshape(mul(h, k), k/16, 16), n.reshape(mul(h, k/4), k/64, 16), n.reshape(mul(h, k/4), k/64, 16),
		graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal}))
	x = n.add(x, mul(n.reshape(a, k), k))
	x = n.moe(x, typ, func(r *graph.RouteAttr, e *graph.ExpertsAttr) { r.TopK, e.Experts = 2, 4 })
	h = n.rms(x)
	x = n.add(x, mul(n.binary("mul", n.unary("gelu_tanh", mul(h, 2*k)), mul(h, 2*k)), k))
	n.finish(mul(n.rms(x), vocab))
	return n
}
