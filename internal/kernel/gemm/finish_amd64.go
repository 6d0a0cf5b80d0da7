//go:build amd64 && !noasm

package gemm

import "unsafe"

// zeros stands for a bias or a residual that is not there.
var zeros [2 * panelRows]float32

// finishRows computes the rows from the first on that fill wide tiles, and
// returns their number. The last segment of each goes out by way of f.
func (ks *kernelSet) finishRows(w *Matrix, y []float32, f *Finish, a *Acts, from, to, p, end int, s *Scratch) int {
	rows := ks.wholeTiles(to - from)
	if rows == 0 || to > a.rows || from < 0 {
		return 0
	}
	ks.finishing(&s.args, w, f, a, (end-p)*panelRows, s)
	for k := 0; k < w.k; k += segment {
		ks.segment(w, y, f, a, from, rows, 4*k, k, p, end, s)
	}
	return rows
}

// wholeTiles is the number of the first of n rows that finishing kernels take.
func (ks *kernelSet) wholeTiles(n int) int {
	if ks.finish == nil || n < ks.wideFrom {
		return 0
	}
	return n / ks.tile * ks.tile
}

// addSegment computes the segment from value k on of the weights for the first rows
// of a, which holds that segment's values alone.
func (ks *kernelSet) addSegment(w *Matrix, y []float32, f *Finish, a *Acts, rows, k, p, end int, s *Scratch) {
	ks.finishing(&s.args, w, f, a, (end-p)*panelRows, s)
	ks.segment(w, y, f, a, 0, rows, 0, k, p, end, s)
}

// finishing sets what the calls of a product have in common.
func (ks *kernelSet) finishing(g *args, w *Matrix, f *Finish, a *Acts, stride int, s *Scratch) {
	g.actStride, g.dstStride, g.panel, g.outStride, g.work = a.stride, stride*4, w.panel, f.Stride*4, unsafe.Pointer(&s.work[0])
}

// segment adds the segment from value k on of panels [p, end), whose activations
// are at the given byte of each row, to y; the last goes out.
func (ks *kernelSet) segment(w *Matrix, y []float32, f *Finish, a *Acts, from, rows, at, k, p, end int, s *Scratch) {
	stride := (end - p) * panelRows
	last := k+segment >= w.k
	for i := p; i < end; {
		col := (i - p) * panelRows
		kernels, panels := ks.widen(w, i, end, k, s)
		run := kernels.at(k == 0, last)
		if !last {
			ks.tiles(run, y[col:], stride, a, from, from+rows, at, s)
		}
		for m := 0; m < rows && last; m += callRows {
			n := min(callRows, rows-m)
			f.point(&s.args, m*f.Stride+col, n, panels*panelRows)
			ks.tiles(run, y[m*stride+col:], stride, a, from+m, from+m+n, at, s)
		}
		i += panels
	}
}

// at is the kernel for a segment that is the first, the last, or both.
func (w *wideKernels) at(first, last bool) kernel {
	switch {
	case first && last:
		return w.only
	case last:
		return w.finish
	case first:
		return w.set
	}
	return w.wide
}

// point sets what is added to, and where to write, the columns from value at on of
// so many rows.
func (f *Finish) point(g *args, at, rows, columns int) {
	end := at + (rows-1)*f.Stride + columns
	g.out = unsafe.Pointer(&f.Out[:end][at])
	g.bias, g.res, g.resStride = unsafe.Pointer(&zeros), unsafe.Pointer(&zeros), 0
	if f.Bias != nil {
		col := at % f.Stride
		g.bias = unsafe.Pointer(&f.Bias[col : col+columns][0])
	}
	if f.Residual != nil {
		g.res, g.resStride = unsafe.Pointer(&f.Residual[:end][at]), g.outStride
	}
}
