package ref

import (
	"math"
	"sort"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// headLinear evaluates graph.HeadLinearAttr.
func (m *Machine) headLinear(a *graph.HeadLinearAttr, x, out *Value) error {
	w, err := m.matrix(a.W)
	if err != nil {
		return err
	}
	heads, e, d := a.W.Shape[0], a.W.Shape[1], a.W.Shape[2]
	return m.parallel(heads*e, func(from, to int) error {
		buf := make([]float32, d)
		for i := from; i < to; i++ {
			if err := w.Floats(buf, i); err != nil {
				return err
			}
			h := i / e
			for t := 0; t < out.Rows; t++ {
				out.Row(t)[i] = float32(dot(x.Row(t)[h*d:(h+1)*d], buf))
			}
		}
		return nil
	})
}

// expertLinear evaluates graph.ExpertLinearAttr.
func (m *Machine) expertLinear(a *graph.ExpertLinearAttr, in []*Value, out *Value) error {
	w, err := m.matrix(a.W)
	if err != nil {
		return err
	}
	e, d := a.W.Shape[1], a.W.Shape[2]
	return m.parallel(e, func(from, to int) error {
		buf := make([]float32, d)
		for t := 0; t < out.Rows; t++ {
			x, weights := in[0].Row(t), in[1].Row(t)
			for i := from; i < to; i++ {
				sum := 0.0
				for j, id := range in[1].chosen(t) {
					if err := w.Floats(buf, int(id)*e+i); err != nil {
						return err
					}
					y := float32(dot(x[j*d%len(x):][:d], buf))
					if a.Sum {
						sum += float64(weights[j]) * float64(y)
						continue
					}
					out.Row(t)[j*e+i] = y
				}
				if a.Sum {
					out.Row(t)[i] = float32(sum)
				}
			}
		}
		return nil
	})
}

// index evaluates graph.IndexAttr.
func (m *Machine) index(a *graph.IndexAttr, in []*Value, b *batch.Batch, out *Value) error {
	d := in[1].Width
	for i := range b.Seqs {
		q := &b.Seqs[i]
		total := int(q.Start + q.N)
		keys := make([][]float32, total)
		for p := range keys {
			row, err := m.Memory.Row(a.Cache, q, p)
			if err != nil {
				return err
			}
			if p >= int(q.Start) {
				copy(row, in[1].Row(int(q.Row)+p-int(q.Start)))
			}
			keys[p] = row
		}
		err := m.parallel(int(q.N), func(from, to int) error {
			for t := from; t < to; t++ {
				r := int(q.Row) + t
				Choose(a, keys[:int(q.Start)+t+1], in[0].Row(r), in[2].Row(r), d, out.Row(r))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Choose lists the best of the keys, each of d values, for queries q [H·d] with
// weights w [H], ascending, as a says; −1 fills what is left.
func Choose(a *graph.IndexAttr, keys [][]float32, q, w []float32, d int, out []float32) {
	for i := range out {
		out[i] = -1
	}
	if a.Closed && a.Local == 0 {
		chooseClosed(a, keys, q, w, d, out)
		return
	}
	if len(keys) <= len(out) {
		for p := range keys {
			out[p] = float32(p)
		}
		return
	}
	size := a.Size()
	blocks := (len(keys) + size - 1) / size
	score := make([]float64, blocks)
	order := make([]int, blocks)
	for i := range order {
		score[i], order[i] = math.Inf(-1), i
		from, to := i*size, min((i+1)*size, len(keys))
		if a.Closed { // the last, which may not be complete, is among the local ones
			from = to - 1
		}
		for _, k := range keys[from:to] {
			score[i] = math.Max(score[i], indexScore(a, k, q, w, d))
		}
		if i >= blocks-a.Local {
			score[i] = math.Inf(1)
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return score[order[i]] > score[order[j]] })
	chosen := order[:a.TopK]
	sort.Ints(chosen)
	for i, b := range chosen {
		for p := b * size; p < min((b+1)*size, len(keys)); p++ {
			out[i*size+p-b*size] = float32(p)
		}
	}
}

// chooseClosed is Choose of blocks that are complete.
func chooseClosed(a *graph.IndexAttr, keys [][]float32, q, w []float32, d int, out []float32) {
	blocks := len(keys) / a.Block
	score, order := make([]float64, blocks), make([]int, blocks)
	for i := range order {
		score[i], order[i] = indexScore(a, keys[(i+1)*a.Block-1], q, w, d), i
	}
	sort.SliceStable(order, func(i, j int) bool { return score[order[i]] > score[order[j]] })
	chosen := order[:min(a.TopK, blocks)]
	sort.Ints(chosen)
	for i, b := range chosen {
		if a.Ends {
			out[i] = float32((b+1)*a.Block - 1)
			continue
		}
		for j := range a.Block {
			out[i*a.Block+j] = float32(b*a.Block + j)
		}
	}
	if a.Tail {
		for p := blocks * a.Block; p < len(keys); p++ {
			out[a.TopK*a.Block+p-blocks*a.Block] = float32(p)
		}
	}
}

// dots multiplies each vector of d values of x with the vectors of y that
// belong to it: those of its part, or all where y has them once.
func dots(d int, x, y *Value, b *batch.Batch, out *Value) error {
	parts := x.Width / d
	n := out.Width / parts
	for r := range out.Rows {
		if b.Stopped() {
			return batch.ErrStopped
		}
		xr, yr, o := x.Row(r), y.Row(r), out.Row(r)
		for p := range parts {
			from := yr
			if len(yr) > n*d {
				from = yr[p*n*d:]
			}
			for i := range n {
				o[p*n+i] = float32(dot(xr[p*d:(p+1)*d], from[i*d:(i+1)*d]))
			}
		}
	}
	return nil
}

// indexScore is a position's; what is no number counts least.
func indexScore(a *graph.IndexAttr, k, q, w []float32, d int) float64 {
	s := 0.0
	for h := range w {
		x := dot(q[h*d:(h+1)*d], k)
		if !a.Signed {
			x = math.Max(0, x)
		}
		s += float64(w[h]) * x
	}
	if math.IsNaN(s) {
		return math.Inf(-1)
	}
	return s
}
