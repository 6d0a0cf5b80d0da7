package sample

import "math"

// block is the number of tokens whose weights are summed before they join the
// whole; it is the size of a word of a Mask.
const block = 64

// draw inverts the cumulative distribution in the order of token ids: it
// returns the first candidate at which the sum of weights passes target.
func draw(c []cand, target float64) int32 {
	sum, last := 0.0, c[0].id
	for i := range c {
		if sum += c[i].w; sum > target {
			return c[i].id
		}
		if c[i].w > 0 {
			last = c[i].id
		}
	}
	return last
}

// drawAll does the same over the whole vocabulary, without making candidates:
// weights are summed by block, and only those of the block in which the draw
// falls are computed again. best is the token with the largest logit.
func (sc *Scratch) drawAll(logits []float32, allowed Mask, best int32, temperature, u float64) int32 {
	scale := inverse(temperature)
	target := u * sc.sumBlocks(logits, allowed, logits[best], scale)
	sum, last := 0.0, best
	for b, w := range sc.blocks {
		if sum+w <= target {
			sum += w
			continue
		}
		for i := b * block; i < min((b+1)*block, len(logits)); i++ {
			if !allowed.Allowed(int32(i)) {
				continue
			}
			w := exp((float64(logits[i]) - float64(logits[best])) * scale)
			if sum += w; sum > target {
				return int32(i)
			}
			if w > 0 {
				last = int32(i)
			}
		}
		return last // the rounding of the sums differs
	}
	return last
}

// sumBlocks returns the sum of exp((logit-best)*scale) over the allowed tokens
// and leaves those of the blocks in sc.blocks.
func (sc *Scratch) sumBlocks(logits []float32, allowed Mask, best float32, scale float64) float64 {
	sc.blocks = sc.blocks[:0]
	total := 0.0
	for from := 0; from < len(logits); from += block {
		word := ^uint64(0)
		if allowed != nil {
			word = allowed[from/block]
		}
		sum := 0.0
		for _, l := range logits[from:min(from+block, len(logits))] {
			if word&1 != 0 {
				sum += exp((float64(l) - float64(best)) * scale)
			}
			word >>= 1
		}
		sc.blocks = append(sc.blocks, sum)
		total += sum
	}
	return total
}

// logSumExp returns the logarithm of the sum of exp(logit); best is the largest.
func (sc *Scratch) logSumExp(logits []float32, best float32) float64 {
	return float64(best) + math.Log(sc.sumBlocks(logits, nil, best, 1))
}

// inverse returns 1/temperature, kept finite: 0 times it must be 0.
func inverse(temperature float64) float64 {
	return min(1/temperature, math.MaxFloat64)
}
