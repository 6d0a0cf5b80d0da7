package attn

import (
	"math"
	"testing"
)

// FuzzFastAgainstPlain compares the tiers with each other, and every row alone with
// the rows together, over shapes, types, windows and ranges.
func FuzzFastAgainstPlain(f *testing.F) {
	f.Add(uint64(1), uint8(64), uint8(64), uint8(4), uint16(100), uint8(0x11), uint8(0), uint8(3))
	f.Add(uint64(2), uint8(5), uint8(9), uint8(7), uint16(530), uint8(0x21), uint8(40), uint8(9))
	f.Add(uint64(3), uint8(80), uint8(16), uint8(1), uint16(17), uint8(0x02), uint8(3), uint8(17))
	extras := []string{"", "softcap", "sinks", "slopes", "bias"}
	f.Fuzz(func(t *testing.T, seed uint64, dk, dv, heads uint8, keys uint16, types, window, tokens uint8) {
		s := shape{dk: int(dk)%130 + 1, dv: int(dv)%130 + 1, heads: int(heads)%9 + 1, keys: int(keys)%1100 + 1,
			kt: Elem(types & 15 % 3), vt: Elem(types >> 4 % 3), window: int(window), extra: extras[seed%5]}
		q := build(s, min(int(tokens)%24+1, s.keys), seed)
		c := &q.call
		was := useAVX2
		defer func() { useAVX2 = was }()
		run := func(fast bool, group int) []float32 {
			useAVX2 = fast && was
			clear(c.Out)
			scr := NewScratch(64, s.dk, s.dv)
			for r := 0; r < c.Rows; r += group {
				part := c.rows(r, min(r+group, c.Rows))
				part.Run(scr)
			}
			return append([]float32(nil), c.Out...)
		}
		plain, fast, alone := run(false, 200), run(true, 200), run(true, int(seed%7)+1)
		for i := range plain {
			if math.Float32bits(fast[i]) != math.Float32bits(alone[i]) {
				t.Fatalf("%v: element %d is %v, in other company %v", s, i, fast[i], alone[i])
			}
			if !(math.Abs(float64(plain[i]-fast[i])) <= 1e-5) {
				t.Fatalf("%v: element %d is %v, plain %v", s, i, fast[i], plain[i])
			}
		}
	})
}
