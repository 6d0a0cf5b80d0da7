package activations

import (
	"testing"

	"github.com/inferflow/inferflow/internal/device/ref"
)

// TestLayouts reads what a reference holds in another order of axes: the shape
// tells, or else that it agrees.
func TestLayouts(t *testing.T) {
	const rows, width = 4, 6
	v := &ref.Value{Rows: rows, Width: width, Data: make([]float32, rows*width)}
	for i := range rows {
		for j := range width {
			v.Row(i)[j] = float32(10*i + j)
		}
	}
	fill := func(n int, at func(i, j int) int) []float32 {
		want := make([]float32, n)
		for i := range rows {
			for j := range width {
				want[at(i, j)] = v.Row(i)[j]
			}
		}
		return want
	}
	for name, c := range map[string]struct {
		shape []int
		want  []float32
	}{
		"rows first":        {[]int{rows, width}, fill(rows*width, func(i, j int) int { return i*width + j })},
		"channels first":    {[]int{width, rows}, fill(rows*width, func(i, j int) int { return j*rows + i })},
		"heads first":       {[]int{2, rows, 3}, fill(rows*width, func(i, j int) int { return j/3*rows*3 + i*3 + j%3 })},
		"heads of channels": {[]int{2, 3, rows}, fill(rows*width, func(i, j int) int { return j*rows + i })},
		"padded after":      {[]int{width, rows + 3}, fill((rows+3)*width, func(i, j int) int { return j*(rows+3) + i })},
	} {
		for _, wrong := range []bool{false, true} {
			want := c.want
			if wrong {
				want = append([]float32{}, want...)
				want[0] += 7
			}
			cmp, m := &comparison{tol: 1e-4}, Match{}
			fits := cmp.measure(&m, v, want, c.shape, nil)
			if wrong && name == "padded after" {
				if fits {
					t.Errorf("%s: what differs is taken for the value", name)
				}
				continue
			}
			if !fits || (m.Error > 1e-4) != wrong || wrong && (m.Row != 0 || m.Column != 0 || m.FirstRow != 0) {
				t.Errorf("%s, wrong %v: %+v", name, wrong, m)
			}
		}
	}
}
