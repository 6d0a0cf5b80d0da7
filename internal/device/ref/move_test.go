package ref

import (
	"math"
	"strings"
	"testing"
)

// TestGatherIndices: what is no place in a row is refused by its value.
func TestGatherIndices(t *testing.T) {
	for x, want := range map[float64]string{
		0: "", 3: "", 0.5: "0.5 is no whole number", -0.5: "-0.5 is no whole number", -1: "-1 is outside 0 … 3", 4: "4 is outside",
		math.NaN(): "NaN is no whole number", 1e30: "is outside 0 … 3", math.Inf(1): "+Inf is outside",
	} {
		row := &Value{Rows: 1, Width: 4, Data: []float32{5, 6, 7, 8}}
		at, out := &Value{Rows: 1, Width: 1, Data: []float32{float32(x)}}, &Value{Rows: 1, Width: 1, Data: make([]float32, 1)}
		err := gather(4, row, at, out)
		if want == "" {
			if err != nil || out.Data[0] != row.Data[int(x)] {
				t.Errorf("%v: %v, %v", x, out.Data, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", x, err, want)
		}
	}
}
