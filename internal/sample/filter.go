package sample

import "math"

// cand is a token that is still a candidate. Every filter keeps candidates in
// the order of their ids, and ties are won by the lower id.
type cand struct {
	w   float64 // weight: a probability times a constant
	id  int32
	key uint32 // rank: the lower the better
}

// Scratch holds the memory that choosing one token takes: at most 20 bytes a
// token of the vocabulary, 52 with tail-free sampling, usually much less. Samplers that are used one after
// the other by one goroutine may share it (Sampler.Share), so that it exists
// once and not once a request.
type Scratch struct {
	cands  []cand
	sorted []cand // a copy of them by rank
	counts []int32
	logits []float32
	blocks []float64
	hist   [1 << 11]float64
}

// gather makes candidates of the allowed tokens that are not excluded by -Inf
// and rank at or before limit.
func (sc *Scratch) gather(logits []float32, allowed Mask, limit uint32) []cand {
	c := sc.cands[:0]
	for i, l := range logits {
		if key := descending(l); key <= limit && l >= -math.MaxFloat32 && allowed.Allowed(int32(i)) {
			c = append(c, cand{id: int32(i), key: key})
		}
	}
	sc.cands = c[:0]
	return c
}

// bound returns a rank that no candidate kept by the filters lies behind, found
// without making candidates of the whole vocabulary; best is the largest logit.
// If top-p is the first filter, total is the sum of all weights, else 0.
func (sc *Scratch) bound(logits []float32, allowed Mask, best float32, p *Params) (limit uint32, total float64) {
	switch {
	case p.Pool > 0:
		return sc.rank(logits, allowed, p.Pool), 0
	case p.TopK > 0:
		return sc.rank(logits, allowed, p.TopK), 0
	case p.TypicalP < 1 || p.TailFree < 1:
		return math.MaxUint32, 0
	case p.TopP < 1:
		clear(sc.hist[:])
		for i, l := range logits {
			if l >= -math.MaxFloat32 && allowed.Allowed(int32(i)) {
				w := exp(float64(l) - float64(best))
				sc.hist[descending(l)>>rankShift] += w
				total += w
			}
		}
		return sc.reach(p.TopP * total), total
	default: // min-p alone; the rounding down makes room for that of the floor
		floor := float32(float64(best) + math.Log(p.MinP))
		return descending(math.Nextafter32(floor, float32(math.Inf(-1)))), 0
	}
}

// rank returns a rank that none of the n likeliest tokens lies behind.
func (sc *Scratch) rank(logits []float32, allowed Mask, n int) uint32 {
	clear(sc.hist[:])
	for i, l := range logits {
		if l >= -math.MaxFloat32 && allowed.Allowed(int32(i)) {
			sc.hist[descending(l)>>rankShift]++
		}
	}
	return sc.reach(float64(n))
}

// likeliest makes candidates of the n likeliest tokens that are allowed.
func (sc *Scratch) likeliest(logits []float32, allowed Mask, n int) []cand {
	return sc.first(sc.gather(logits, allowed, sc.rank(logits, allowed, n)), n)
}

// first keeps the n candidates that rank first; 0 keeps all.
func (sc *Scratch) first(c []cand, n int) []cand {
	if n <= 0 || n >= len(c) {
		return c
	}
	for i := range c {
		c[i].w = 1
	}
	return sc.cut(c, float64(n))
}

// rankShift leaves the first digit of a rank, as cut divides it.
const rankShift = 21

// reach returns the last rank of the bucket in which the weights reach need.
func (sc *Scratch) reach(need float64) uint32 {
	sum := 0.0
	for b := range sc.hist {
		if sum += sc.hist[b]; sum >= need {
			return uint32(b)<<rankShift | (1<<rankShift - 1)
		}
	}
	return math.MaxUint32
}

