package weight

import (
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

// TestRandomExpressions holds expressions over tensors of zero to four
// dimensions, empty ones among them, against their definition.
func TestRandomExpressions(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for n := range 4000 {
		s := shelf{}
		shape := make([]int, rng.IntN(5))
		for i := range shape {
			if shape[i] = 1 + rng.IntN(4); rng.IntN(24) == 0 {
				shape[i] = 0
			}
		}
		typ := []quant.Type{quant.F32, quant.F16}[n%2]
		w := s.put(t, "a", typ, 0, shape...)
		b := s.put(t, "b", typ, 100, shape...)
		for range 1 + rng.IntN(4) {
			if next := randomStep(rng, w, b); next != nil {
				w, b = next, graph.Tensor("none", nil)
			}
		}
		r, err := Resolve(s, w)
		if err != nil {
			t.Fatalf("%s %v: %v", w, w.Shape, err)
		}
		check(t, s, w, r.Type)
	}
}

// randomStep is an operation on w; nil where it does not fit. b is a second
// weight of w's shape or one without a tensor.
func randomStep(rng *rand.Rand, w, b *graph.Weight) *graph.Weight {
	axis := 0
	if len(w.Shape) > 0 {
		axis = rng.IntN(len(w.Shape))
	}
	second := w
	if b.Name != "none" {
		second = b
	}
	var out *graph.Weight
	var err error
	switch rng.IntN(8) {
	case 0:
		out, err = graph.StackWeights(w, second, w)
	case 1:
		if w.Op == graph.WTensor {
			out, err = graph.StackTensors([]string{w.Name, second.Name}, w.Shape)
		}
	case 2:
		out, err = graph.ConcatWeights(axis, w, second)
	case 3:
		out, err = graph.TransposeWeight(w, rng.Perm(len(w.Shape)))
	case 4:
		if len(w.Shape) > 0 {
			out, err = graph.PermuteWeight(w, axis, rng.Perm(w.Shape[axis]))
		}
	case 5:
		if len(w.Shape) > 0 && w.Shape[axis] > 0 {
			from := rng.IntN(w.Shape[axis])
			out, err = graph.SliceWeight(w, axis, from, from+1+rng.IntN(w.Shape[axis]-from), 1+rng.IntN(2))
		}
	case 6:
		out, err = graph.ReshapeWeight(w, randomShape(rng, graph.Product(w.Shape)))
	case 7:
		out, err = graph.AffineWeight(w, 2, 1)
	}
	if err != nil {
		return nil
	}
	return out
}

// randomShape is a shape of n elements.
func randomShape(rng *rand.Rand, n int) []int {
	var shape []int
	for n > 1 {
		d := 1 + rng.IntN(n)
		if n%d == 0 {
			shape = append(shape, d)
			n /= d
		}
	}
	if n == 0 || rng.IntN(3) == 0 {
		shape = append(shape, n)
	}
	return shape
}
