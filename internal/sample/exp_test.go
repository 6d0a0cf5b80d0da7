package sample

import (
	"math"
	"testing"
)

func TestExp(t *testing.T) {
	worst := 0.0
	for i := range 400000 {
		x := -float64(i) * float64(i) * 4.4e-9
		want := math.Exp(x)
		worst = max(worst, math.Abs(exp(x)-want)/want)
	}
	if worst > 4e-16 {
		t.Errorf("relative error %v", worst)
	}
	for _, c := range [][2]float64{{0, 1}, {-709, 0}, {math.Inf(-1), 0}, {-1e300, 0}, {math.NaN(), 0}} {
		if got := exp(c[0]); got != c[1] {
			t.Errorf("exp(%v) = %v, want %v", c[0], got, c[1])
		}
	}
}

func BenchmarkExp(b *testing.B) {
	sum := 0.0
	for b.Loop() {
		for i := range 1 << 18 {
			sum += exp(-float64(i&2047) / 100)
		}
	}
	if sum == 0 {
		b.Fatal(sum)
	}
}
