package ref

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/inferflow/inferflow/internal/graph"
)

// move evaluates the operations that only place values.
func (m *Machine) move(n *graph.Node, in []*Value, out *Value) error {
	shape := m.Graph.Nodes[n.In[0]].Shape
	switch n.Op {
	case graph.OpTranspose:
		place(permutation(shape, n.Attr.(*graph.TransposeAttr).Perm), in[0], out)
	case graph.OpSlice:
		a := n.Attr.(*graph.SliceAttr)
		place(sliced(shape, a), in[0], out)
	case graph.OpConcat:
		m.concat(n, in, out)
	case graph.OpGather:
		return gather(shape[len(shape)-1], in[0], in[1], out)
	}
	return nil
}

func place(idx []int, x, out *Value) {
	for t := 0; t < out.Rows; t++ {
		xr, yr := x.Row(t), out.Row(t)
		for i, k := range idx {
			yr[i] = xr[k]
		}
	}
}

func strides(shape []int) []int {
	st := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		st[i] = n
		n *= shape[i]
	}
	return st
}

func permutation(shape, perm []int) []int {
	st := strides(shape)
	idx := make([]int, graph.Product(shape))
	for i := range idx {
		r, k := i, 0
		for d := len(perm) - 1; d >= 0; d-- {
			k += r % shape[perm[d]] * st[perm[d]]
			r /= shape[perm[d]]
		}
		idx[i] = k
	}
	return idx
}

func sliced(shape []int, a *graph.SliceAttr) []int {
	inner := strides(shape)[a.Axis]
	outer := graph.Product(shape[:a.Axis])
	var idx []int
	for o := 0; o < outer; o++ {
		for i := a.From; i < a.To; i += a.Step {
			for k := 0; k < inner; k++ {
				idx = append(idx, (o*shape[a.Axis]+i)*inner+k)
			}
		}
	}
	return idx
}

func (m *Machine) concat(n *graph.Node, in []*Value, out *Value) {
	axis := n.Attr.(*graph.ConcatAttr).Axis
	outer := graph.Product(n.Shape[:axis])
	for t := 0; t < out.Rows; t++ {
		y, at := out.Row(t), 0
		for o := 0; o < outer; o++ {
			for _, v := range in {
				w := v.Width / outer
				at += copy(y[at:], v.Row(t)[o*w:(o+1)*w])
			}
		}
	}
}

// gather takes from each run of n numbers those at the indices of its own.
func gather(n int, x, idx, out *Value) error {
	if x.Width == 0 || out.Width == 0 {
		return nil
	}
	per := out.Width / (x.Width / n)
	for t := 0; t < out.Rows; t++ {
		xr, ir, yr := x.Row(t), idx.Row(t), out.Row(t)
		for i := range yr {
			x := float64(ir[i])
			if x != math.Trunc(x) {
				return fmt.Errorf("gather: index %v is no whole number: floor(x) makes one", x)
			}
			if !(x >= 0 && x < float64(n)) {
				return fmt.Errorf("gather: index %v is outside 0 … %d", x, n-1)
			}
			k := int(x)
			yr[i] = xr[i/per*n+k]
		}
	}
	return nil
}

// order writes for each run of n numbers their places, the largest first; what is
// no number comes last.
func order(n int, x, out *Value) {
	if n == 0 {
		return
	}
	places := make([]int, n)
	for t := 0; t < out.Rows; t++ {
		for at := 0; at < out.Width; at += n {
			row := x.Row(t)[at : at+n]
			for i := range places {
				places[i] = i
			}
			slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(row[b], row[a]) }) // NaN is the least
			for i, p := range places {
				out.Row(t)[at+i] = float32(p)
			}
		}
	}
}
