package weight

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// shelf is a Source of tensors made for a test.
type shelf map[string]tensor.View

func (s shelf) Tensor(name string) (tensor.View, bool) {
	v, ok := s[name]
	return v, ok
}

// put stores values, counted from `from` in steps of one, as a tensor.
func (s shelf) put(t *testing.T, name string, typ quant.Type, from float32, shape ...int) *graph.Weight {
	t.Helper()
	v := make([]float32, graph.Product(shape))
	for i := range v {
		v[i] = from + float32(i)
	}
	return s.store(t, name, typ, v, shape...)
}

func (s shelf) store(t *testing.T, name string, typ quant.Type, v []float32, shape ...int) *graph.Weight {
	t.Helper()
	size, ok := typ.RowBytes(len(v))
	if !ok {
		t.Fatalf("%v of %s", shape, typ)
	}
	b := make([]byte, size)
	if err := typ.Encode(b, v); err != nil {
		t.Fatal(err)
	}
	s[name] = tensor.View{Name: name, Type: typ, Shape: shape, Data: b}
	return graph.Tensor(name, shape)
}

func must(t *testing.T) func(*graph.Weight, error) *graph.Weight {
	return func(w *graph.Weight, err error) *graph.Weight {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// at is the value of an expression at an index, by its definition: slow and
// independent of rows.
func at(s shelf, w *graph.Weight, idx []int) float32 {
	switch w.Op {
	case graph.WTensor:
		v := s[w.Name]
		flat := 0
		for i, d := range w.Shape {
			flat = flat*d + idx[i]
		}
		row := make([]float32, v.Shape.Cols())
		if err := v.Type.Decode(row, v.Row(flat/len(row))); err != nil {
			panic(err)
		}
		return row[flat%len(row)]
	case graph.WConst:
		flat := 0
		for i, d := range w.Shape {
			flat = flat*d + idx[i]
		}
		return float32(w.Data[flat])
	case graph.WConcat:
		idx = slices.Clone(idx)
		for _, a := range w.Args {
			if idx[w.Axis] < a.Shape[w.Axis] {
				return at(s, a, idx)
			}
			idx[w.Axis] -= a.Shape[w.Axis]
		}
	case graph.WStack:
		return at(s, w.Parts()[idx[0]], idx[1:])
	case graph.WSlice, graph.WPermute:
		idx = slices.Clone(idx)
		if w.Op == graph.WPermute {
			idx[w.Axis] = w.Perm[idx[w.Axis]]
		} else {
			idx[w.Axis] = w.From + w.Step*idx[w.Axis]
		}
		return at(s, w.Args[0], idx)
	case graph.WTranspose:
		in := make([]int, len(idx))
		for i, p := range w.Perm {
			in[p] = idx[i]
		}
		return at(s, w.Args[0], in)
	case graph.WReshape:
		flat := 0
		for i, d := range w.Shape {
			flat = flat*d + idx[i]
		}
		in := make([]int, len(w.Args[0].Shape))
		for i := len(in) - 1; i >= 0; i-- {
			in[i] = flat % w.Args[0].Shape[i]
			flat /= w.Args[0].Shape[i]
		}
		return at(s, w.Args[0], in)
	case graph.WAffine:
		return float32(w.A)*at(s, w.Args[0], idx) + float32(w.B)
	case graph.WMap:
		return Maps[w.F](at(s, w.Args[0], idx))
	}
	panic("no meaning: " + string(w.Op))
}

// check compares every value of Resolve, by rows and by All, with at.
func check(t *testing.T, s shelf, w *graph.Weight, typ quant.Type) {
	t.Helper()
	r, err := Resolve(s, w)
	if err != nil {
		t.Fatal(err)
	}
	if r.Type != typ || !r.Shape.Equal(w.Shape) {
		t.Fatalf("%s: resolved to %s %s, want %s %v", w, r.Type, r.Shape, typ, w.Shape)
	}
	all, err := r.All()
	if err != nil {
		t.Fatal(err)
	}
	idx := make([]int, len(w.Shape))
	for i, got := range all {
		rest := i
		for d := len(idx) - 1; d >= 0; d-- {
			idx[d] = rest % w.Shape[d]
			rest /= w.Shape[d]
		}
		if want := at(s, w, idx); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%s: value %v is %g, by definition %g", w, idx, got, want)
		}
	}
	if n, _ := r.Type.RowBytes(r.Shape.Cols()); r.Bytes() != n*r.Shape.Rows() {
		t.Errorf("%s: %d bytes", w, r.Bytes())
	}
}

func TestResolve(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.F16, quant.Q8_0, quant.Q4_1} {
		t.Run(typ.String(), func(t *testing.T) { testExpressions(t, typ) })
	}
}

