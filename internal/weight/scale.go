package weight

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// scaled multiplies each block of w.Block[0] rows by w.Block[1] columns with
// its own factor, in float32, as Hugging Face stores weights of 8 bits. Rows
// are made when they are asked for: an 8-bit file is never expanded as a whole.
func scaled(w *graph.Weight, r, scale *Rows) (*Rows, error) {
	shape := tensor.Shape(w.Shape)
	if err := r.Type.CanDecode(); err != nil {
		return nil, fmt.Errorf("weight: %s: %w", w, err)
	}
	factors, err := scale.All()
	if err != nil {
		return nil, fmt.Errorf("weight: %s: %w", w, err)
	}
	rows, cols := shape[len(shape)-2], shape.Cols()
	down, across := scale.Shape[len(scale.Shape)-2], scale.Shape.Cols()
	high, wide := w.Block[0], w.Block[1]
	return &Rows{Type: quant.F32, Shape: shape, row: func(i int) []byte {
		at := (i/rows*down + i%rows/high) * across
		v := make([]float32, cols)
		if r.Type.Decode(v, r.row(i)) != nil {
			panic("weight: scale: a row changed its size") // checked when the tensor was found
		}
		out := make([]byte, 4*cols)
		for c, x := range v {
			binary.LittleEndian.PutUint32(out[4*c:], math.Float32bits(x*factors[at+c/wide]))
		}
		return out
	}}, nil
}
