package devicetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/weight"
	"github.com/inferflow/inferflow/quant"
)

// Types are the weight types that every device must multiply.
var Types = []quant.Type{quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0,
	quant.Q2_K, quant.Q3_K, quant.Q4_K, quant.Q5_K, quant.Q6_K, quant.IQ4_NL, quant.IQ4_XS, quant.MXFP4}

func floating(t quant.Type) bool { return t == quant.F32 || t == quant.F16 || t == quant.BF16 }

const wide = 512 // a multiple of every block

func (d Device) testTypes(t *testing.T) {
	for i, typ := range Types {
		t.Run(typ.String(), func(t *testing.T) {
			d.testProduct(t, typ, uint64(i), true)
			d.testProduct(t, typ, uint64(i), false)
			d.testModel(t, typ, uint64(i))
		})
	}
}

// whole8 draws values that a block of 32 int8 codes holds exactly: integers up
// to ±127, which occurs in every block, times a power of two a block.
func (n *net) whole8(count int) []float32 {
	v := make([]float32, count)
	scale := 1.0
	for i := range v {
		if i%32 == 0 {
			scale = math.Ldexp(1, n.rng.IntN(5)-9)
		}
		v[i] = float32(scale * float64(n.rng.IntN(255)-127))
		if i%32 == 31 {
			v[i-n.rng.IntN(32)] = float32(127 * scale)
		}
	}
	return v
}

// testProduct multiplies table rows by one matrix, for every number of rows
// that a kernel may treat apart. With exact inputs no rounding of activations
// excuses a difference; with random ones the error must be what rounding each
// block of 32 to int8 gives: six standard deviations of it at most.
func (d Device) testProduct(t *testing.T, typ quant.Type, seed uint64, exact bool) {
	n := newNet(t, seed)
	table := n.floats(vocab*wide, 0, 1)
	if exact {
		table = n.whole8(vocab * wide)
	}
	w := n.matrix(typ, 75, wide)
	x := n.must(n.Embed(n.Tokens(), n.store(quant.F32, table, vocab, wide), 0))
	n.finish(n.must(n.Linear(x, w, n.vector(0, 75))))
	m := d.open(t, n, compile.Options{})
	m.has(t, []program.Kind{program.KindLinear})
	for _, k := range []int{1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 24, 31, 33, 48, 63} {
		b, _, err := newTable().batch([]part{{1, k, k}})
		if err != nil {
			t.Fatal(err)
		}
		want, err := ref.New(n.G, n.src).Run(b)
		if err != nil {
			t.Fatal(err)
		}
		got := m.run(t, b)
		if exact || floating(typ) {
			err = near(fmt.Sprintf("%d rows of exact activations", k), got, want, 1e-5)
		} else {
			err = rounded(n, w, table, b, got, want)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// rounded compares each value with the standard deviation that rounding the
// activations gives it: a block with maximum M errs by up to M/254 in each value.
func rounded(n *net, w *graph.Weight, table []float32, b *batch.Batch, got, want [][]float32) error {
	r, err := weight.Resolve(n.src, w)
	if err != nil {
		return err
	}
	row := make([]float32, wide)
	for o := range r.Shape.Rows() {
		if err := r.Floats(row, o); err != nil {
			return err
		}
		for i, id := range b.Tokens {
			x := table[int(id)*wide:][:wide]
			variance := 0.0
			for at := 0; at < wide; at += 32 {
				top, squares := 0.0, 0.0
				for k := at; k < at+32; k++ {
					top = math.Max(top, math.Abs(float64(x[k])))
					squares += float64(row[k]) * float64(row[k])
				}
				variance += top / 127 * top / 127 / 12 * squares
			}
			e, allowed := math.Abs(float64(got[i][o]-want[i][o])), 6*math.Sqrt(variance)+1e-5*math.Abs(float64(want[i][o]))
			if !(e <= allowed) {
				return fmt.Errorf("row %d of %d, value %d is %g, the reference says %g: %g apart, rounding activations explains %g",
					i, len(b.Tokens), o, got[i][o], want[i][o], e, allowed)
			}
		}
	}
	return nil
}

// testModel is every step with the type: attention, a gated pair, experts.
// Weights that mix types within a step are part of it.
func (d Device) testModel(t *testing.T, typ quant.Type, seed uint64) {
	n := newNet(t, seed)
	l, _ := typ.Layout()
	k := max(64, l.Block)
	product := func(typ quant.Type, x *graph.Node, out int) *graph.Node {
		return n.must(n.Linear(x, n.matrix(typ, out, x.Width()), nil))
	}
	x := n.must(n.Embed(n.Tokens(), n.store(quant.F32, n.floats(vocab*k, 0, 1), vocab, k), 0))
	table := n.table(16)
	for n.Layer = 0; n.Layer < 2; n.Layer++ {
		h, other := n.rms(x), typ
		switch {
		case n.Layer == 1 && floating(typ):
			other = quant.BF16
		case n.Layer == 1:
			other = quant.Q8_0
		}
		q, key := n.reshape(product(typ, h, k), k/16, 16), n.reshape(product(typ, h, k/4), k/64, 16)
		v := n.reshape(product(other, h, k/4), k/64, 16)
		a := n.must(n.Attention(n.rope(q, graph.RopeAttr{Table: table}), n.rope(key, graph.RopeAttr{Table: table}), v,
			graph.AttentionAttr{Scale: 0.25, Mask: graph.MaskCausal}))
		x = n.add(x, product(typ, n.reshape(a, k), k))
		h = n.rms(x)
		x = n.add(x, product(other, n.binary("mul", n.unary("silu", product(typ, h, 2*k)), product(other, h, 2*k)), k))
	}
	n.Layer--
	h := n.rms(x)
	x = n.add(x, n.mixture(h, h, typ, func(r *graph.RouteAttr, e *graph.ExpertsAttr) {
		r.TopK, r.Score, e.Experts = experts, "sigmoid", experts
	}))
	n.finish(product(typ, n.rms(x), vocab))
	tol := 1e-5
	if !floating(typ) {
		tol = 0.04
	}
	m := d.open(t, n, compile.Options{})
	m.has(t, []program.Kind{program.KindQKV, program.KindLinear, program.KindMoE})
	want := m.agree(t, n, tol)
	m.sameBits(t, n, want)
	m.shared(t, n, false)
	d.testCuts(t, n, want)
}
