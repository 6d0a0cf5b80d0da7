package weight

import (
	"math"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

func TestFindNaN(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.F16, quant.BF16} {
		for n := range 11 {
			for bad := -1; bad < n; bad++ {
				v := make([]float32, n)
				for i := range v {
					v[i] = float32(math.Inf(1 - 2*(i%2)))
					if i%3 == 1 {
						v[i] = -65504
					}
				}
				if bad >= 0 {
					v[bad] = float32(math.NaN())
				}
				size, _ := typ.RowBytes(n)
				row := make([]byte, size)
				if err := typ.Encode(row, v); err != nil {
					t.Fatal(err)
				}
				if got := FindNaN(typ, row); got != bad {
					t.Errorf("%s: %v: found %d, want %d", typ, v, got, bad)
				}
			}
		}
	}
	if got := FindNaN(quant.Q8_0, []byte{0xff, 0xff}); got != -1 {
		t.Errorf("a block type: %d", got)
	}
}
