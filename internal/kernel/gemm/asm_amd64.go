//go:build amd64 && !noasm

package gemm

import (
	"unsafe"

	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
)

// args is what a kernel reads. The generator knows the offsets.
type args struct {
	plane     [4]unsafe.Pointer // 0: planes of a panel at the first block, or the panel's float values
	acts      unsafe.Pointer    // 32: first row, at the first block or value
	actStride int               // 40: bytes from row to row
	dst       unsafe.Pointer    // 48: first result; 16 columns are written
	dstStride int               // 56: bytes from row to row
	n         int               // 64: blocks of 32 values, or values of float types
	tiles     int               // 72: row tiles, for wide kernels
	slice     unsafe.Pointer    // 80: Scratch.slice or Scratch.floats
	work      unsafe.Pointer    // 88: Scratch.work
}

// kernel is a function of args in assembly.
type kernel func(*byte)

func (k kernel) call(a *args) { k((*byte)(unsafe.Pointer(a))) }

// kernelSet holds the assembly of one tier for one type.
type kernelSet struct {
	one, two, four kernel // so many rows × a packed panel, from zero
	unpack         kernel // packed blocks to Scratch; nil for F32, which is wide as it lies
	wide           kernel // tiles of rows × what is unpacked, added to dst
	tile           int    // rows of a tile of wide
	wideFrom       int    // least rows that unpacking pays for
}

// setOf gives the kernels of a type on a tier; nil stands for plain Go.
func setOf(tier sys.Tier, t quant.Type) *kernelSet {
	switch tier {
	case sys.AVX2:
		return avx2Sets[t]
	}
	return nil
}

// panel computes rows [from, to) for panel p; see Matrix.mulPanel.
func (ks *kernelSet) panel(w *Matrix, dst []float32, stride int, a *Acts, from, to, p int, s *Scratch) {
	g := &s.args
	g.actStride, g.slice, g.work = a.stride, unsafe.Pointer(s.slice), unsafe.Pointer(&s.work[0])
	if to-from >= ks.wideFrom {
		ks.wideRows(w, dst, stride, a, from, to, p, s)
		return
	}
	ks.pointTo(g, w, p, 0)
	g.n = w.blocks
	if w.form.class == classFloat {
		g.n = w.k
	}
	for m := from; m < to; {
		g.acts = unsafe.Pointer(&a.buf[m*a.stride])
		g.dst, g.dstStride = unsafe.Pointer(&dst[(m-from)*stride]), stride*4
		switch left := to - m; {
		case left >= 4:
			ks.four.call(g)
			m += 4
		case left == 3: // the fourth row is computed for nothing
			g.dst, g.dstStride = unsafe.Pointer(&s.spare[0]), panelRows*4
			ks.four.call(g)
			copySpare(dst[(m-from)*stride:], stride, s, 3)
			m += 3
		case left == 2:
			ks.two.call(g)
			m += 2
		default:
			ks.one.call(g)
			m++
		}
	}
}

// pointTo sets the planes to block b of panel p.
func (ks *kernelSet) pointTo(g *args, w *Matrix, p, b int) {
	base := unsafe.Pointer(&w.data[p*w.panel])
	g.plane[0] = unsafe.Add(base, b*w.form.bits[0]*unit)
	g.plane[1] = unsafe.Add(base, w.plane[1]+b*w.form.bits[1]*unit)
	g.plane[2] = unsafe.Add(base, w.plane[2]+b*scaleBytes[w.form.scale])
	g.plane[3] = unsafe.Add(base, w.plane[3]+b/8*w.form.super)
}

// copySpare moves rows that were computed in Scratch to their place.
func copySpare(dst []float32, stride int, s *Scratch, rows int) {
	for i := range rows {
		copy(dst[i*stride:][:panelRows], s.spare[i*panelRows:])
	}
}

// wideRows unpacks a part of the panel at a time and passes all rows by it. The
// rows of the incomplete tile are summed up in Scratch.
func (ks *kernelSet) wideRows(w *Matrix, dst []float32, stride int, a *Acts, from, to, p int, s *Scratch) {
	full := (to - from) / ks.tile * ks.tile
	for m := range full {
		clear(dst[m*stride:][:panelRows])
	}
	clear(s.spare)
	if w.form.class == classFloat {
		for k := 0; k < w.k; k += segment {
			ks.widen(w, p, k, s)
			ks.tiles(dst, stride, a, from, to, 4*k, s)
		}
	} else {
		for b := 0; b < w.blocks; b += sliceBlocks {
			ks.pointTo(&s.args, w, p, b)
			s.args.n = min(sliceBlocks, w.blocks-b)
			ks.unpack.call(&s.args)
			ks.tiles(dst, stride, a, from, to, recordBytes*b, s)
		}
	}
	if from+full < to {
		copySpare(dst[full*stride:], stride, s, to-from-full)
	}
}

// widen makes args.slice point to a segment of panel p as float32.
func (ks *kernelSet) widen(w *Matrix, p, k int, s *Scratch) {
	g := &s.args
	g.n = min(segment, w.k-k)
	g.plane[0] = unsafe.Pointer(&w.data[p*w.panel+k*panelRows*w.form.float])
	g.slice = g.plane[0]
	if ks.unpack != nil {
		g.slice = unsafe.Pointer(&s.floats[0])
		ks.unpack.call(g)
	}
}

// callRows bounds the rows of one call, so that it stays far below 50 µs.
const callRows = 96

// tiles passes rows [from, to), at the given byte of each, by what is unpacked.
func (ks *kernelSet) tiles(dst []float32, stride int, a *Acts, from, to, at int, s *Scratch) {
	g := &s.args
	g.dstStride = stride * 4
	m := from
	for to-m >= ks.tile {
		n := min(callRows, to-m) / ks.tile
		g.tiles = n
		g.acts = unsafe.Pointer(&a.buf[m*a.stride+at])
		g.dst = unsafe.Pointer(&dst[(m-from)*stride])
		ks.wide.call(g)
		m += n * ks.tile
	}
	if m < to {
		g.tiles, g.dstStride = 1, panelRows*4
		g.acts = unsafe.Pointer(&a.buf[m*a.stride+at])
		g.dst = unsafe.Pointer(&s.spare[0])
		ks.wide.call(g)
	}
}
