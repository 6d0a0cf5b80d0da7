package sample

import (
	"math"
	"slices"
)

// refNext is the obvious sampler: full sorts, sums in the order of the ranks,
// nothing shared with the fast one but the generator. answer and prompt are the
// histories. near reports that a cut fell so close to its threshold, or the
// draw so close to a border, that rounding may decide otherwise.
func refNext(logits []float32, p Params, prompt, answer []int32, position, choice int, allowed Mask) (id int32, near bool) {
	l := refAdjust(logits, p, prompt, answer)
	ids := []int32{}
	for i := range l {
		if !math.IsInf(l[i], -1) && allowed.Allowed(int32(i)) {
			ids = append(ids, int32(i))
		}
	}
	byLogit := func(a, b int32) int {
		if l[a] != l[b] {
			if l[a] > l[b] {
				return -1
			}
			return 1
		}
		return int(a - b)
	}
	slices.SortFunc(ids, byLogit)
	if len(ids) == 0 {
		return -1, false
	}
	if p.Temperature == 0 {
		return ids[0], false
	}
	if p.TopK > 0 && p.TopK < len(ids) {
		ids = ids[:p.TopK]
	}
	ids, near = refTypical(ids, l, p.TypicalP)
	slices.SortFunc(ids, byLogit)
	ids, n := refMass(ids, refSoftmax(ids, l, 1), p.TopP)
	near = near || n
	if p.MinP > 0 {
		ids = slices.DeleteFunc(ids, func(id int32) bool {
			d := l[id] - l[ids[0]] - math.Log(p.MinP)
			near = near || math.Abs(d) < 1e-9
			return d < 0
		})
	}
	slices.Sort(ids)
	probs := refSoftmax(ids, l, p.Temperature)
	u, sum := Uniform(p.Seed, choice, position), 0.0
	for i, q := range probs {
		sum += q
		near = near || math.Abs(sum-u) < 1e-9
		if sum > u {
			return ids[i], near
		}
	}
	return ids[len(ids)-1], true
}

func refAdjust(logits []float32, p Params, prompt, answer []int32) []float64 {
	l := make([]float64, len(logits))
	for i := range l {
		l[i] = float64(logits[i])
	}
	all := append(slices.Clone(prompt), answer...)
	from := 0
	if p.PenaltyWindow > 0 {
		from = max(0, len(all)-p.PenaltyWindow)
	}
	inAll, inAnswer := map[int32]bool{}, map[int32]int{}
	for i, id := range all {
		if i >= from {
			inAll[id] = true
			if i >= len(prompt) {
				inAnswer[id]++
			}
		}
	}
	for id := range inAll {
		if l[id] > 0 {
			l[id] /= p.RepetitionPenalty
		} else {
			l[id] *= p.RepetitionPenalty
		}
		if n := inAnswer[id]; n > 0 {
			l[id] -= p.PresencePenalty + p.FrequencyPenalty*float64(n)
		}
		l[id] = float64(float32(l[id]))
	}
	for id, b := range p.LogitBias {
		l[id] = float64(float32(l[id] + float64(b)))
	}
	return l
}

func refSoftmax(ids []int32, l []float64, temperature float64) []float64 {
	best, sum := math.Inf(-1), 0.0
	for _, id := range ids {
		best = max(best, l[id])
	}
	q := make([]float64, len(ids))
	for i, id := range ids {
		q[i] = math.Exp((l[id] - best) / temperature)
		sum += q[i]
	}
	for i := range q {
		q[i] /= sum
	}
	return q
}

// refMass keeps the shortest prefix of ids with a probability of at least need.
func refMass(ids []int32, probs []float64, need float64) (kept []int32, near bool) {
	if need >= 1 {
		return ids, false
	}
	sum := 0.0
	for i, q := range probs {
		sum += q
		near = near || math.Abs(sum-need) < 1e-9
		if sum >= need {
			return ids[:i+1], near
		}
	}
	return ids, true
}

func refTypical(ids []int32, l []float64, mass float64) (kept []int32, near bool) {
	if mass >= 1 {
		return ids, false
	}
	probs := refSoftmax(ids, l, 1)
	entropy := 0.0
	for _, q := range probs {
		if q > 0 {
			entropy -= q * math.Log(q)
		}
	}
	type scored struct {
		id   int32
		q, d float64
	}
	s := make([]scored, len(ids))
	for i, id := range ids {
		s[i] = scored{id, probs[i], math.Abs(-math.Log(probs[i]) - entropy)}
	}
	slices.SortFunc(s, func(a, b scored) int {
		if math.Abs(a.d-b.d) < 1e-5*(1+a.d) && a.id != b.id {
			near = true // ranks are float32; rounding may swap these
		}
		if a.d < b.d || (a.d == b.d && a.id < b.id) {
			return -1
		}
		return 1
	})
	ids, probs = nil, nil
	for _, x := range s {
		ids, probs = append(ids, x.id), append(probs, x.q)
	}
	kept, n := refMass(ids, probs, mass)
	return kept, near || n
}