func testExpressions(t *testing.T, typ quant.Type) {
	s, ok := shelf{}, must(t)
	a := s.put(t, "a", typ, 0, 6, 64)
	b := s.put(t, "b", typ, 500, 2, 64)
	c := s.put(t, "c", typ, -300, 2, 3, 64)
	for name, w := range map[string]*graph.Weight{
		"stored":                a,
		"slice of rows":         ok(graph.SliceWeight(a, 0, 1, 5, 1)),
		"every second row":      ok(graph.SliceWeight(a, 0, 1, 6, 2)),
		"slice of the middle":   ok(graph.SliceWeight(c, 1, 1, 3, 1)),
		"slice of blocks":       ok(graph.SliceWeight(a, 1, 32, 64, 1)),
		"rows permuted":         ok(graph.PermuteWeight(a, 0, []int{3, 1, 5, 0, 2, 4})),
		"middle permuted":       ok(graph.PermuteWeight(c, 1, []int{2, 0, 1})),
		"joined":                ok(graph.ConcatWeights(0, a, b)),
		"joined in columns":     ok(graph.ConcatWeights(1, b, ok(graph.SliceWeight(a, 0, 2, 4, 1)))),
		"joined in the middle":  ok(graph.ConcatWeights(1, c, ok(graph.ReshapeWeight(a, []int{2, 3, 64})))),
		"stacked names":         ok(graph.StackTensors([]string{a.Name, a.Name, a.Name}, a.Shape)),
		"stacked":               ok(graph.StackWeights(b, ok(graph.SliceWeight(a, 0, 0, 2, 1)))),
		"reshaped":              ok(graph.ReshapeWeight(a, []int{2, 3, 64})),
		"reshaped to blocks":    ok(graph.ReshapeWeight(a, []int{12, 32})),
		"reshaped to longer":    ok(graph.ReshapeWeight(a, []int{3, 128})),
		"axes exchanged":        ok(graph.TransposeWeight(c, []int{1, 0, 2})),
		"cut, joined, permuted": ok(graph.PermuteWeight(ok(graph.ConcatWeights(0, ok(graph.SliceWeight(a, 0, 0, 6, 3)), b)), 0, []int{3, 0, 2, 1})),
	} {
		t.Run(name, func(t *testing.T) { check(t, s, w, typ) })
	}
	t.Run("values changed", func(t *testing.T) {
		check(t, s, ok(graph.AffineWeight(b, 2, -1)), quant.F32)
		check(t, s, ok(graph.MapWeight(ok(graph.AffineWeight(b, 0.001, 0)), "neg_exp")), quant.F32)
	})
}

// TestColumns changes columns: possible where a value stands by itself,
// refused with ErrColumns inside blocks.
func TestColumns(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.F16, quant.Q8_0, quant.Q6_K} {
		s, ok := shelf{}, must(t)
		a := s.put(t, "a", typ, 0, 4, 256)
		perm := make([]int, 256)
		for i := range perm {
			perm[i] = (i*7 + 3) % 256
		}
		for name, w := range map[string]*graph.Weight{
			"transposed":       ok(graph.TransposeWeight(a, []int{1, 0})),
			"columns permuted": ok(graph.PermuteWeight(a, 1, perm)),
			"odd columns":      ok(graph.SliceWeight(a, 1, 1, 256, 2)),
			"within a block":   ok(graph.SliceWeight(a, 1, 3, 200, 1)),
			"shorter rows":     ok(graph.ReshapeWeight(a, []int{64, 16})),
		} {
			t.Run(fmt.Sprintf("%s/%s", typ, name), func(t *testing.T) {
				if l, _ := typ.Layout(); l.Block > 1 {
					if _, err := Resolve(s, w); !errors.Is(err, ErrColumns) || !strings.Contains(err.Error(), "a") {
						t.Errorf("error %v, want ErrColumns with the tensor's name", err)
					}
					return
				}
				check(t, s, w, typ)
			})
		}
	}
}

// TestMixedTypes joins parts of different types: they become float32.
func TestMixedTypes(t *testing.T) {
	s, ok := shelf{}, must(t)
	a, b := s.put(t, "a", quant.Q8_0, 0, 2, 32), s.put(t, "b", quant.F16, 70, 2, 32)
	check(t, s, ok(graph.ConcatWeights(0, a, b)), quant.F32)
	check(t, s, ok(graph.ConcatWeights(1, a, b)), quant.F32)
	check(t, s, ok(graph.StackWeights(a, b)), quant.F32)
}

