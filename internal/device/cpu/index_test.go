package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// TestBest holds the choice by ranks against sorting.
func TestBest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	special := []float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1)), math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32}
	for range 500 {
		scores := make([]float32, 1+r.IntN(60))
		for i := range scores {
			switch r.IntN(4) {
			case 0:
				scores[i] = special[r.IntN(len(special))]
			case 1:
				scores[i] = float32(r.IntN(5) - 2)
			default:
				scores[i] = float32(r.NormFloat64())
			}
		}
		out := make([]float32, 1+r.IntN(20))
		best(out, scores)
		order := make([]int, len(scores))
		for i := range order {
			order[i] = i
		}
		less := func(a, b float32) bool { return a != a && b == b || a < b }
		sort.SliceStable(order, func(i, j int) bool { return less(scores[order[j]], scores[order[i]]) })
		order = order[:min(len(order), len(out))]
		sort.Ints(order)
		want := make([]float32, len(out))
		for i := range want {
			want[i] = -1
			if i < len(order) {
				want[i] = float32(order[i])
			}
		}
		if fmt.Sprint(out) != fmt.Sprint(want) {
			t.Fatalf("of %v chose %v, want %v", scores, out, want)
		}
	}
}
