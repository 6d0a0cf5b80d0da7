package ref

import (
	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// balance evaluates graph.BalanceAttr on matrices [n, n].
func balance(a *graph.BalanceAttr, n int, x *Value, b *batch.Batch, out *Value) error {
	m := make([]float64, n*n)
	for r := range out.Rows {
		for at := 0; at < out.Width; at += n * n {
			y := out.Row(r)[at : at+n*n]
			for i := 0; i < n*n; i += n {
				softmax(y[i:i+n], x.Row(r)[at+i:at+i+n])
			}
			for i, v := range y {
				m[i] = float64(v) + a.Eps
			}
			divide(m, n, 1, n, a.Eps)
			for range a.Rounds - 1 {
				if b.Stopped() {
					return batch.ErrStopped
				}
				divide(m, n, n, 1, a.Eps)
				divide(m, n, 1, n, a.Eps)
			}
			for i, v := range m {
				y[i] = float32(v)
			}
		}
	}
	return nil
}

// divide divides each line of m by its sum and eps: n numbers, step apart, of
// lines that begin next apart.
func divide(m []float64, n, next, step int, eps float64) {
	for line := range n {
		sum := eps
		for i := range n {
			sum += m[line*next+i*step]
		}
		for i := range n {
			m[line*next+i*step] /= sum
		}
	}
}
