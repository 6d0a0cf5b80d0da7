package attn

import (
	"math"
	"slices"
)

// RunSparse computes Out with a sparse transformation of each row's logits in
// place of the softmax: weights that add up to 1, of which most are 0. With
// halves the 1.5-entmax (Peters et al. 2019), else the sparsemax (Martins and
// Astudillo 2016). room holds a row of 16 numbers for each listed tile for each
// row, and may be the call's Bias. Sinks and Open are not read. It allocates
// nothing once room's rows have been that long.
func (c *Call) RunSparse(s *Scratch, room []float32, halves bool) {
	c.check(s)
	stride := len(c.TileK) * Tile
	var dead [rowBlock]uint16
	for r := 0; r < c.Rows; r += rowBlock {
		n := min(rowBlock, c.Rows-r)
		first, end := c.beginSum(s, r, n)
		for t := first; t < end; t++ {
			c.storeLogits(s, t, r, n, room, stride, &dead)
		}
		for i := r; i < r+n; i++ {
			if c.Lo[i] < c.Hi[i] {
				lo, hi := int(c.Lo[i])-c.FirstTile*Tile, int(c.Hi[i])-c.FirstTile*Tile
				s.thin(room[i*stride:][lo:hi], halves)
			}
		}
		for t := first; t < end; t++ {
			for i, j := c.seeing(t, r, 0, n); i < j; i, j = c.seeing(t, r, j, n) {
				s.keysOf, s.valuesOf = -1, -1
				for k := range j - i {
					row := r + i + k
					copy(s.logits[k*Tile:], room[row*stride+(t-c.FirstTile)*Tile:][:Tile])
					s.from[k], s.to[k] = int32(max(int(c.Lo[row])-t*Tile, 0)), int32(min(int(c.Hi[row])-t*Tile, Tile))
				}
				s.weighSeen(c, t, i, j-i)
			}
		}
		c.endSum(s, r, n)
	}
}

// storeLogits writes the logits of rows r to r+n with tile t to room, -Inf where a
// position is hidden.
func (c *Call) storeLogits(s *Scratch, t, r, n int, room []float32, stride int, dead *[rowBlock]uint16) {
	at := (t - c.FirstTile) * Tile
	if c.Skip != nil && c.Skip[t-c.FirstTile] {
		for i := r; i < r+n; i++ {
			to := room[i*stride+at:][:Tile]
			for p := range to {
				to[p] = negInf
			}
		}
		return
	}
	for i, j := c.seeing(t, r, 0, n); i < j; i, j = c.seeing(t, r, j, n) {
		logits := c.seenLogits(s, t, r+i, j-i, dead)
		for k := range j - i {
			to := room[(r+i+k)*stride+at:][:Tile]
			for p, x := range logits[k*Tile:][:Tile] {
				if to[p] = x; dead[k]>>p&1 != 0 {
					to[p] = negInf
				}
			}
		}
	}
}

// thin turns the logits of a row into weights; -Inf gets none. Only logits near
// the largest can have weight: those alone are sorted.
func (s *Scratch) thin(row []float32, halves bool) {
	top := negInf
	for _, x := range row {
		top = max(top, x)
	}
	reach := float32(1)
	if halves {
		reach = 2
	}
	s.near = s.near[:0]
	for _, x := range row {
		if d := x - top; d >= -reach {
			s.near = append(s.near, float64(d))
		}
	}
	slices.SortFunc(s.near, func(a, b float64) int {
		if a > b {
			return -1
		}
		return 1
	})
	limit := threshold(s.near, halves)
	for i, x := range row {
		d := float64(x - top)
		if halves {
			d /= 2
		}
		w := max(d-limit, 0)
		if row[i] = float32(w); halves {
			row[i] = float32(w * w)
		}
		if x == negInf {
			row[i] = 0
		}
	}
}

// threshold is what is taken from each number, of those sorted from the largest
// (0) on, so that what remains adds up to 1.
func threshold(sorted []float64, halves bool) (limit float64) {
	sum, squares := 0.0, 0.0
	for i, x := range sorted {
		k := float64(i + 1)
		if halves {
			x /= 2
		}
		sum, squares = sum+x, squares+x*x
		next := (sum - 1) / k
		if halves {
			mean := sum / k
			next = mean - math.Sqrt(max(0, (1-(squares-k*mean*mean))/k))
		}
		if next > x {
			break
		}
		limit = next
	}
	return limit
}
