package activations

import (
	"testing"

	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
)

// TestRowsInFront compares a value with the last rows of a reference that has
// others before them, where they agree, and says how many it has where they do not.
func TestRowsInFront(t *testing.T) {
	const rows, width, front = 3, 4, 2
	v := &ref.Value{Rows: rows, Width: width, Data: make([]float32, rows*width)}
	want := make([]float32, (front+rows)*width)
	for i := range v.Data {
		v.Data[i] = float32(1 + i)
		want[front*width+i] = v.Data[i]
	}
	c := &comparison{tol: 1e-4}
	m := Match{}
	if !c.measure(&m, v, want, []int{front + rows, width}, nil) || m.Rows != front+rows || m.Error != 0 {
		t.Errorf("%+v", m)
	}
	turned := make([]float32, len(want))
	for i := range front + rows {
		for j := range width {
			turned[j*(front+rows)+i] = want[i*width+j]
		}
	}
	m = Match{}
	if !c.measure(&m, v, turned, []int{width, front + rows}, nil) || m.Rows != front+rows || m.Error != 0 {
		t.Errorf("channels first: %+v", m)
	}
	want[front*width] += 7
	m = Match{}
	if c.measure(&m, v, want, []int{front + rows, width}, nil) || m.Rows != 0 {
		t.Errorf("what differs is taken for the value: %+v", m)
	}
	for shape, n := range map[[2]int]int{{5, width}: 5, {width, 5}: 0, {0, width}: 0} {
		if got := rowsOf(shape[:], width); got != n {
			t.Errorf("%v: %d rows", shape, got)
		}
	}
}

// TestPooledNodes knows which values are one row for all tokens.
func TestPooledNodes(t *testing.T) {
	b := graph.NewBuilder()
	add := func(n *graph.Node, err error) *graph.Node {
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	x := add(b.Add(graph.OpPositions, &graph.PositionsAttr{}, nil))
	one := add(b.Add(graph.OpPool, &graph.PoolAttr{How: "mean"}, nil, x))
	k := add(b.Const([]float64{2}, []int{}))
	head := add(b.Binary("mul", k, one))
	sum := add(b.Binary("add", x, head))
	state := add(b.Shift(head, 1))
	want := map[int]bool{one.ID: true, head.ID: true}
	for i, got := range b.G.Pooled() {
		if got != want[i] {
			t.Errorf("node %d: %v (the sum is %d, the shift %d)", i, got, sum.ID, state.ID)
		}
	}
}