// TestAliasing holds that rows which only move are the file's own bytes.
func TestAliasing(t *testing.T) {
	s, ok := shelf{}, must(t)
	a := s.put(t, "a", quant.Q4_0, 0, 6, 64)
	r, err := Resolve(s, ok(graph.PermuteWeight(ok(graph.SliceWeight(a, 0, 2, 6, 1)), 0, []int{3, 1, 2, 0})))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := &r.Row(0)[0], &s["a"].Data[5*s["a"].RowBytes()]; got != want {
		t.Error("a moved row was copied")
	}
	if n := testing.AllocsPerRun(10, func() { _ = r.Row(2) }); n != 0 {
		t.Errorf("a row allocates %v times", n)
	}
}

func TestVector(t *testing.T) {
	s := shelf{}
	w := s.put(t, "v", quant.F16, 3, 5)
	v, err := Vector(s, w)
	if err != nil || !slices.Equal(v, []float32{3, 4, 5, 6, 7}) {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := Vector(s, nil); v != nil || err != nil {
		t.Errorf("no weight gives %v, %v", v, err)
	}
	c := &graph.Weight{Op: graph.WConst, Shape: []int{2}, Data: []float64{0.5, -2}}
	if v, err := Vector(s, c); err != nil || !slices.Equal(v, []float32{0.5, -2}) {
		t.Errorf("numbers give %v, %v", v, err)
	}
	// Files store [1, n] or [n, 1, 1] for what a specification calls [n].
	s.put(t, "wide", quant.F32, 1, 1, 4)
	if v, err := Vector(s, graph.Tensor("wide", []int{4})); err != nil || len(v) != 4 {
		t.Errorf("a leading dimension of one gives %v, %v", v, err)
	}
}

func TestErrors(t *testing.T) {
	s := shelf{}
	s.put(t, "a", quant.F32, 0, 4, 8)
	if _, err := Resolve(s, graph.Tensor("gone", []int{4, 8})); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a missing tensor: %v", err)
	}
	var shape *ShapeError
	if _, err := Resolve(s, graph.Tensor("a", []int{8, 4})); !errors.As(err, &shape) || !strings.Contains(err.Error(), "a") {
		t.Errorf("another shape: %v", err)
	}
	s["odd"] = tensor.View{Name: "odd", Type: quant.Q4_0, Shape: tensor.Shape{2, 33}}
	if _, err := Resolve(s, graph.Tensor("odd", []int{2, 33})); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Errorf("a row that is no whole number of blocks: %v", err)
	}
	s["iq"] = tensor.View{Name: "iq", Type: quant.IQ1_S, Shape: tensor.Shape{1, 256}, Data: make([]byte, 50)}
	r, err := Resolve(s, graph.Tensor("iq", []int{1, 256}))
	if err == nil {
		_, err = r.All()
	}
	if err == nil {
		t.Error("a type without a decoder was decoded")
	}
	if _, err := Resolve(s, &graph.Weight{Op: "nonsense", Shape: []int{1}}); err == nil {
		t.Error("an unknown operation was evaluated")
	}
	if _, err := Resolve(s, &graph.Weight{Op: graph.WMap, F: "nonsense", Args: []*graph.Weight{graph.Tensor("a", []int{4, 8})}, Shape: []int{4, 8}}); err == nil {
		t.Error("an unknown function was applied")
	}
}

// TestMXFP4 joins blocks and scales that are stored apart. The values are
// those of the format: E2M1 codes, low nibble first, times 2^(scale−127)
// (OCP Microscaling Formats v1.0; transformers, integrations/mxfp4.py).
func TestMXFP4(t *testing.T) {
	levels := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6}
	s := shelf{}
	blocks, scales := make([]byte, 3*2*16), make([]byte, 3*2)
	for i := range blocks {
		blocks[i] = byte(i*37 + 11)
	}
	for i := range scales {
		scales[i] = byte(124 + i)
	}
	s["b"] = tensor.View{Name: "b", Type: quant.U8, Shape: tensor.Shape{3, 2, 16}, Data: blocks}
	s["s"] = tensor.View{Name: "s", Type: quant.U8, Shape: tensor.Shape{3, 2}, Data: scales}
	w := must(t)(graph.MXFP4Weight(graph.Tensor("b", []int{3, 2, 16}), graph.Tensor("s", []int{3, 2})))
	r, err := Resolve(s, w)
	if err != nil {
		t.Fatal(err)
	}
	all, err := r.All()
	if err != nil {
		t.Fatal(err)
	}
	if r.Type != quant.MXFP4 || len(all) != 3*64 {
		t.Fatalf("resolved to %s %s", r.Type, r.Shape)
	}
	for i, got := range all {
		code := blocks[i/2] >> (4 * (i % 2)) & 15
		want := levels[code] * float32(math.Ldexp(1, int(scales[i/32])-127))
		if got != want {
			t.Fatalf("value %d is %g, want %g", i, got, want)
		}
	}
}
