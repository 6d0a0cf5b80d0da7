package weight

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/inferflow/inferflow/quant"
)

// ErrNaN marks a weight that holds a value that is no number.
var ErrNaN = errors.New("a weight is not a number (NaN)")

// exponents are the bits of a word of 8 bytes that are all ones in a lane
// that is infinite or NaN, and a unit of the exponent in each lane.
var exponents = map[quant.Type][2]uint64{
	quant.F16:  {0x7c00_7c00_7c00_7c00, 0x0400_0400_0400_0400},
	quant.BF16: {0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080},
	quant.F32:  {0x7f80_0000_7f80_0000, 0x0080_0000_0080_0000},
}

// FindNaN is the column of the first NaN of a stored row of F32, F16 or BF16,
// -1 where there is none or where the type is another. It costs little beside
// reading the row: only a word with a full exponent is looked at closely.
// Infinities are left: a stored mask is one, a row that no token uses may hold
// one, and where one spoils an answer the answer's error names the step.
func FindNaN(t quant.Type, row []byte) int {
	e, ok := exponents[t]
	if !ok {
		return -1
	}
	l, _ := t.Layout()
	per := 8 / l.Bytes
	for at := 0; at < len(row); at += 8 {
		if at+8 <= len(row) {
			if (binary.LittleEndian.Uint64(row[at:])&e[0]+e[1])&signs(l.Bytes) == 0 {
				continue // no exponent overflowed into the place of its sign
			}
		}
		values := make([]float32, min(per, (len(row)-at)/l.Bytes))
		if t.Decode(values, row[at:at+len(values)*l.Bytes]) != nil {
			return -1
		}
		for i, v := range values {
			if math.IsNaN(float64(v)) {
				return at/l.Bytes + i
			}
		}
	}
	return -1
}

// signs are the top bits of lanes of 2 or 4 bytes.
func signs(bytes int) uint64 {
	if bytes == 2 {
		return 0x8000_8000_8000_8000
	}
	return 0x8000_0000_8000_0000
}
