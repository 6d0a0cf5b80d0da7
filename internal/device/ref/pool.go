package ref

import (
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// positions writes the place of each row.
func positions(a *graph.PositionsAttr, b *batch.Batch, out []float32) {
	at := b.Pos
	if a.Count {
		at = make([]int32, b.Rows())
		b.Places(at, int32(a.Pad))
	}
	for i, p := range at {
		out[i] = float32(int(p) + a.Offset)
	}
}

// pool gives every row the summary of its sequence's rows in the batch, the
// first Skip of them left out (but for "cls", which is the first in any case).
func pool(how string, x *Value, b *batch.Batch, out *Value) error {
	for _, q := range b.Seqs {
		from, n := int(q.Row+q.Skip), int(q.N-q.Skip)
		if how == "cls" {
			from, n = int(q.Row), 1
		}
		if n < 1 {
			return fmt.Errorf("pool: sequence %d leaves out its %d rows, all that it has", q.ID, q.Skip)
		}
		sum := make([]float64, x.Width)
		if how == "last" {
			from, n = from+n-1, 1
		}
		for i := range sum {
			for t := 0; t < n; t++ {
				v := float64(x.Row(from + t)[i])
				switch {
				case how == "max" && t > 0:
					sum[i] = math.Max(sum[i], v)
				case how == "weighted":
					sum[i] += float64(t+1) * v
				default:
					sum[i] += v
				}
			}
			sum[i] /= divisor(how, n)
		}
		for r := int(q.Row); r < int(q.Row+q.N); r++ {
			for i, v := range sum {
				out.Row(r)[i] = float32(v)
			}
		}
	}
	return nil
}

// divisor is what the pooled sum of n rows is divided by.
func divisor(how string, n int) float64 {
	switch how {
	case "mean":
		return float64(n)
	case "mean_sqrt":
		return math.Sqrt(float64(n))
	case "weighted":
		return float64(n) * float64(n+1) / 2
	}
	return 1
}
