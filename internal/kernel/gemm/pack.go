package gemm

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/inferflow/inferflow/quant"
)

// Pack repacks the n rows of a matrix of type t into dst, which must be aligned
// to 64 bytes, PackedBytes(t, n, k) long, and becomes the matrix's memory.
// row(i) returns source row i in the file's layout; it is called once for each
// row in ascending order, and its result is not kept. Rows that fill up the
// last panel are zero. It fails with ErrUnsupported or ErrShape.
func Pack(dst []byte, t quant.Type, n, k int, row func(i int) []byte) (*Matrix, error) {
	w, err := describe(t, n, k)
	if err != nil {
		return nil, err
	}
	if want := w.Panels() * w.panel; len(dst) != want {
		return nil, fmt.Errorf("gemm: pack %s: [%d, %d] takes %d bytes, the buffer has %d: %w", t, n, k, want, len(dst), ErrShape)
	}
	if uintptr(unsafe.Pointer(&dst[0]))%align != 0 {
		return nil, fmt.Errorf("gemm: pack %s: the buffer is not aligned to %d bytes: %w", t, align, ErrShape)
	}
	w.data = dst
	rowBytes, _ := t.RowBytes(k)
	for p := range w.Panels() {
		clear(dst[p*w.panel : (p+1)*w.panel])
		for r := range min(panelRows, n-p*panelRows) {
			src := row(p*panelRows + r)
			if len(src) != rowBytes {
				return nil, fmt.Errorf("gemm: pack %s: row %d has %d bytes, not %d: %w", t, p*panelRows+r, len(src), rowBytes, ErrShape)
			}
			w.packRow(p, r, src)
		}
	}
	return w, nil
}

// View makes a matrix of bytes that Pack produced earlier for the same type
// and sizes, such as a mapped file. It fails as Pack does.
func View(data []byte, t quant.Type, n, k int) (*Matrix, error) {
	w, err := describe(t, n, k)
	if err != nil {
		return nil, err
	}
	if want := w.Panels() * w.panel; len(data) != want || uintptr(unsafe.Pointer(&data[0]))%align != 0 {
		return nil, fmt.Errorf("gemm: view %s: [%d, %d] takes %d bytes aligned to %d, not %d: %w", t, n, k, want, align, len(data), ErrShape)
	}
	w.data = data
	return w, nil
}

// packRow writes row r of panel p.
func (w *Matrix) packRow(p, r int, src []byte) {
	if w.form.class == classFloat {
		packFloat(w.data[p*w.panel:(p+1)*w.panel], w.typ, r, src)
		return
	}
	layout, _ := w.typ.Layout()
	pl := w.planes(p)
	var b block
	for s := range w.k / layout.Block {
		b.read(w.typ, src[s*layout.Bytes:(s+1)*layout.Bytes])
		for j := range layout.Block / granule {
			at := s*layout.Block/granule + j
			codes := (*[8]uint32)(b.codes[j*8:])
			putBits(pl[0], at, r, w.form.bits[0], codes)
			if w.form.bits[1] > 0 {
				for i := range codes {
					codes[i] >>= w.form.bits[0]
				}
				putBits(pl[1], at, r, w.form.bits[1], codes)
			}
			w.putScale(pl[2][at*scaleBytes[w.form.scale]:], r, &b, j)
		}
		if w.form.super > 0 {
			putSuper(pl[3][s*w.form.super:(s+1)*w.form.super], r, &b)
		}
	}
}

// putBits writes the low bits of the 32 codes of row r and block `at` to a code
// plane, four codes a word.
func putBits(plane []byte, at, r, bits int, codes *[8]uint32) {
	dst := plane[at*bits*unit+4*r:]
	put := func(u int, v uint32) { binary.LittleEndian.PutUint32(dst[u*unit:], v) }
	c := codes
	switch bits {
	case 8:
		for g, v := range c {
			put(g, v)
		}
	case 4:
		for u := range 4 {
			put(u, c[u]&fours|c[u+4]&fours<<4)
		}
	case 2:
		for u := range 2 {
			put(u, c[4*u]&twos|c[4*u+1]&twos<<2|c[4*u+2]&twos<<4|c[4*u+3]&twos<<6)
		}
	case 1:
		var v uint32
		for g := range c {
			v |= c[g] & ones << g
		}
		put(0, v)
	}
}

// place is the unit and the shift of group g of a block in a plane of so many bits.
func place(bits, g int) (u, shift int) {
	switch bits {
	case 8:
		return g, 0
	case 4:
		return g % 4, g / 4 * 4
	case 2:
		return g / 4, g % 4 * 2
	}
	return 0, g
}

// putScale writes what block j of a source block says about row r; dst starts
// at the block's place in the scale plane.
func (w *Matrix) putScale(dst []byte, r int, b *block, j int) {
	switch w.form.scale {
	case scaleF16:
		binary.LittleEndian.PutUint16(dst[2*r:], b.d)
	case scaleMin:
		binary.LittleEndian.PutUint16(dst[2*r:], b.d)
		binary.LittleEndian.PutUint16(dst[32+2*r:], b.dmin)
	case scaleE8M0, scaleI8:
		dst[r] = byte(b.scale[j])
	case scaleU8Min:
		dst[r], dst[16+r] = byte(b.scale[j]), b.min[j]
	case scaleHalves, scaleNibble:
		for h := range 2 {
			dst[16*h+halfPlace(r)] = byte(b.scale[2*j+h]) | b.min[2*j+h]<<4
		}
	}
}

// halfPlace is the place of row r in halfOrder, which is its own inverse.
func halfPlace(r int) int { return halfOrder[r] }

func putSuper(dst []byte, r int, b *block) {
	binary.LittleEndian.PutUint16(dst[2*r:], b.d)
	if len(dst) == 64 {
		binary.LittleEndian.PutUint16(dst[32+2*r:], b.dmin)
	}
}

// packFloat writes row r of a float panel: F32 and F16 lie [k][16], BF16 lies
// [k/2][16][2], so that a shift and a mask widen it.
func packFloat(dst []byte, t quant.Type, r int, src []byte) {
	switch t {
	case quant.F32:
		for k := range len(src) / 4 {
			copy(dst[k*64+r*4:], src[4*k:4*k+4])
		}
	case quant.F16:
		for k := range len(src) / 2 {
			copy(dst[k*32+r*2:], src[2*k:2*k+2])
		}
	case quant.BF16:
		for k := range len(src) / 2 {
			copy(dst[k/2*64+r*4+k%2*2:], src[2*k:2*k+2])
		}
	}
}
