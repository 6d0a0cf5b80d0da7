package embed

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// TestLargest: the k largest come as a stable sort of all has them.
func TestLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		row := make([]float32, rng.IntN(60))
		order := make([]int32, len(row))
		for i := range row {
			row[i], order[i] = float32(rng.IntN(20)), int32(i)
		}
		sort.SliceStable(order, func(a, b int) bool { return row[order[a]] > row[order[b]] })
		for k := range 70 {
			if got, want := largest(row, k), order[:min(k, len(order))]; !slices.Equal(got, want) {
				t.Fatalf("the %d largest of %v are %v, want %v", k, row, got, want)
			}
		}
	}
	row := make([]float32, 100_000)
	for i := range row {
		row[i] = float32(i)
	}
	if n := testing.AllocsPerRun(1, func() { largest(row, 8) }); n > 4 {
		t.Errorf("%v allocations", n)
	}
}
