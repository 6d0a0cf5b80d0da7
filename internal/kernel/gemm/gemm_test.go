package gemm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
)

var allTypes = []quant.Type{
	quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0,
	quant.Q2_K, quant.Q3_K, quant.Q4_K, quant.Q5_K, quant.Q6_K, quant.IQ4_NL, quant.IQ4_XS, quant.MXFP4,
}

// halfAt lists where a type's block keeps float16 values.
var halfAt = map[quant.Type][]int{
	quant.Q4_0: {0}, quant.Q4_1: {0, 2}, quant.Q5_0: {0}, quant.Q5_1: {0, 2}, quant.Q8_0: {0},
	quant.Q2_K: {80, 82}, quant.Q3_K: {108}, quant.Q4_K: {0, 2}, quant.Q5_K: {0, 2}, quant.Q6_K: {208},
	quant.IQ4_NL: {0}, quant.IQ4_XS: {0},
}

// randomRow makes a source row with every bit pattern but wild scales.
func randomRow(rng *rand.Rand, t quant.Type, k int) []byte {
	n, _ := t.RowBytes(k)
	row := make([]byte, n)
	for i := range row {
		row[i] = byte(rng.Uint32())
	}
	layout, _ := t.Layout()
	for b := 0; b < n; b += layout.Bytes {
		for _, at := range halfAt[t] {
			binary.LittleEndian.PutUint16(row[b+at:], quant.ToF16(float32(rng.NormFloat64()*0.02)))
		}
		v := float32(rng.NormFloat64())
		switch t {
		case quant.MXFP4:
			row[b] = byte(116 + rng.IntN(10))
		case quant.F32:
			binary.LittleEndian.PutUint32(row[b:], math.Float32bits(v))
		case quant.F16:
			binary.LittleEndian.PutUint16(row[b:], quant.ToF16(v))
		case quant.BF16:
			binary.LittleEndian.PutUint16(row[b:], quant.ToBF16(v))
		}
	}
	return row
}

// testMatrix is a packed matrix with its source rows.
type testMatrix struct {
	*Matrix
	rows [][]byte
}

func newMatrix(tb testing.TB, rng *rand.Rand, t quant.Type, n, k int) testMatrix {
	tb.Helper()
	rows := make([][]byte, n)
	for i := range rows {
		rows[i] = randomRow(rng, t, k)
	}
	size, err := PackedBytes(t, n, k)
	if err != nil {
		tb.Fatal(err)
	}
	w, err := Pack(alignedBytes(size), t, n, k, func(i int) []byte { return rows[i] })
	if err != nil {
		tb.Fatal(err)
	}
	return testMatrix{w, rows}
}

func randomActs(rng *rand.Rand, rows, k int) []float32 {
	x := make([]float32, rows*k)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
		if rng.IntN(16) == 0 {
			x[i] *= 20
		}
	}
	return x
}

func prepared(t quant.Type, x []float32, rows, k int) *Acts {
	a := NewActs(rows, k)
	a.Prepare(KindOf(t), x, k, rows, k, 0, rows)
	return a
}

// tiers lists the tiers that this processor runs.
func tiers() []sys.Tier {
	var list []sys.Tier
	for t := sys.Generic; t <= sys.CPUTier(); t++ {
		list = append(list, t)
	}
	return list
}

// on gives the matrix with the kernels of a tier.
func (w testMatrix) on(tier sys.Tier) *Matrix {
	m := *w.Matrix
	m.kernels = setOf(tier, m.typ)
	return &m
}

// oracle computes the product in float64 from the reference decoding and the
// prepared activations; size is Σ|x·w| of each element.
func (w testMatrix) oracle(a *Acts) (sum, size []float64) {
	sum, size = make([]float64, a.rows*w.n), make([]float64, a.rows*w.n)
	wf := make([]float32, w.k)
	for n, src := range w.rows {
		if err := w.typ.Decode(wf, src); err != nil {
			panic(err)
		}
		for m := range a.rows {
			for k, v := range wf {
				p := float64(v) * a.value(m, k)
				sum[m*w.n+n] += p
				size[m*w.n+n] += math.Abs(p)
			}
		}
	}
	return sum, size
}

// value is prepared activation k of row m.
func (a *Acts) value(m, k int) float64 {
	row := a.buf[m*a.stride:]
	if a.kind == Float {
		return float64(float32s(row)[k])
	}
	codes, scale, _, _ := record(row, k/granule)
	return float64(scale) * float64(codes[k%granule])
}

