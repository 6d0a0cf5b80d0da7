package activations

import (
	"math"
	"testing"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
)

// TestNoNumbers: what is no number on one side only differs; on both it is counted.
func TestNoNumbers(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		got, want [4]float32
		differs   bool
		unknown   int
	}{
		"reference NaN":  {[4]float32{1, 2, 3, 4}, [4]float32{1, nan, 3, 4}, true, 0},
		"all NaN there":  {[4]float32{1, 2, 3, 4}, [4]float32{nan, nan, nan, nan}, true, 0},
		"NaN here":       {[4]float32{1, nan, 3, 4}, [4]float32{1, 2, 3, 4}, true, 0},
		"both NaN":       {[4]float32{1, nan, 3, 4}, [4]float32{1, nan, 3, 4}, false, 1},
		"infinite there": {[4]float32{1, 2, 3, 4}, [4]float32{1, inf, 3, 4}, true, 0},
		"infinite here":  {[4]float32{1, inf, 3, 4}, [4]float32{1, 2, 3, 4}, true, 0},
		"both infinite":  {[4]float32{1, inf, 3, 4}, [4]float32{1, inf, 3, 4}, false, 0},
		"beside one":     {[4]float32{1, inf, 3, 4}, [4]float32{1, inf, 9, 4}, true, 0},
	} {
		v := &ref.Value{Rows: 2, Width: 2, Data: c.got[:]}
		cmp, m := &comparison{tol: 1e-4}, Match{}
		if !cmp.measure(&m, v, c.want[:], []int{2, 2}, nil) {
			t.Fatalf("%s: does not fit", name)
		}
		if differs := m.Error > cmp.tol; differs != c.differs || m.Unknown != c.unknown || math.IsNaN(m.Error) {
			t.Errorf("%s: error %g, %d unknown", name, m.Error, m.Unknown)
		}
	}
}

// TestUndecided: a value with NaN on both sides is neither agreement nor a
// difference, and what is computed from it is not computed from one that agrees.
func TestUndecided(t *testing.T) {
	g := &graph.Graph{Nodes: []*graph.Node{{ID: 0, Line: graph.Line{Line: 1}}, {ID: 1, In: []int{0}, Line: graph.Line{Line: 2}}}}
	c := &comparison{tol: 1e-4, r: &Reference{file: &safetensors.File{}}, rep: &Report{Matches: []Match{{Name: "a", Unknown: 3}, {Name: "b", node: 1, asked: 1, Error: 1}}}}
	c.finish(g)
	if m := c.rep.Undecided(); m == nil || m.Name != "a" {
		t.Errorf("undecided: %v", m)
	}
	if d := c.rep.First; d == nil || d.Name != "b" || len(d.Agrees) > 0 {
		t.Errorf("first difference %+v", d)
	}
}
