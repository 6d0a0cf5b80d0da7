package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

// fma32 is a·b + c rounded once: the sum in float64 is rounded to odd, so that
// rounding it to float32 cannot err.
func fma32(a, b, c float32) float32 {
	p, d := float64(a)*float64(b), float64(c)
	s := p + d
	t := s - p
	if e := (p - (s - t)) + (d - t); e != 0 && e == e && !math.IsInf(s, 0) && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// model computes element (m, n) as the package's comment says, fused: what all
// assembly tiers must give in bits.
func (w testMatrix) model(a *Acts, m, n int, s *Scratch) (acc float32) {
	row := a.buf[m*a.stride : (m+1)*a.stride]
	p, r := n/panelRows, n%panelRows
	if w.form.class == classFloat {
		x := float32s(row)
		for k := 0; k < w.k; k += segment {
			var sum float32
			values := make([]float32, min(segment, w.k-k))
			w.decodeFloats(values, p, r, k)
			for i, v := range values {
				sum = fma32(x[k+i], v, sum)
			}
			acc += sum
		}
		return acc
	}
	pl := w.planes(p)
	for b := range w.blocks {
		w.unpackGo(s, &pl, b, b+1)
		acc = w.modelBlock(acc, &s.slice[0], row, b, r)
	}
	return acc
}

func (w testMatrix) modelBlock(acc float32, u *wideBlock, row []byte, b, r int) float32 {
	x, sx, xs, halves := record(row, b)
	var h [2]int32
	for k, v := range x {
		h[k/16] += (int32(u.codes[k/4*unit+4*r+k%4]) - int32(w.form.offset)) * int32(v)
	}
	switch w.form.class {
	case classMin:
		acc = fma32(u.scale[r]*sx, float32(h[0]+h[1]), acc)
		return fma32(u.min[r], xs, acc)
	case classOffset:
		return fma32(u.scale[r]*sx, float32(h[0]+h[1]), acc)
	}
	sum, low := int32(0), int32(0)
	for i := range h {
		sum += h[i] * int32(u.sub[i][r][0])
		low += halves[i] * int32(u.submin[r][i])
	}
	if w.form.class == classSubMin {
		acc = fma32(-(u.min[r] * sx), float32(low), acc)
	}
	return fma32(u.scale[r]*sx, float32(sum), acc)
}

// checkModel compares all assembly tiers with the model; NaNs are all one.
func checkModel(t *testing.T, w testMatrix, a *Acts) {
	t.Helper()
	s := NewScratch(w.k)
	want := make([]float32, a.rows*w.n)
	for i := range want {
		want[i] = w.model(a, i/w.n, i%w.n, s)
	}
	for _, tier := range tiers() {
		if setOf(tier, w.typ) == nil {
			continue // plain Go does not fuse
		}
		for i, v := range mulAll(w.on(tier), a, 0, a.rows, 0, w.Panels()) {
			if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
				t.Fatalf("%s %s [%d, %d] × %d: element %d is %x, want %x", w.typ, tier, w.n, w.k, a.rows, i, math.Float32bits(v), math.Float32bits(want[i]))
			}
		}
	}
}

func TestAssemblyEqualsModel(t *testing.T) {
	for _, typ := range allTypes {
		rng := rand.New(rand.NewPCG(11, uint64(typ)))
		for _, k := range sizesOf(typ) {
			for _, rows := range []int{1, 2, 4, 18} {
				w := newMatrix(t, rng, typ, 17, k)
				checkModel(t, w, prepared(typ, randomActs(rng, rows, k), rows, k))
			}
		}
	}
}

// The largest integer sums: full codes and scales against activations of ±127.
func TestExtremesDoNotOverflow(t *testing.T) {
	for _, typ := range allTypes {
		if KindOf(typ) == Float {
			continue
		}
		layout, _ := typ.Layout()
		for _, fill := range []byte{0x00, 0xff, 0x80, 0x7f, 0x88, 0x77, 0x0f, 0xf0} {
			row := make([]byte, 2*layout.Bytes)
			for i := range row {
				row[i] = fill
			}
			for b := 0; b < len(row); b += layout.Bytes {
				for _, at := range halfAt[typ] {
					binary.LittleEndian.PutUint16(row[b+at:], quant.ToF16(1))
				}
				if typ == quant.MXFP4 {
					row[b] = 128
				}
			}
			k := 2 * layout.Block
			size, _ := PackedBytes(typ, 16, k)
			m, err := Pack(alignedBytes(size), typ, 16, k, func(int) []byte { return row })
			if err != nil {
				t.Fatal(err)
			}
			w := testMatrix{Matrix: m}
			for sign := range 4 {
				x := make([]float32, 13*k)
				for i := range x {
					x[i] = []float32{1, -1, float32(1 - i%2*2), float32(1 - i/16%2*2)}[sign]
				}
				checkModel(t, w, prepared(typ, x, 13, k))
			}
		}
	}
}

// FuzzMul packs arbitrary bytes as any type and holds assembly against the model.
func FuzzMul(f *testing.F) {
	for i := range allTypes {
		f.Add(uint8(i), uint8(i+1), uint8(i%5+1), uint8(i%11+1), []byte(fmt.Sprint("some bytes ", i, "\xff\x80\x7f\x00")))
	}
	f.Add(uint8(3), uint8(16), uint8(3), uint8(8), []byte{0xff, 0x7f, 0, 0x80, 0x3c})
	f.Fuzz(func(t *testing.T, which, n, blocks, rows uint8, data []byte) {
		typ := allTypes[int(which)%len(allTypes)]
		if n == 0 || n > 40 || blocks == 0 || blocks > 40 || rows == 0 || rows > 20 || len(data) == 0 {
			return
		}
		layout, _ := typ.Layout()
		k := int(blocks) * layout.Block
		src := make([][]byte, n)
		for i := range src {
			src[i] = make([]byte, int(blocks)*layout.Bytes)
			for j := range src[i] {
				src[i][j] = data[(i*7+j)%len(data)]
			}
		}
		size, err := PackedBytes(typ, int(n), k)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Pack(alignedBytes(size), typ, int(n), k, func(i int) []byte { return src[i] })
		if err != nil {
			t.Fatal(err)
		}
		w := testMatrix{m, src}
		got, want := make([]float32, k), make([]float32, k)
		w.DecodeRow(got, int(n)-1)
		if err := typ.Decode(want, src[n-1]); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
				t.Fatalf("%s: value %d decodes to %g, want %g", typ, i, v, want[i])
			}
		}
		x := make([]float32, int(rows)*k)
		for i := range x {
			x[i] = float32(int8(data[i%len(data)])) + float32(i%13)
		}
		checkModel(t, w, prepared(typ, x, int(rows), k))
	})
}

// FuzzPrepare holds the assembly of Prepare against its definition.
func FuzzPrepare(f *testing.F) {
	f.Add(make([]byte, 128))
	f.Add([]byte("\x00\x00\x80\x7f\x00\x00\xc0\xff\x01\x00\x00\x00\xff\xff\x7f\x7f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := make([]float32, granule)
		for i := range x {
			if len(data) >= 4*i+4 {
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
			}
		}
		got, want := make([]byte, recordBytes), make([]byte, recordBytes)
		prepareInt8(got, x)
		prepareInt8Go(want, x)
		clearNaN(got)
		clearNaN(want)
		if string(got) != string(want) {
			t.Fatalf("%v:\ngot  %v\nwant %v", x, got, want)
		}
	})
}
