package ref

import (
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/graph"
)

func (m *Machine) norm(n *graph.Node, a *graph.NormAttr, x, out *Value) error {
	w, err := m.vector(a.W)
	if err != nil {
		return err
	}
	b, err := m.vector(a.B)
	if err != nil {
		return err
	}
	d := n.Shape[len(n.Shape)-1] / max(1, a.Groups)
	for t := 0; t < out.Rows; t++ {
		xr, yr := x.Row(t), out.Row(t)
		for o := 0; o < len(xr); o += d {
			normalise(a, xr[o:o+d], yr[o:o+d])
		}
		for i := range yr {
			y := float64(yr[i])
			if w != nil {
				y *= a.Offset + float64(w[i%len(w)])
			}
			if b != nil {
				y += float64(b[i%len(b)])
			}
			yr[i] = float32(y)
		}
	}
	return nil
}

func normalise(a *graph.NormAttr, x, y []float32) {
	mean, sq := 0.0, 0.0
	n := float64(len(x))
	if a.Kind == graph.Layer {
		for _, v := range x {
			mean += float64(v)
		}
		mean /= n
	}
	for _, v := range x {
		sq += (float64(v) - mean) * (float64(v) - mean)
	}
	if a.Kind != graph.L2 {
		sq /= n
	}
	r := 1 / math.Sqrt(sq+a.Eps)
	for i, v := range x {
		y[i] = float32((float64(v) - mean) * r)
	}
}

func (m *Machine) reduce(n *graph.Node, x, out *Value) error {
	shape := m.Graph.Nodes[n.In[0]].Shape
	d := shape[len(shape)-1]
	for t := 0; t < out.Rows; t++ {
		xr, yr := x.Row(t), out.Row(t)
		for o := 0; o*d < len(xr); o++ {
			part := xr[o*d : (o+1)*d]
			if n.Op == graph.OpSoftmax {
				softmax(yr[o*d:(o+1)*d], part)
				continue
			}
			v, err := fold(n.Attr.(*graph.ReduceAttr).F, part)
			if err != nil {
				return err
			}
			yr[o] = float32(v)
		}
	}
	return nil
}

func fold(f string, x []float32) (float64, error) {
	sum, sq, lo, hi := 0.0, 0.0, math.Inf(1), math.Inf(-1)
	for _, v := range x {
		sum += float64(v)
		lo, hi = math.Min(lo, float64(v)), math.Max(hi, float64(v))
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		sq += (float64(v) - mean) * (float64(v) - mean)
	}
	switch f {
	case "sum":
		return sum, nil
	case "mean":
		return mean, nil
	case "std":
		return math.Sqrt(sq / float64(len(x))), nil
	case "max":
		return hi, nil
	case "min":
		return lo, nil
	}
	return 0, fmt.Errorf("unknown reduction %q", f)
}

func softmax(y, x []float32) {
	top := math.Inf(-1)
	for _, v := range x {
		top = math.Max(top, float64(v))
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	for i, v := range x {
		y[i] = float32(math.Exp(float64(v)-top) / sum)
	}
}
