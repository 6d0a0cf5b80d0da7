package ref

import (
	"cmp"
	"math"
	"slices"

	"github.com/inferflow/inferflow/internal/graph"
)

// weights turns the scores of head h into weights that are still to be divided
// by sum; last is what an open attention ends with.
func (s *seenRow) weights(p []float64, h int) (last float32, sum float64) {
	switch s.a.Score {
	case "":
		return s.softmax(p, h)
	case graph.ScoreSticks:
		left := 0.0
		for i := len(p) - 1; i >= 0; i-- {
			x := p[i]
			p[i] = math.Exp(left - softplus(-x))
			left -= softplus(x)
		}
		return float32(left), 1
	case graph.ScoreNone:
		return 0, 1
	case graph.ScoreSparsemax, graph.ScoreEntmax:
		sparse(p, s.a.Score == graph.ScoreEntmax)
		return 0, 1
	}
	f := plain[s.a.Score]
	for i, x := range p {
		p[i] = f(x)
	}
	return 0, 1
}

// sparse is the sparsemax, or with halves the 1.5-entmax, by the algorithms of
// their papers.
func sparse(p []float64, halves bool) {
	if len(p) == 0 {
		return
	}
	top, power := slices.Max(p), 1.0
	if halves {
		power = 2
	}
	for i := range p {
		p[i] = (p[i] - top) / power
	}
	sorted := slices.Clone(p)
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(b, a) })
	limit, sum, squares := 0.0, 0.0, 0.0
	for i, x := range sorted {
		k := float64(i + 1)
		sum, squares = sum+x, squares+x*x
		if !halves && 1+k*x > sum {
			limit = (sum - 1) / k
		}
		if mean := sum / k; halves {
			if t := mean - math.Sqrt(math.Max(0, (1-k*(squares/k-mean*mean))/k)); t <= x {
				limit = t
			}
		}
	}
	for i, x := range p {
		p[i] = math.Pow(math.Max(x-limit, 0), power)
	}
}

// softmax leaves exp(score − top) in p.
func (s *seenRow) softmax(p []float64, h int) (last float32, sum float64) {
	top := math.Inf(-1)
	if s.sinks != nil {
		top = float64(s.sinks[h])
	}
	for _, x := range p {
		top = math.Max(top, x)
	}
	if s.sinks != nil {
		sum = math.Exp(float64(s.sinks[h]) - top)
	}
	for j := range p {
		p[j] = math.Exp(p[j] - top)
		sum += p[j]
	}
	if s.a.Open {
		last = logSum(top, sum)
	}
	return last, sum
}

// count adds to each score what the query has for the key's position, counted
// by gates from the query back.
func (s *seenRow) count(p []float64, h int) {
	n := len(s.ofQuery) / s.a.Heads
	table, at := s.ofQuery[h*n:(h+1)*n], 0.0
	for i := len(p) - 1; i >= 0; i-- {
		at += sigmoid(p[i])
		p[i] += Between(table, at)
	}
}

// Between is a table's value at a place between two of its entries, on the
// straight line; beyond the last entry that of the last.
func Between(table []float32, at float64) float64 {
	at = math.Min(at, float64(len(table)-1))
	low := math.Floor(at)
	part := at - low
	if part == 0 {
		return float64(table[int(low)])
	}
	return float64(table[int(low)])*(1-part) + float64(table[int(low)+1])*part
}

// fade adds to each score the logarithms of the gates of the later keys that are
// seen, which are the last component of the keys of head g.
func (s *seenRow) fade(p []float64, g int) {
	sum, dk := 0.0, s.c.KeyDim
	for i := len(p) - 1; i >= 0; i-- {
		p[i] += sum
		sum += float64(s.k[(s.at[i]*s.c.Heads+g+1)*dk-1])
	}
}
