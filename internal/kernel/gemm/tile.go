package gemm

// MulTile is Mul into a tile of its own: column 0 of dst is the first weight
// row of panel panelFrom, row 0 is row rowFrom. All 16 columns of the last
// panel are written, those without a weight row with zero. The stride is at
// least 16·(panelTo−panelFrom).
func (w *Matrix) MulTile(dst []float32, stride int, a *Acts, rowFrom, rowTo int, panelFrom, panelTo int, s *Scratch) {
	if rowFrom >= rowTo || panelFrom >= panelTo {
		return
	}
	if a.k != w.k || a.kind != w.kind() || rowFrom < 0 || rowTo > a.rows || panelFrom < 0 || panelTo > w.Panels() || stride < panelRows*(panelTo-panelFrom) {
		panic("gemm: MulTile: activations, ranges or stride do not fit the matrix")
	}
	_ = dst[(rowTo-rowFrom-1)*stride+panelRows*(panelTo-panelFrom)-1]
	step := w.chunkRows()
	for m := rowFrom; m < rowTo; m += step {
		end := min(rowTo, m+step)
		w.mulPanels(dst[(m-rowFrom)*stride:], stride, a, m, end, panelFrom, panelTo, s)
	}
}
