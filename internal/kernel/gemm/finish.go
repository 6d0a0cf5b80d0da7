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

// Segment is the number of values along K of one chain of float sums.
const Segment = segment

// WholeTiles is the number of the first of n rows that AddSegment can take: whole
// tiles of a kernel for float weights, 0 where there is none.
func (w *Matrix) WholeTiles(n int) int {
	if w.kernels == nil || w.form.class != classFloat || w.n%panelRows > 0 {
		return 0
	}
	return w.kernels.wholeTiles(n)
}

// AddSegment multiplies one segment along K: values Segment·i of the weights and
// on with the values of a, which holds no others, for its first rows, as many as
// WholeTiles gives for them. Segments are to be added in their order: the first sets
// y, whose rows are 16·(panelTo−panelFrom) apart, the next are added, the last goes
// out by f as in MulFinish and in its bits. It panics if a does not fit the segment.
func (w *Matrix) AddSegment(y []float32, f *Finish, a *Acts, rows, i, panelFrom, panelTo int, s *Scratch) {
	k := i * segment
	if a.kind != Float || a.k != min(segment, w.k-k) || rows > a.rows || rows == 0 || w.WholeTiles(rows) != rows || panelTo > w.n/panelRows {
		panic("gemm: AddSegment: the activations do not fit the segment")
	}
	w.kernels.addSegment(w, y, f, a, rows, k, panelFrom, panelTo, s)
}