func mulAll(w *Matrix, a *Acts, m0, m1, p0, p1 int) []float32 {
	dst := make([]float32, a.rows*w.n)
	for i := range dst {
		dst[i] = float32(math.NaN())
	}
	w.Mul(dst, w.n, a, m0, m1, p0, p1, NewScratch(w.k))
	return dst
}

// sizesOf gives odd and even K for a type.
func sizesOf(t quant.Type) []int {
	layout, _ := t.Layout()
	if layout.Block == 1 {
		return []int{1, 2, 63, 64, 257, 331, 576}
	}
	return []int{layout.Block, 3 * layout.Block, 1536 + layout.Block}
}

func TestMulAgainstFloat64(t *testing.T) {
	for _, typ := range allTypes {
		t.Run(typ.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(typ)))
			for _, k := range sizesOf(typ) {
				w := newMatrix(t, rng, typ, 37, k)
				for _, rows := range []int{1, 2, 3, 4, 5, 7, 8, 16, 33} {
					a := prepared(typ, randomActs(rng, rows, k), rows, k)
					want, size := w.oracle(a)
					for _, tier := range tiers() {
						got := mulAll(w.on(tier), a, 0, rows, 0, w.Panels())
						compare(t, fmt.Sprintf("%s k=%d m=%d", tier, k, rows), got, want, size)
					}
				}
			}
		})
	}
}

func compare(t *testing.T, what string, got []float32, want, size []float64) {
	t.Helper()
	for i, v := range got {
		if !(math.Abs(float64(v)-want[i]) <= 2e-5*size[i]+1e-6) {
			t.Fatalf("%s: element %d is %g, want %g (size %g)", what, i, v, want[i], size[i])
		}
	}
}

// A row's bits must not depend on the other rows, their number, or the ranges.
func TestMulBitsDoNotDependOnCompany(t *testing.T) {
	const n, rows = 53, 29
	for _, typ := range allTypes {
		for _, tier := range tiers() {
			t.Run(fmt.Sprint(typ, "/", tier), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(2, uint64(typ)))
				layout, _ := typ.Layout()
				k := 3 * max(layout.Block, 192)
				w := newMatrix(t, rng, typ, n, k).on(tier)
				x := randomActs(rng, rows, k)
				a := prepared(typ, x, rows, k)
				all := mulAll(w, a, 0, rows, 0, w.Panels())
				for m := range rows {
					alone := mulAll(w, prepared(typ, x[m*k:(m+1)*k], 1, k), 0, 1, 0, w.Panels())
					sameBits(t, fmt.Sprint("row ", m, " alone"), alone, all[m*n:(m+1)*n])
				}
				for range 40 {
					m0, p0 := rng.IntN(rows), rng.IntN(w.Panels())
					m1, p1 := m0+1+rng.IntN(rows-m0), p0+1+rng.IntN(w.Panels()-p0)
					part := mulAll(w, a, m0, m1, p0, p1)
					checkPart(t, part, all, n, m0, m1, p0*panelRows, p1*panelRows)
				}
			})
		}
	}
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: column %d is %x, want %x", what, i, math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}

// checkPart requires the bits of all inside the rectangle and untouched NaNs outside.
func checkPart(t *testing.T, part, all []float32, n, m0, m1, n0, n1 int) {
	t.Helper()
	for i, v := range part {
		inside := i/n >= m0 && i/n < m1 && i%n >= n0 && i%n < n1
		if inside && math.Float32bits(v) != math.Float32bits(all[i]) {
			t.Fatalf("rows %d:%d columns %d:%d: element (%d, %d) is %g, want %g", m0, m1, n0, n1, i/n, i%n, v, all[i])
		}
		if !inside && v == v {
			t.Fatalf("rows %d:%d columns %d:%d: element (%d, %d) was written", m0, m1, n0, n1, i/n, i%n)
		}
	}
}

// All assembly tiers give the same bits: they fuse the same products.
func TestTiersAgree(t *testing.T) {
	if sys.CPUTier() < sys.AVX512 {
		t.Skip("needs two assembly tiers")
	}
	for _, typ := range allTypes {
		rng := rand.New(rand.NewPCG(3, uint64(typ)))
		w := newMatrix(t, rng, typ, 40, 768)
		a := prepared(typ, randomActs(rng, 19, 768), 19, 768)
		want := mulAll(w.on(sys.AVX2), a, 0, 19, 0, w.Panels())
		sameBits(t, typ.String(), mulAll(w.on(sys.AVX512), a, 0, 19, 0, w.Panels()), want)
	}
}

