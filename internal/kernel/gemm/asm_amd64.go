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
	tiles     int               // 72: row tiles of a wide kernel, panels of another
	slice     unsafe.Pointer    // 80: Scratch.slice or Scratch.floats
	work      unsafe.Pointer    // 88: Scratch.work
	panel     int               // 96: bytes from panel to panel
	ahead     int               // 104: the same if another call follows on, or 0
	out       unsafe.Pointer    // 112: first finished result
	outStride int               // 120: bytes from row to row
	res       unsafe.Pointer    // 128: first residual
	resStride int               // 136: bytes from row to row
	bias      unsafe.Pointer    // 144: of 16 columns
	next      unsafe.Pointer    // 152: the float panel that comes next, fetched meanwhile
	second    int               // 160: bytes of slice from a panel to the second one
}

// kernel is a function of args in assembly.
type kernel func(*byte)

func (k kernel) call(a *args) { k((*byte)(unsafe.Pointer(a))) }

// kernelSet holds the assembly of one tier for one type.
type kernelSet struct {
	one, two, four kernel // so many rows × packed panels, from zero
	unpack         kernel // packed blocks to Scratch; nil for F32, which is wide as it lies
	wideKernels           // may be nil
	pair           wideKernels
	tile           int // rows of a tile of wide
	wideFrom       int // least rows that unpacking pays for
}

// wideKernels multiply tiles of rows with what is unpacked of a panel, or of two.
type wideKernels struct {
	wide         kernel // adds to dst
	set          kernel // float types: sets dst
	finish, only kernel // and that finishes a row in its last segment, and in its only one
}

// setOf gives the kernels of a type on a tier; nil stands for plain Go.
func setOf(tier sys.Tier, t quant.Type) *kernelSet {
	switch tier {
	case sys.AVX2:
		return avx2Sets[t]
	case sys.AVX512:
		return avx512Sets[t]
	}
	return nil
}

// panels computes rows [from, to) for panels [p, end), whose columns all exist.
// What does not fill a wide tile goes straight from the packed panels: the bits
// are the same.
func (ks *kernelSet) panels(w *Matrix, dst []float32, stride int, a *Acts, from, to, p, end int, s *Scratch) {
	g := &s.args
	g.actStride, g.dstStride, g.panel, g.work = a.stride, stride*4, w.panel, unsafe.Pointer(&s.work[0])
	wide := 0
	if ks.wide != nil && to-from >= ks.wideFrom {
		wide = (to - from) / ks.tile * ks.tile
		ks.widePanels(w, dst, stride, a, from, from+wide, p, end, s)
	}
	if from += wide; from == to {
		return
	}
	dst = dst[wide*stride:]
	step := max(1, callBytes/w.panel)
	for ; p < end; p += step {
		n := min(step, end-p)
		if g.ahead = 0; p+n < end {
			g.ahead = w.panel
		}
		ks.fewRows(w, dst, stride, a, from, to, p, n, s)
		if p+n < end {
			dst = dst[n*panelRows:]
		}
	}
}

// callBytes bounds the packed weights that one call reads, so that it stays far
// below 50 µs, and that rows beyond the first four find them in the cache.
const callBytes = 96 << 10

