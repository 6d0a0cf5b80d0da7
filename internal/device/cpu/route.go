package cpu

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
)

// choose is the route of one row without allocation: logits → expert ids,
// ascending, and their weights, as ref.Route defines them.
func (m *moeBuffers) choose(a *graph.RouteAttr, logits, bias, per []float32, ids []int32, w []float32) {
	n := len(logits)
	s, choice := m.tmp[:n], m.tmp[n:2*n]
	for i, v := range logits {
		s[i] = float64(v)
	}
	switch a.Score {
	case "softmax":
		softmax(s)
	case "sigmoid":
		for i := range s {
			s[i] = 1 / (1 + math.Exp(-s[i]))
		}
	}
	copy(choice, s)
	for i := range bias {
		choice[i] += float64(bias[i])
	}
	if a.Groups > 1 {
		limitGroups(a, choice)
	}
	pick(choice, ids)
	weigh(a, s, per, ids, w)
}

// pick chooses the len(ids) largest, ties to the lower index, ascending by index.
func pick(choice []float64, ids []int32) {
	for j := range ids {
		best := -1
		for i, v := range choice {
			if !math.IsNaN(v) && (best < 0 || v > choice[best]) {
				best = i
			}
		}
		best = max(best, 0)
		ids[j], choice[best] = int32(best), math.NaN()
		for i := j; i > 0 && ids[i-1] > ids[i]; i-- {
			ids[i-1], ids[i] = ids[i], ids[i-1]
		}
	}
}

func weigh(a *graph.RouteAttr, s []float64, per []float32, ids []int32, w []float32) {
	top, sum := math.Inf(-1), 0.0
	for _, id := range ids {
		top = math.Max(top, s[id])
	}
	for _, id := range ids {
		switch p := &s[id]; {
		case a.ChosenSoftmax:
			*p = math.Exp(*p - top)
			sum += *p
		case a.ChosenSigmoid:
			*p = 1 / (1 + math.Exp(-*p))
		}
	}
	if a.ChosenSoftmax {
		for _, id := range ids {
			s[id] /= sum
		}
	}
	norm := 0.0
	for _, id := range ids {
		if a.NormPow > 0 {
			norm += math.Pow(math.Abs(s[id]), a.NormPow)
		} else {
			norm += s[id]
		}
	}
	if a.NormPow > 0 {
		norm = math.Pow(norm, 1/a.NormPow)
	}
	for j, id := range ids {
		p := s[id]
		if a.Renorm {
			p /= norm + a.RenormEps
		}
		if a.Scale != 0 {
			p *= a.Scale
		}
		if per != nil {
			p *= float64(per[id])
		}
		w[j] = float32(p)
	}
}

func softmax(s []float64) {
	top, sum := math.Inf(-1), 0.0
	for _, v := range s {
		top = math.Max(top, v)
	}
	for i := range s {
		s[i] = math.Exp(s[i] - top)
		sum += s[i]
	}
	for i := range s {
		s[i] /= sum
	}
}

// limitGroups gives the fill value to all but the best groups.
func limitGroups(a *graph.RouteAttr, choice []float64) {
	n := len(choice) / a.Groups
	for drop := a.Groups - a.TopGroups; drop > 0; drop-- {
		worst, low := -1, 0.0
		for g := a.Groups - 1; g >= 0; g-- {
			if v := groupScore(a, choice[g*n:(g+1)*n]); !math.IsNaN(v) && (worst < 0 || v < low) {
				worst, low = g, v
			}
		}
		for i := worst * n; worst >= 0 && i < (worst+1)*n; i++ {
			choice[i] = math.NaN()
		}
	}
	for i, v := range choice {
		if math.IsNaN(v) {
			choice[i] = a.GroupFill
		}
	}
}

func groupScore(a *graph.RouteAttr, part []float64) float64 {
	first, second := math.Inf(-1), math.Inf(-1)
	for _, v := range part {
		switch {
		case math.IsNaN(v):
			return v
		case v > first:
			first, second = v, first
		case v > second:
			second = v
		}
	}
	if a.GroupScore == "top2" && len(part) > 1 {
		return first + second
	}
	return first
}
