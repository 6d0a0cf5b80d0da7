package attn

import "math"

// RunMapped computes Out as the sum of f(logit)·value over the positions that a
// row sees: no softmax. f turns 16·n logits into weights, each by itself, and
// may be given the same slice twice. A position hidden by a bias of −Inf has no
// weight. Sinks and Open are not read. It allocates nothing.
//
// The promise of bits holds as for Run: tiles are added in ascending order.
func (c *Call) RunMapped(s *Scratch, f func(dst, x []float32)) {
	c.check(s)
	var dead [rowBlock]uint16
	for r := 0; r < c.Rows; r += rowBlock {
		n := min(rowBlock, c.Rows-r)
		first, end := c.beginSum(s, r, n)
		for t := first; t < end; t++ {
			for i, j := c.seeing(t, r, 0, n); i < j; i, j = c.seeing(t, r, j, n) {
				logits := c.seenLogits(s, t, r+i, j-i, &dead)
				f(logits, logits)
				for k := range j - i {
					bury(logits[k*Tile:][:Tile], dead[k])
				}
				s.weighSeen(c, t, i, j-i)
			}
		}
		c.endSum(s, r, n)
	}
}

// bury takes the weight of positions that a row does not see.
func bury(row []float32, dead uint16) {
	for j := range row {
		if dead>>j&1 != 0 {
			row[j] = 0
		}
	}
}

// RunSticks computes Out by stick-breaking: from the newest position that a row
// sees to the oldest, each takes the part σ(logit) of what those after it have
// left. With Open, Out[r·OutStride+DV] is the logarithm of what is left at last.
// Sinks are not read. It allocates nothing.
func (c *Call) RunSticks(s *Scratch) {
	c.check(s)
	var dead [rowBlock]uint16
	for r := 0; r < c.Rows; r += rowBlock {
		n := min(rowBlock, c.Rows-r)
		first, end := c.beginSum(s, r, n)
		var left [rowBlock]float64
		for t := end - 1; t >= first; t-- {
			for i, j := c.seeing(t, r, 0, n); i < j; i, j = c.seeing(t, r, j, n) {
				logits := c.seenLogits(s, t, r+i, j-i, &dead)
				for k := range j - i {
					breakSticks(logits[k*Tile:][:Tile], dead[k], &left[i+k])
				}
				s.weighSeen(c, t, i, j-i)
			}
		}
		c.endSum(s, r, n)
		for i := range n {
			if c.Open {
				c.Out[(r+i)*c.OutStride+c.DV] = float32(left[i])
			}
		}
	}
}

// breakSticks turns the logits of a tile into weights, the last first.
func breakSticks(row []float32, dead uint16, left *float64) {
	for j := Tile - 1; j >= 0; j-- {
		if dead>>j&1 != 0 {
			row[j] = 0
			continue
		}
		x := float64(row[j])
		taken, kept := logSigmoids(x)
		row[j] = float32(math.Exp(taken + *left))
		*left += kept
	}
}

// logSigmoids is log σ(x) and log (1 − σ(x)).
func logSigmoids(x float64) (of, rest float64) {
	tail := math.Log1p(math.Exp(-math.Abs(x)))
	return min(x, 0) - tail, min(-x, 0) - tail
}

// Gates writes for each position p that row r sees the sum of σ(logit) over the
// positions p … Hi[r]−1 to dst[r·stride + p − 16·FirstTile]. The logit is that
// without Slopes and Bias, which the call must not have.
func (c *Call) Gates(s *Scratch, dst []float32, stride int) {
	c.check(s)
	var dead [rowBlock]uint16
	for r := 0; r < c.Rows; r += rowBlock {
		n := min(rowBlock, c.Rows-r)
		first, end := c.beginSum(s, r, n)
		var sum [rowBlock]float64
		for t := end - 1; t >= first; t-- {
			for i, j := c.seeing(t, r, 0, n); i < j; i, j = c.seeing(t, r, j, n) {
				logits := c.seenLogits(s, t, r+i, j-i, &dead)
				for k := range j - i {
					countGates(dst[(r+i+k)*stride+(t-c.FirstTile)*Tile:][:Tile], logits[k*Tile:], dead[k], &sum[i+k])
				}
			}
		}
	}
}

// countGates sums the gates of a tile, the last first.
func countGates(dst, logits []float32, dead uint16, sum *float64) {
	for j := Tile - 1; j >= 0; j-- {
		if dead>>j&1 == 0 {
			*sum += 1 / (1 + math.Exp(-float64(logits[j])))
		}
		dst[j] = float32(*sum)
	}
}

