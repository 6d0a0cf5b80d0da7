//go:build amd64 && !noasm

package gemm

import "unsafe"

// zeros stands for a bias or a residual that is not there.
var zeros [panelRows]float32

// finishRows computes the rows from the first on that fill wide tiles, and
// returns their number. The last segment of each goes out by way of f.
func (ks *kernelSet) finishRows(w *Matrix, y []float32, f *Finish, a *Acts, from, to, p, end int, s *Scratch) int {
	if ks.finish == nil || to-from < ks.wideFrom || to > a.rows || from < 0 {
		return 0
	}
	rows := (to - from) / ks.tile * ks.tile
	stride := (end - p) * panelRows
	g := &s.args
	g.actStride, g.dstStride, g.panel, g.outStride, g.work = a.stride, stride*4, w.panel, f.Stride*4, unsafe.Pointer(&s.work[0])
	last := (w.k - 1) / segment * segment
	for k := 0; k <= last; k += segment {
		for i := p; i < end; i++ {
			if col := (i - p) * panelRows; k < last {
				ks.floatRows(w, y[col:], stride, a, from, from+rows, i, k, s)
			} else {
				ks.finishPanel(w, y[col:], stride, f, col, a, from, rows, i, last, s)
			}
		}
	}
	return rows
}

// finishPanel adds the segment from value k on, the last, of panel p and writes
// the columns from col on of the output.
func (ks *kernelSet) finishPanel(w *Matrix, y []float32, stride int, f *Finish, col int, a *Acts, from, rows, p, k int, s *Scratch) {
	run := ks.finish
	if k == 0 {
		run = ks.only
	}
	ks.widen(w, p, k, s)
	for m := 0; m < rows; m += callRows {
		n := min(callRows, rows-m)
		f.point(&s.args, m*f.Stride+col, n)
		ks.tiles(run, y[m*stride:], stride, a, from+m, from+m+n, 4*k, s)
	}
}

// point sets what is added to, and where to write, the 16 columns from value at
// on of so many rows.
func (f *Finish) point(g *args, at, rows int) {
	end := at + (rows-1)*f.Stride + panelRows
	g.out = unsafe.Pointer(&f.Out[:end][at])
	g.bias, g.res, g.resStride = unsafe.Pointer(&zeros), unsafe.Pointer(&zeros), 0
	if f.Bias != nil {
		col := at % f.Stride
		g.bias = unsafe.Pointer(&f.Bias[col : col+panelRows][0])
	}
	if f.Residual != nil {
		g.res, g.resStride = unsafe.Pointer(&f.Residual[:end][at]), g.outStride
	}
}
