package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDecayDot holds the step of a state's row against float64, in place and
// into other memory, at every tail.
func TestDecayDot(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 2))
		for _, n := range []int{0, 1, 3, 7, 8, 9, 31, 32, 33, 64, 100, 128, 131} {
			s, u, c, dst := guarded[float32](t, n, false), guarded[float32](t, n, false), guarded[float32](t, n, false), guarded[float32](t, n, true)
			random(r, s, 1)
			random(r, u, 1)
			random(r, c, 1)
			a, b := r.Float32(), float32(r.NormFloat64())
			want, size, row := 0.0, 0.0, make([]float64, n)
			for i := range row {
				row[i] = float64(a)*float64(s[i]) + float64(b)*float64(u[i])
				want += row[i] * float64(c[i])
				size += math.Abs(row[i] * float64(c[i]))
			}
			got := DecayDot(dst, s, u, c, a, b)
			again := DecayDot(s, s, u, c, a, b)
			if got != again || math.Abs(float64(got)-want) > 1e-6*size {
				t.Errorf("%d values: %v, in place %v, want %v", n, got, again, want)
			}
			for i, v := range row {
				if s[i] != dst[i] || math.Abs(float64(dst[i])-v) > 3e-7*(math.Abs(float64(a)*2)+math.Abs(float64(b)*4)) {
					t.Fatalf("value %d of %d is %v, in place %v, want %v", i, n, dst[i], s[i], v)
				}
			}
		}
	})
}
