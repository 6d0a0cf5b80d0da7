package sample

import "math"

// Mirostat keeps the surprise of the tokens, in bits, near a target. (Basu et
// al., "Mirostat: a neural text decoding algorithm that directly controls
// perplexity", 2021.) The surprise of a chosen token is that among the tokens
// that were kept, as llama.cpp takes it.
type Mirostat struct {
	Version int     // 1 or 2; 0: off
	Tau     float64 // the target, in bits. [0, 100]
	Eta     float64 // how fast the bound follows it. [0, 100]
}

// headTokens is how many of the likeliest tokens version 1 estimates the slope
// of the distribution from.
const headTokens = 100

// mirostat keeps the candidates that the bound mu allows, with their weights at
// the temperature, and returns their sum. best is the largest logit.
func (s *Sampler) mirostat(logits []float32, allowed Mask, best float32, temperature float64) (c []cand, total float64) {
	sc := s.memory()
	if s.p.Mirostat.Version == 1 {
		n := s.vocab
		if s.p.Pool > 0 {
			n = s.p.Pool
		}
		head := sc.likeliest(logits, allowed, min(headTokens, n))
		c = sc.likeliest(logits, allowed, min(sc.zipf(head, logits, temperature, s.mu, s.vocab), n))
		return c, weigh(c, logits, best, temperature)
	}
	if s.p.Pool > 0 {
		c = sc.likeliest(logits, allowed, s.p.Pool)
		total = weigh(c, logits, best, temperature)
	} else {
		total = sc.sumBlocks(logits, allowed, best, inverse(temperature))
		// The rounding down makes room for that of the weights.
		floor := float32(float64(best) + temperature*(math.Log(total)-s.mu*math.Ln2))
		c = sc.gather(logits, allowed, descending(math.Nextafter32(max(-math.MaxFloat32, min(floor, best)), float32(math.Inf(-1)))))
		weigh(c, logits, best, temperature)
	}
	least := total * math.Exp2(-s.mu)
	kept, sum := c[:0], 0.0
	for _, x := range c {
		if x.w >= least || x.w == 1 && least > 1 { // the likeliest always stays
			kept, sum = append(kept, x), sum+x.w
		}
	}
	if least > 1 {
		return kept[:1], kept[0].w
	}
	return kept, sum
}

// zipf is the number of likeliest tokens that version 1 keeps: it estimates the
// exponent of a power law from the candidates and solves for the surprise mu.
func (sc *Scratch) zipf(c []cand, logits []float32, temperature, mu float64, vocab int) int {
	sorted := sc.sort(c)
	if len(sorted) < 2 {
		return 1
	}
	tb, tt := 0.0, 0.0
	for i := range len(sorted) - 1 {
		t := math.Log(float64(i+2) / float64(i+1))
		b := (float64(logits[sorted[i].id]) - float64(logits[sorted[i+1].id])) * inverse(temperature)
		tb, tt = tb+t*b, tt+t*t
	}
	slope := tb / tt
	e := slope - 1
	share := 1 / math.Log(float64(vocab)) // the limit where e is 0
	if math.Abs(e) > 1e-9 {
		share = e / (1 - math.Pow(float64(vocab), -e))
	}
	switch k := math.Pow(share*math.Exp2(mu), 1/slope); {
	case k >= float64(vocab):
		return vocab
	case k >= 1:
		return int(k)
	default: // below 1, or no number
		return 1
	}
}

// surprise is that of a candidate, in bits, among those whose weights sum to total.
func surprise(c []cand, id int32, total float64) float64 {
	for i := range c {
		if c[i].id == id && c[i].w > 0 {
			return -math.Log2(c[i].w / total)
		}
	}
	return 0
}

// observe moves the bound by the surprise of a token of the answer.
func (s *Sampler) observe(bits float64) {
	m := s.p.Mirostat
	s.mu = max(-maxBound, min(maxBound, s.mu-m.Eta*(bits-m.Tau)))
}

// maxBound keeps the bound a number, whatever the rate.
const maxBound = 1e6
