package weight

import (
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestScale multiplies blocks of 8-bit floats, the last of a side smaller, and
// takes a row and a column out of the product.
func TestScale(t *testing.T) {
	s := shelf{}
	codes := []byte{0x38, 0x40, 0xb8, 0x30, 0x44, 0x38} // 1 2 −1 0.5 3 1
	data := make([]byte, 2*3*5)
	for i := range data {
		data[i] = codes[i%len(codes)]
	}
	s["w"] = tensor.View{Name: "w", Type: quant.F8_E4M3, Shape: []int{2, 3, 5}, Data: data}
	f := s.put(t, "f", quant.BF16, 1, 2, 2, 3)
	w := must(t)(graph.ScaleWeight(graph.Tensor("w", []int{2, 3, 5}), f, 2, 2))
	r, err := Resolve(s, w)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.All()
	if err != nil {
		t.Fatal(err)
	}
	values := []float32{1, 2, -1, 0.5, 3, 1}
	for i := range got {
		e, row, col := i/15, i/5%3, i%5
		if want := values[i%6] * float32(1+e*6+row/2*3+col/2); got[i] != want {
			t.Errorf("value [%d, %d, %d] is %g, want %g", e, row, col, got[i], want)
		}
	}
	part := must(t)(graph.SliceWeight(must(t)(graph.SliceWeight(w, 1, 2, 3, 1)), 2, 4, 5, 1))
	if v, err := Vector(s, part); err != nil || len(v) != 2 || v[0] != got[14] || v[1] != got[29] {
		t.Errorf("a part is %v, %v", v, err)
	}
	for _, bad := range [][2]int{{3, 2}, {2, 3}, {0, 2}} {
		if _, err := graph.ScaleWeight(graph.Tensor("w", []int{2, 3, 5}), f, bad[0], bad[1]); err == nil {
			t.Errorf("blocks of %v are taken", bad)
		}
	}
}
