package ref

import (
	"fmt"
	"math"
	"sort"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/weight"
)

func (m *Machine) route(a *graph.RouteAttr, x, out *Value) error {
	bias, err := m.vector(a.Bias)
	if err != nil {
		return err
	}
	per, err := m.vector(a.PerExpert)
	if err != nil {
		return err
	}
	out.Idx = make([]int32, out.Rows*a.TopK)
	for t := 0; t < out.Rows; t++ {
		if err := Route(a, x.Row(t), bias, per, out.Idx[t*a.TopK:(t+1)*a.TopK], out.Row(t)); err != nil {
			return err
		}
	}
	return nil
}

// Route chooses the experts of one row: logits [E] → idx [k] ascending by id,
// with their weights w [k].
func Route(a *graph.RouteAttr, logits, bias, per []float32, idx []int32, w []float32) error {
	s := make([]float64, len(logits))
	for i, v := range logits {
		s[i] = float64(v)
	}
	switch a.Score {
	case "softmax":
		softmax64(s)
	case "sigmoid":
		for i := range s {
			s[i] = sigmoid(s[i])
		}
	case "none", "":
	default:
		return fmt.Errorf("unknown router score %q", a.Score)
	}
	choice := append([]float64{}, s...)
	for i := range bias {
		choice[i] += float64(bias[i])
	}
	if a.Groups > 1 {
		limitGroups(a, choice)
	}
	order := make([]int, len(s))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return choice[order[i]] > choice[order[j]] })
	chosen := order[:len(idx)]
	sort.Ints(chosen)
	p := make([]float64, len(chosen))
	for i, e := range chosen {
		idx[i], p[i] = int32(e), s[e]
	}
	weigh(a, p)
	for i, e := range chosen {
		if per != nil {
			p[i] *= float64(per[e])
		}
		w[i] = float32(p[i])
	}
	return nil
}

func weigh(a *graph.RouteAttr, p []float64) {
	if a.ChosenSoftmax {
		softmax64(p)
	}
	sum := 0.0
	for i := range p {
		if a.ChosenSigmoid {
			p[i] = sigmoid(p[i])
		}
		if a.NormPow > 0 {
			sum += math.Pow(math.Abs(p[i]), a.NormPow)
		} else {
			sum += p[i]
		}
	}
	if a.NormPow > 0 {
		sum = math.Pow(sum, 1/a.NormPow)
	}
	for i := range p {
		if a.Renorm {
			p[i] /= sum + a.RenormEps
		}
		if a.Scale != 0 {
			p[i] *= a.Scale
		}
	}
}

func softmax64(s []float64) {
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

func limitGroups(a *graph.RouteAttr, choice []float64) {
	n := len(choice) / a.Groups
	score := make([]float64, a.Groups)
	order := make([]int, a.Groups)
	for g := range score {
		part := append([]float64{}, choice[g*n:(g+1)*n]...)
		sort.Sort(sort.Reverse(sort.Float64Slice(part)))
		score[g] = part[0]
		if a.GroupScore == "top2" && n > 1 {
			score[g] += part[1]
		}
		order[g] = g
	}
	sort.SliceStable(order, func(i, j int) bool { return score[order[i]] > score[order[j]] })
	for _, g := range order[a.TopGroups:] {
		for i := g * n; i < (g+1)*n; i++ {
			choice[i] = a.GroupFill
		}
	}
}

// Activate applies the expert's activation: gate and up → hidden, in place of up.
func Activate(a *graph.ExpertsAttr, gate, up []float32) error {
	if a.Act == "swiglu_clamp" {
		for i := range up {
			g := math.Min(float64(gate[i]), a.Limit)
			u := math.Min(math.Max(float64(up[i]), -a.Limit), a.Limit)
			up[i] = float32((u + 1) * g * sigmoid(a.Alpha*g))
		}
		return nil
	}
	f, err := Unary(&graph.UnaryAttr{F: a.Act})
	if err != nil {
		return err
	}
	for i := range up {
		if gate == nil {
			up[i] = float32(f(float64(up[i])))
			continue
		}
		g, u := float64(gate[i]), float64(up[i])
		if a.Limit > 0 {
			g, u = math.Min(g, a.Limit), math.Min(math.Max(u, -a.Limit), a.Limit)
		}
		up[i] = float32(f(g) * u)
	}
	return nil
}

type expertWeights struct {
	gate, up, down    *weight.Rows
	bGate, bUp, bDown []float32
}

func (m *Machine) expertWeights(a *graph.ExpertsAttr) (w expertWeights, err error) {
	for _, p := range []struct {
		w *graph.Weight
		r **weight.Rows
	}{{a.Gate, &w.gate}, {a.Up, &w.up}, {a.Down, &w.down}} {
		if p.w == nil {
			continue
		}
		if *p.r, err = m.matrix(p.w); err != nil {
			return w, err
		}
	}
	for _, p := range []struct {
		w *graph.Weight
		v *[]float32
	}{{a.GateBias, &w.bGate}, {a.UpBias, &w.bUp}, {a.DownBias, &w.bDown}} {
		if *p.v, err = m.vector(p.w); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (m *Machine) experts(a *graph.ExpertsAttr, in []*Value, out *Value) error {
	w, err := m.expertWeights(a)
	if err != nil {
		return err
	}
	return m.parallel(out.Rows, func(from, to int) error {
		for t := from; t < to; t++ {
			sum := make([]float64, out.Width)
			for j, id := range in[1].chosen(t) {
				if err := oneExpert(a, w, in[0].Row(t), int(id), in[1].Row(t)[j], sum); err != nil {
					return err
				}
			}
			for i, v := range sum {
				out.Row(t)[i] = float32(v)
			}
		}
		return nil
	})
}

// oneExpert adds an expert's weighted output to sum. Ids at or beyond the
// stored experts are identities.
func oneExpert(a *graph.ExpertsAttr, w expertWeights, x []float32, e int, weight float32, sum []float64) error {
	if e >= a.Experts {
		for i, v := range x {
			sum[i] += float64(weight) * float64(v)
		}
		return nil
	}
	scale := float64(weight)
	if a.WeightInput {
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = v * weight
		}
		x, scale = y, 1
	}
	hidden := w.up.Shape[1]
	buf := make([]float32, max(len(x), hidden))
	up, y := make([]float32, hidden), make([]float32, len(sum))
	var gate []float32
	if w.gate != nil {
		gate = make([]float32, hidden)
		if err := matvec(w.gate, e, x, buf, w.bGate, gate); err != nil {
			return err
		}
	}
	if err := matvec(w.up, e, x, buf, w.bUp, up); err != nil {
		return err
	}
	if err := Activate(a, gate, up); err != nil {
		return err
	}
	if err := matvec(w.down, e, up, buf, w.bDown, y); err != nil {
		return err
	}
	for i, v := range y {
		sum[i] += scale * float64(v)
	}
	return nil
}