// fewRows multiplies up to 4 rows at a time with n packed panels from p on.
func (ks *kernelSet) fewRows(w *Matrix, dst []float32, stride int, a *Acts, from, to, p, n int, s *Scratch) {
	g := &s.args
	ks.pointTo(g, w, p, 0)
	g.n, g.tiles = w.blocks, n
	if w.form.class == classFloat {
		g.n = w.k
	}
	for m := from; m < to; {
		g.acts = unsafe.Pointer(&a.buf[m*a.stride])
		g.dst = unsafe.Pointer(&dst[(m-from)*stride])
		switch left := to - m; {
		case left >= 4:
			ks.four.call(g)
			m += 4
		case left == 3:
			ks.threeRows(w, dst[(m-from)*stride:], stride, p, n, s)
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

// threeRows computes a fourth row for nothing, by way of Scratch.
func (ks *kernelSet) threeRows(w *Matrix, dst []float32, stride, p, n int, s *Scratch) {
	g := &s.args
	g.dst, g.dstStride, g.tiles = unsafe.Pointer(&s.spare[0]), panelRows*4, 1
	for i := range n {
		ks.pointTo(g, w, p+i, 0)
		ks.four.call(g)
		for m := range 3 {
			copy(dst[m*stride+i*panelRows:][:panelRows], s.spare[m*panelRows:])
		}
	}
	g.dstStride, g.tiles = stride*4, n
}

// pointTo sets the planes to block b of panel p. A plane that the type does not
// have keeps a pointer into the panel: it must not point past the memory.
func (ks *kernelSet) pointTo(g *args, w *Matrix, p, b int) {
	base := unsafe.Pointer(&w.data[p*w.panel])
	f := &w.form
	g.plane = [4]unsafe.Pointer{base, base, base, base}
	if f.class == classFloat {
		return
	}
	g.plane[0] = unsafe.Add(base, b*f.bits[0]*unit)
	g.plane[2] = unsafe.Add(base, w.plane[2]+b*scaleBytes[f.scale])
	if f.bits[1] > 0 {
		g.plane[1] = unsafe.Add(base, w.plane[1]+b*f.bits[1]*unit)
	}
	if f.super > 0 {
		g.plane[3] = unsafe.Add(base, w.plane[3]+b/8*f.super)
	}
}

// widePanels computes panels [p, end) for rows [from, to), a whole number of
// tiles. The activations of a tile's segment of floats stay in the second-level
// cache while its panels pass by.
func (ks *kernelSet) widePanels(w *Matrix, dst []float32, stride int, a *Acts, from, to, p, end int, s *Scratch) {
	if w.form.class != classFloat {
		for i := p; i < end; i++ {
			ks.wideRows(w, dst[(i-p)*panelRows:], stride, a, from, to, i, s)
		}
		return
	}
	for k := 0; k < w.k; k += segment {
		for i := p; i < end; {
			kernels, panels := ks.widen(w, i, end, k, s)
			ks.tiles(kernels.at(k == 0, false), dst[(i-p)*panelRows:], stride, a, from, to, 4*k, s)
			i += panels
		}
	}
}

// wideRows unpacks a part of the panel at a time and passes all rows by it.
func (ks *kernelSet) wideRows(w *Matrix, dst []float32, stride int, a *Acts, from, to, p int, s *Scratch) {
	for m := range to - from {
		clear(dst[m*stride:][:panelRows])
	}
	s.args.slice = unsafe.Pointer(s.slice)
	for b := 0; b < w.blocks; b += sliceBlocks {
		ks.pointTo(&s.args, w, p, b)
		s.args.n = min(sliceBlocks, w.blocks-b)
		ks.unpack.call(&s.args)
		ks.tiles(ks.wide, dst, stride, a, from, to, recordBytes*b, s)
	}
}

// widen makes args.slice point to a segment of panel p as float32, and of the one
// after it where kernels take two at a time. It returns the kernels and their panels.
func (ks *kernelSet) widen(w *Matrix, p, end, k int, s *Scratch) (run *wideKernels, panels int) {
	g := &s.args
	run, panels = &ks.wideKernels, 1
	if ks.pair.wide != nil && p+1 < end {
		run, panels = &ks.pair, 2
	}
	at := func(p int) unsafe.Pointer { return unsafe.Pointer(&w.data[p*w.panel+k*panelRows*w.form.float]) }
	g.n, g.slice, g.second = min(segment, w.k-k), at(p), w.panel
	g.next = at(min(p+panels, w.Panels()-1))
	if ks.unpack != nil {
		g.second = 4 * panelRows * segment
		for i := panels - 1; i >= 0; i-- {
			g.plane[0], g.slice = at(p+i), unsafe.Pointer(&s.floats[i*panelRows*segment])
			ks.unpack.call(g)
		}
	}
	return run, panels
}

// callRows bounds the rows of one call, so that it stays far below 50 µs.
const callRows = 96

// tiles passes rows [from, to), at the given byte of each, by what is unpacked.
func (ks *kernelSet) tiles(run kernel, dst []float32, stride int, a *Acts, from, to, at int, s *Scratch) {
	g := &s.args
	for m := from; m < to; m += callRows {
		g.tiles = min(callRows, to-m) / ks.tile
		g.acts = unsafe.Pointer(&a.buf[m*a.stride+at])
		g.dst = unsafe.Pointer(&dst[(m-from)*stride])
		run.call(g)
	}
}
