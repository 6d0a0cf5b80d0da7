package tensor

import (
	"bytes"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

func TestShape(t *testing.T) {
	for _, c := range []struct {
		shape                Shape
		elements, rows, cols int
		text                 string
	}{
		{nil, 1, 1, 1, "[]"},
		{Shape{5}, 5, 1, 5, "[5]"},
		{Shape{2, 3}, 6, 2, 3, "[2, 3]"},
		{Shape{2, 3, 4}, 24, 6, 4, "[2, 3, 4]"},
		{Shape{0, 4}, 0, 0, 4, "[0, 4]"},
	} {
		if s := c.shape; s.Elements() != c.elements || s.Rows() != c.rows || s.Cols() != c.cols || s.String() != c.text {
			t.Errorf("%v: %d elements, %d rows, %d columns, %s", c.shape, s.Elements(), s.Rows(), s.Cols(), s)
		}
	}
	if !(Shape{2, 3}).Equal(Shape{2, 3}) || (Shape{2, 3}).Equal(Shape{3, 2}) || (Shape{2}).Equal(Shape{2, 1}) {
		t.Error("Equal is wrong")
	}
}

func TestViewRow(t *testing.T) {
	v := View{Type: quant.Q8_0, Shape: Shape{3, 64}, Data: make([]byte, 3*68)}
	for i := range v.Data {
		v.Data[i] = byte(i / 68)
	}
	for i := range 3 {
		if r := v.Row(i); v.RowBytes() != 68 || !bytes.Equal(r, bytes.Repeat([]byte{byte(i)}, 68)) || cap(r) != 68 {
			t.Errorf("row %d of %d bytes is % x", i, v.RowBytes(), r)
		}
	}
}