func TestDecodeRowEqualsReference(t *testing.T) {
	for _, typ := range allTypes {
		rng := rand.New(rand.NewPCG(4, uint64(typ)))
		for _, k := range sizesOf(typ) {
			w := newMatrix(t, rng, typ, 21, k)
			got, want := make([]float32, k), make([]float32, k)
			for n, src := range w.rows {
				if err := typ.Decode(want, src); err != nil {
					t.Fatal(err)
				}
				w.DecodeRow(got, n)
				sameBits(t, fmt.Sprint(typ, " row ", n), got, want)
			}
		}
	}
}

func TestPackRefuses(t *testing.T) {
	for _, c := range []struct {
		t    quant.Type
		n, k int
		want error
	}{
		{quant.IQ1_S, 16, 256, ErrUnsupported}, {quant.I8, 1, 1, ErrUnsupported}, {quant.Type(999), 1, 1, ErrUnsupported},
		{quant.Q4_0, 0, 32, ErrShape}, {quant.Q4_0, 1, 33, ErrShape}, {quant.Q4_K, 1, 128, ErrShape}, {quant.F32, 1, -4, ErrShape},
		{quant.F32, math.MaxInt, 1, ErrShape}, {quant.F32, 1, math.MaxInt, ErrShape}, {quant.F16, 1 << 40, 1 << 40, ErrShape},
	} {
		if _, err := PackedBytes(c.t, c.n, c.k); !errors.Is(err, c.want) {
			t.Errorf("PackedBytes(%s, %d, %d) = %v, want %v", c.t, c.n, c.k, err, c.want)
		}
	}
	size, _ := PackedBytes(quant.Q4_0, 3, 64)
	short := func(i int) []byte { return make([]byte, 36-i) }
	if _, err := Pack(alignedBytes(size), quant.Q4_0, 3, 64, short); !errors.Is(err, ErrShape) {
		t.Errorf("short row: %v", err)
	}
	if _, err := Pack(alignedBytes(size + 64)[1:size+1], quant.Q4_0, 3, 64, short); !errors.Is(err, ErrShape) {
		t.Errorf("misaligned buffer: %v", err)
	}
	if _, err := Pack(nil, quant.Q4_0, 3, 64, short); !errors.Is(err, ErrShape) {
		t.Errorf("no buffer: %v", err)
	}
}

// Packed sizes stay near the files': decoding is bound by bytes.
func TestBitsPerWeight(t *testing.T) {
	for typ, want := range map[quant.Type]float64{
		quant.Q4_0: 4.5, quant.Q4_1: 5, quant.Q5_0: 5.5, quant.Q5_1: 6, quant.Q8_0: 8.5, quant.IQ4_NL: 4.5, quant.MXFP4: 4.25,
		quant.Q2_K: 2.625, quant.Q3_K: 3.5625, quant.Q4_K: 4.625, quant.Q5_K: 5.625, quant.Q6_K: 6.5625, quant.IQ4_XS: 4.25 + 1.0/16,
		quant.F32: 32, quant.F16: 16, quant.BF16: 16,
	} {
		size, err := PackedBytes(typ, 4096, 4096)
		if got := float64(size) * 8 / (4096 * 4096); err != nil || got != want {
			t.Errorf("%s takes %g bits a weight, want %g (%v)", typ, got, want, err)
		}
	}
}

func TestViewOfPackedBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	w := newMatrix(t, rng, quant.Q5_K, 19, 512)
	v, err := View(w.data, quant.Q5_K, 19, 512)
	if err != nil {
		t.Fatal(err)
	}
	a := prepared(w.typ, randomActs(rng, 2, 512), 2, 512)
	sameBits(t, "view", mulAll(v, a, 0, 2, 0, 2), mulAll(w.Matrix, a, 0, 2, 0, 2))
	if _, err := View(w.data, quant.Q5_K, 33, 512); !errors.Is(err, ErrShape) {
		t.Errorf("wrong size: %v", err)
	}
}

func TestMulAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, typ := range allTypes {
		w := newMatrix(t, rng, typ, 40, 512)
		x := randomActs(rng, 9, 512)
		a, s, dst := NewActs(9, 512), NewScratch(512), make([]float32, 9*40)
		if n := testing.AllocsPerRun(3, func() {
			a.Prepare(KindOf(typ), x, 512, 9, 512, 0, 9)
			w.Mul(dst, 40, a, 0, 9, 0, w.Panels(), s)
			w.Mul(dst, 40, a, 0, 1, 0, w.Panels(), s)
		}); n != 0 {
			t.Errorf("%s: %g allocations", typ, n)
		}
	}
}
