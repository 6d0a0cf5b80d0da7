package sample

import "math"

// FSD is "frustratingly simple decoding" (Yang et al., 2023): of the K likeliest
// tokens that with the largest (1−Alpha)·p − Alpha·q, where p is its probability
// and q what a model of n-grams of the text so far, backing off with Beta, says
// of it. There is no draw.
type FSD struct {
	Alpha  float64 // weight of the n-grams; 0: off. [0, 1]
	K      int     // candidates. [1, 1024]
	N      int     // length of the longest n-gram. [1, 16]
	Beta   float64 // weight of an order before the shorter ones. [0, 1]
	Random int     // of the first so many tokens of the answer each is drawn with probability 1/2 instead
}

// Limits of FSD; they bound the time of a token.
const (
	maxFSDCandidates = 1024
	maxFSDOrder      = 16
)

func (f *FSD) on() bool { return f.Alpha > 0 }

// fsdLeast is the least number of candidates and the least order: any where FSD is off.
func fsdLeast(f FSD) int {
	if f.on() {
		return 1
	}
	return 0
}

// contrast chooses a token by FSD. best is the largest logit.
func (s *Sampler) contrast(logits []float32, allowed Mask, best float32, temperature float64) (c []cand, id int32) {
	sc, f := s.memory(), &s.p.FSD
	var total float64
	if s.p.Pool > 0 {
		c = sc.likeliest(logits, allowed, s.p.Pool)
		total = weigh(c, logits, best, temperature)
		c = sc.first(c, f.K)
	} else {
		total = sc.sumBlocks(logits, allowed, best, inverse(temperature))
		c = sc.likeliest(logits, allowed, f.K)
	}
	weigh(c, logits, best, temperature)
	sc.repetition(c, s.said, f)
	top, most := c[0].id, math.Inf(-1)
	for i := range c {
		p := c[i].w / total
		c[i].w = p
		if len(s.said) >= f.N-1 {
			c[i].w = (1-f.Alpha)*p - f.Alpha*sc.penalty(i, f)
		}
		if c[i].w > most {
			top, most = c[i].id, c[i].w
		}
	}
	return c, top
}

// repetition counts in sc.counts how often each candidate follows the last
// tokens of text, by the number of tokens that agree: for each order from 0 to
// N−1 all that follow, then those that are a candidate. It reads the text once.
func (sc *Scratch) repetition(c []cand, text []int32, f *FSD) {
	width := 1 + len(c)
	if n := f.N * width; cap(sc.counts) < n {
		sc.counts = make([]int32, n)
	}
	sc.counts = sc.counts[:f.N*width]
	clear(sc.counts)
	last := len(text)
	for j, id := range text {
		which := place(c, id)
		for order := range f.N {
			if order > j || order > 0 && text[j-order] != text[last-order] {
				break
			}
			sc.counts[order*width]++
			if which >= 0 {
				sc.counts[order*width+1+which]++
			}
		}
	}
}

// place finds a candidate by its id; −1 if it is none. They lie in that order.
func place(c []cand, id int32) int {
	lo, hi := 0, len(c)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if c[m].id < id {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(c) && c[lo].id == id {
		return lo
	}
	return -1
}

// penalty is what the n-grams say of candidate i: orders in which it never
// followed are passed over, as in the authors' code.
func (sc *Scratch) penalty(i int, f *FSD) float64 {
	width := len(sc.counts) / f.N
	left, sum := 1.0, 0.0
	for order := f.N - 1; order >= 0; order-- {
		n, all := float64(sc.counts[order*width+1+i]), float64(sc.counts[order*width])
		if n == 0 {
			continue
		}
		if order == 0 {
			sum += left * n / all
		} else {
			sum += left * f.Beta * n / (all + 1)
		}
		left -= left * f.Beta
	}
	return sum
}