// Fades writes for each position p that row r sees the sum of the keys' last
// components over the positions p+1 … Hi[r]−1 to dst[r·stride + p − 16·FirstTile].
// With every above 0 only positions every−1, 2·every−1, … are seen: the others
// add nothing and get −Inf. Skipped tiles must hold none that is seen; Bias is not read.
func (c *Call) Fades(s *Scratch, dst []float32, stride, every int) {
	c.check(s)
	for r := 0; r < c.Rows; r += rowBlock {
		n := min(rowBlock, c.Rows-r)
		first, end := c.beginSum(s, r, n)
		var sum [rowBlock]float64
		for t := end - 1; t >= first; t-- {
			if c.Skip != nil && c.Skip[t-c.FirstTile] {
				continue
			}
			var last [Tile]float32
			wide := Tile * c.KeyType.Size()
			expand(last[:], c.Keys[c.TileK[t-c.FirstTile]+(c.DK-1)*wide:][:wide], c.KeyType)
			for i := range n {
				from, to := max(int(c.Lo[r+i])-t*Tile, 0), min(int(c.Hi[r+i])-t*Tile, Tile)
				d := dst[(r+i)*stride+(t-c.FirstTile)*Tile:][:Tile]
				for j := to - 1; j >= from; j-- {
					if every > 0 && (t*Tile+j+1)%every != 0 {
						d[j] = negInf
						continue
					}
					d[j] = float32(sum[i])
					sum[i] += float64(last[j])
				}
			}
		}
	}
}

// seeing is the next run of rows, of r to r+n and from row r+from on, that see
// some of tile t; empty where there is none, or where the tile is skipped.
func (c *Call) seeing(t, r, from, n int) (i, j int) {
	if c.Skip != nil && c.Skip[t-c.FirstTile] {
		return 0, 0
	}
	for i = from; i < n && !c.sees(r+i, t); i++ {
	}
	for j = i; j < n && c.sees(r+j, t); j++ {
	}
	return i, j
}

// beginSum empties the sums of rows r to r+n and gives the tiles that any of
// them sees, the end excluded.
func (c *Call) beginSum(s *Scratch, r, n int) (first, end int) {
	s.total.clear(n)
	for i := range n {
		s.alpha[i] = 1
	}
	lo, hi := math.MaxInt, 0
	for i := r; i < r+n; i++ {
		if c.Lo[i] < c.Hi[i] {
			lo, hi = min(lo, int(c.Lo[i])), max(hi, int(c.Hi[i]))
		}
	}
	if lo >= hi {
		return 0, 0
	}
	return lo / Tile, (hi + Tile - 1) / Tile
}

// endSum writes the sums of rows r to r+n.
func (c *Call) endSum(s *Scratch, r, n int) {
	for i := range n {
		copy(c.Out[(r+i)*c.OutStride:][:c.DV], s.total.Acc[i*s.total.Stride:])
	}
}

// seenLogits computes the logits of rows r to r+n, which all see some of tile t,
// scale included; leaves in from and to what each sees of it, and in dead the
// positions that it does not see or that are hidden from it, whose logits become 0.
func (c *Call) seenLogits(s *Scratch, t, r, n int, dead *[rowBlock]uint16) []float32 {
	s.keysOf, s.valuesOf = -1, -1
	logits, scale := c.logits(s, t, r, n)
	for i := range n {
		from, to := max(int(c.Lo[r+i])-t*Tile, 0), min(int(c.Hi[r+i])-t*Tile, Tile)
		s.from[i], s.to[i], dead[i] = int32(from), int32(to), 0
		row := logits[i*Tile:][:Tile]
		for j, x := range row {
			if row[j] = x * scale; j < from || j >= to || x == negInf {
				row[j] = 0
				dead[i] |= 1 << j
			}
		}
	}
	return logits
}

// weighSeen adds the values of tile t to the states at, at+1, …, by the weights
// that stand where the logits of rows 0 to n did.
func (s *Scratch) weighSeen(c *Call, t, at, n int) {
	for i := 0; i < n; {
		j := i + 1
		for j < n && s.from[j] == s.from[i] && s.to[j] == s.to[i] {
			j++
		}
		s.weigh(c, t, i, j-i, int(s.from[i]), int(s.to[i]), &s.total, at+i)
		i = j
	}
}
