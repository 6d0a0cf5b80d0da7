package attn

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestScores holds the products with a tile's keys against float64, and every
// query's against its own alone.
func TestScores(t *testing.T) {
	tiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, d := range []int{1, 7, 16, 128} {
			const rows = 5
			tile, keys := make([]byte, KeyTileBytes(F32, d)), make([][]float32, Tile)
			for j := range keys {
				keys[j] = normal(r, d, 1)
				PutKey(tile, F32, d, j, keys[j])
			}
			q, dst, one := normal(r, rows*(d+2), 1), make([]float32, rows*Tile), make([]float32, Tile)
			Scores(dst, q, d+2, rows, tile, d)
			for i := range rows {
				Scores(one, q[i*(d+2):], d+2, 1, tile, d)
				for j, k := range keys {
					want := 0.0
					for c, v := range k {
						want += float64(v) * float64(q[i*(d+2)+c])
					}
					got := dst[i*Tile+j]
					if math.Abs(float64(got)-want) > 1e-4 || got != one[j] {
						t.Fatalf("d %d, query %d, key %d: %g, alone %g, want %g", d, i, j, got, one[j], want)
					}
				}
			}
		}
	})
}
