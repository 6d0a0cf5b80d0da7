package gemm

// Mul computes rows [rowFrom, rowTo) of the product for the weight rows of
// panels [panelFrom, panelTo): dst[m·stride + n] = Σ_k a[m][k]·w[n][k], n < N.
// Nothing else of dst is written. Calls on different panels or rows may run at
// once, each with its own Scratch. It allocates nothing. It panics if a does
// not hold prepared rows of w's kind and K, or dst is too short.
func (w *Matrix) Mul(dst []float32, stride int, a *Acts, rowFrom, rowTo int, panelFrom, panelTo int, s *Scratch) {
	if rowFrom >= rowTo || panelFrom >= panelTo {
		return
	}
	if a.k != w.k || a.kind != w.kind() || rowFrom < 0 || rowTo > a.rows || panelFrom < 0 || panelTo > w.Panels() {
		panic("gemm: Mul: activations or ranges do not fit the matrix")
	}
	cols := min(w.n, panelTo*panelRows)
	if stride < cols && rowTo > 1 {
		panic("gemm: Mul: the stride is shorter than the columns")
	}
	_ = dst[(rowTo-1)*stride+cols-1]
	whole := min(panelTo, w.n/panelRows) // panels whose columns all exist
	step := w.chunkRows()
	for m := rowFrom; m < rowTo; m += step {
		end := min(rowTo, m+step)
		if panelFrom < whole {
			w.mulPanels(dst[m*stride+panelFrom*panelRows:], stride, a, m, end, panelFrom, whole, s)
		}
		if whole < panelTo {
			w.mulTail(dst, stride, a, m, end, s)
		}
	}
}

func (w *Matrix) kind() Kind {
	if w.form.class == classFloat {
		return Float
	}
	return Int8
}

// chunkRows is the number of rows whose activations stay in the second-level
// cache while the panels pass by, a multiple of every tile.
func (w *Matrix) chunkRows() int {
	const budget = 384 << 10
	return max(48, budget/rowStride(w.kind(), w.k)/24*24)
}

// mulTail computes the last panel if some of its rows do not exist, by way of
// Scratch.
func (w *Matrix) mulTail(dst []float32, stride int, a *Acts, from, to int, s *Scratch) {
	p := w.n / panelRows
	cols := w.n % panelRows
	for m := from; m < to; m += tailRows {
		end := min(to, m+tailRows)
		w.mulPanels(s.tail, panelRows, a, m, end, p, p+1, s)
		for i := m; i < end; i++ {
			copy(dst[i*stride+p*panelRows:][:cols], s.tail[(i-m)*panelRows:])
		}
	}
}

// mulPanels computes rows [from, to) for panels [p, end); dst starts at the first
// result and has 16 columns for each panel that may be written.
func (w *Matrix) mulPanels(dst []float32, stride int, a *Acts, from, to, p, end int, s *Scratch) {
	if w.kernels != nil {
		w.kernels.panels(w, dst, stride, a, from, to, p, end, s)
		return
	}
	for i := p; i < end; i++ {
		if w.form.class == classFloat {
			w.floatPanelGo(dst[(i-p)*panelRows:], stride, a, from, to, i)
		} else {
			w.intPanelGo(dst[(i-p)*panelRows:], stride, a, from, to, i, s)
		}
	}
}