// filter applies top-k, tail-free, typical, top-p and min-p in this order to the
// tokens that are allowed; best is the largest logit among them. With a pool
// that stands in the place of top-k, which comes last.
func (sc *Scratch) filter(logits []float32, allowed Mask, best float32, p *Params) []cand {
	limit, whole := sc.bound(logits, allowed, best, p)
	c := sc.gather(logits, allowed, limit)
	head, last := p.TopK, 0
	if p.Pool > 0 {
		head, last = p.Pool, p.TopK
	}
	c = sc.first(c, head)
	if p.TailFree < 1 {
		c = sc.first(c, sc.tailFree(c, logits, p.TailFree))
	}
	if p.TypicalP < 1 {
		total := sc.typicality(c, logits)
		c = sc.cut(c, p.TypicalP*total)
		rerank(c, logits)
	}
	if p.TopP < 1 {
		total := weigh(c, logits, largest(c, logits), 1)
		if whole > 0 {
			total = whole
		}
		c = sc.cut(c, p.TopP*total)
	}
	if p.MinP > 0 {
		floor := float64(largest(c, logits)) + math.Log(p.MinP)
		kept := c[:0]
		for _, x := range c {
			if float64(logits[x.id]) >= floor {
				kept = append(kept, x)
			}
		}
		c = kept
	}
	return sc.first(c, last)
}

// rerank ranks candidates by their logits again.
func rerank(c []cand, logits []float32) {
	for i := range c {
		c[i].key = descending(logits[c[i].id])
	}
}

func largest(c []cand, logits []float32) float32 {
	best := float32(math.Inf(-1))
	for i := range c {
		best = max(best, logits[c[i].id])
	}
	return best
}

// weigh sets each weight to exp((logit-best)/temperature) and returns the sum.
func weigh(c []cand, logits []float32, best float32, temperature float64) float64 {
	scale, total := inverse(temperature), 0.0
	for i := range c {
		c[i].w = exp((float64(logits[c[i].id]) - float64(best)) * scale)
		total += c[i].w
	}
	return total
}

// typicality sets the weights and ranks each candidate by the distance of its
// surprise from the entropy. It returns the sum of the weights.
func (sc *Scratch) typicality(c []cand, logits []float32) float64 {
	best := largest(c, logits)
	total := weigh(c, logits, best, 1)
	logTotal := math.Log(total)
	entropy := 0.0
	for _, x := range c {
		if x.w > 0 {
			entropy -= x.w / total * (float64(logits[x.id]) - float64(best) - logTotal)
		}
	}
	for i := range c {
		surprise := logTotal - (float64(logits[c[i].id]) - float64(best))
		// The bits of a float that is not negative are ordered as it is.
		c[i].key = math.Float32bits(float32(math.Abs(surprise - entropy)))
	}
	return total
}

// descending maps a logit to a rank: a larger logit has a lower rank, and both
// zeros have the same.
func descending(l float32) uint32 {
	b := math.Float32bits(l + 0) // -0 + 0 is +0
	negative := uint32(int32(b) >> 31)
	return b ^ (math.MaxInt32 &^ negative)
}

// cut keeps the smallest set of the best-ranked candidates whose weights sum to
// at least need (all of them where rounding keeps the sum below). It finds the
// rank of the last one kept by a radix search over the bits of the ranks, so
// that its time is linear whatever the logits are, and no sort is needed.
func (sc *Scratch) cut(c []cand, need float64) []cand {
	var prefix, decided uint32 // the leading bits of the rank sought, and which
	sum := 0.0                 // weight of all ranks below prefix
	for _, digit := range [3]struct{ shift, width uint }{{rankShift, 11}, {10, 11}, {0, 10}} {
		hist := sc.hist[:1<<digit.width]
		clear(hist)
		low := uint32(len(hist) - 1)
		for i := range c {
			if c[i].key&decided == prefix {
				hist[c[i].key>>digit.shift&low] += c[i].w
			}
		}
		// Where rounding lets no bucket reach need, the last one is taken.
		b := 0
		for b < len(hist)-1 && sum+hist[b] < need {
			sum += hist[b]
			b++
		}
		prefix |= uint32(b) << digit.shift
		decided |= low << digit.shift
	}
	kept := c[:0]
	for _, x := range c {
		if x.key == prefix && sum < need {
			sum += x.w
			kept = append(kept, x)
		} else if x.key < prefix {
			kept = append(kept, x)
		}
	}
	return kept
}
