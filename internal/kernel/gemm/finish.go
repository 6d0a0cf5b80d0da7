package gemm

// Finish says what follows a product on its way out: product + bias + residual.
type Finish struct {
	Out      []float32 // the first result, in a row of the whole output
	Residual []float32 // likewise, or nil
	Stride   int       // from row to row of Out and Residual
	Bias     []float32 // of the columns from the first result on, or nil
}

// MulFinish is MulTile, whose y has rows of 16·(panelTo−panelFrom) values, for
// results that are finished in the same pass where a kernel can: the first done
// rows are then in f.Out, (product + bias) + residual in the bits of doing one
// after the other, and their part of y is spent. The rows after them are in y,
// bare. Out may be Residual.
func (w *Matrix) MulFinish(y []float32, f *Finish, a *Acts, rowFrom, rowTo int, panelFrom, panelTo int, s *Scratch) (done int) {
	stride := (panelTo - panelFrom) * panelRows
	if rowFrom < rowTo && w.finishes(a, panelTo) {
		done = w.kernels.finishRows(w, y, f, a, rowFrom, rowTo, panelFrom, panelTo, s)
	}
	if rowFrom+done < rowTo {
		w.MulTile(y[done*stride:], stride, a, rowFrom+done, rowTo, panelFrom, panelTo, s)
	}
	return done
}

// finishes reports whether a kernel may finish panels before the given one: their
// columns all exist.
func (w *Matrix) finishes(a *Acts, panelTo int) bool {
	return w.kernels != nil && w.form.class == classFloat && a.kind == Float && a.k == w.k && panelTo <= w.n/panelRows
}
