package quant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrNoEncoder says that values cannot be stored in a type.
var ErrNoEncoder = errors.New("no encoder for this tensor type")

// ErrRange says that a value cannot be stored: it is not finite, or larger
// than the half-precision scales of a block type reach.
var ErrRange = errors.New("value out of range")

// Encode stores the values of src in dst, rounding to nearest; the K types
// search for the scales of least squared error as ggml does without an
// importance matrix. len(src) must be a multiple of the type's block and dst
// RowBytes(len(src)) bytes long (ErrSize otherwise). A block type refuses NaN,
// infinities and magnitudes above 65504 with an error that wraps ErrRange and
// names the value; dst is then unchanged. A type that cannot be written gives
// an error that wraps ErrNoEncoder.
//
// F16, BF16, Q4_0 to Q8_0 equal quantize of the Python package gguf in bits. The
// others follow ggml's *_ref quantisers and differ from them only where a sum in
// float32 decides otherwise than one in float64.
func (t Type) Encode(dst []byte, src []float32) error {
	f, ok := encoders[t]
	if !ok {
		return fmt.Errorf("quant: encode %s: values cannot be stored in this type: %w", t, ErrNoEncoder)
	}
	if err := t.checkRow("encode", len(src), len(dst)); err != nil {
		return err
	}
	if layouts[t].Block > 1 {
		for i, v := range src {
			if !(v >= -65504 && v <= 65504) {
				return fmt.Errorf("quant: encode %s: value %d is %g: %w", t, i, v, ErrRange)
			}
		}
	}
	f(dst, src)
	return nil
}

// CanEncode reports whether Encode writes the type.
func (t Type) CanEncode() bool { _, ok := encoders[t]; return ok }

var encoders = map[Type]func(dst []byte, src []float32){
	F32: encodeF32, F16: encodeF16, BF16: encodeBF16,
	Q4_0: encodeQ4_0, Q4_1: encodeQ4_1, Q5_0: encodeQ5_0, Q5_1: encodeQ5_1, Q8_0: encodeQ8_0,
	Q2_K: encodeQ2_K, Q3_K: encodeQ3_K, Q4_K: encodeQ4_K, Q5_K: encodeQ5_K, Q6_K: encodeQ6_K,
	IQ4_NL: encodeIQ4_NL, MXFP4: encodeMXFP4,
}

func putHalf(b []byte, f float32) { binary.LittleEndian.PutUint16(b, ToF16(f)) }

func encodeF32(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func encodeF16(dst []byte, src []float32) {
	for i, v := range src {
		putHalf(dst[2*i:], v)
	}
}

func encodeBF16(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], ToBF16(v))
	}
}

// inverse is 1/d, and 0 where that is not finite: such a d is 0 as a half, so
// that the codes do not matter, but converting an infinity would.
func inverse(d float32) float32 {
	id := 1 / d
	if math.IsInf(float64(id), 0) {
		return 0
	}
	return id
}

// extreme is the value of largest magnitude, with its sign; the first of equals.
func extreme(x []float32) (v float32) {
	for _, f := range x {
		if abs(f) > abs(v) {
			v = f
		}
	}
	return v
}

func abs(f float32) float32 { return math.Float32frombits(math.Float32bits(f) &^ (1 << 31)) }

func bounds(x []float32) (lo, hi float32) {
	lo, hi = x[0], x[0]
	for _, f := range x {
		lo, hi = min(lo, f), max(hi, f)
	}
	return lo, hi
}

// packNibbles stores the low 4 bits of 32 codes in 16 bytes and returns their
// fifth bits.
func packNibbles(dst []byte, q *[32]byte) (high uint32) {
	for i := range 16 {
		dst[i] = q[i]&15 | q[i+16]<<4
	}
	for i, v := range q {
		high |= uint32(v>>4&1) << i
	}
	return high
}

func encodeQ4_0(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) > 0; dst, src = dst[18:], src[32:] {
		symmetric(dst, src[:32], 8, &q)
		packNibbles(dst[2:], &q)
	}
}

func encodeQ5_0(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) > 0; dst, src = dst[22:], src[32:] {
		symmetric(dst, src[:32], 16, &q)
		binary.LittleEndian.PutUint32(dst[2:], packNibbles(dst[6:], &q))
	}
}

// symmetric fits value = d × (q − zero), 0 ≤ q < 2·zero: the extreme value is
// met by the code 0. It stores d and leaves the codes in q.
func symmetric(dst []byte, x []float32, zero float32, q *[32]byte) {
	d := extreme(x) / -zero
	id := inverse(d)
	for i, v := range x {
		q[i] = byte(min(int(float32(v*id)+(zero+0.5)), int(2*zero)-1))
	}
	putHalf(dst, d)
}

func encodeQ4_1(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) > 0; dst, src = dst[20:], src[32:] {
		affine(dst, src[:32], 15, &q)
		packNibbles(dst[4:], &q)
	}
}

func encodeQ5_1(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) > 0; dst, src = dst[24:], src[32:] {
		affine(dst, src[:32], 31, &q)
		binary.LittleEndian.PutUint32(dst[4:], packNibbles(dst[8:], &q))
	}
}

// affine fits value = d × q + m, 0 ≤ q ≤ top, stores d and m, leaves the codes in q.
func affine(dst []byte, x []float32, top float32, q *[32]byte) {
	lo, hi := bounds(x)
	d := (hi - lo) / top
	id := inverse(d)
	for i, v := range x {
		q[i] = byte(min(int(float32((v-lo)*id)+0.5), int(top)))
	}
	putHalf(dst, d)
	putHalf(dst[2:], lo)
}

func encodeQ8_0(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[34:], src[32:] {
		d := abs(extreme(src[:32])) / 127
		id := inverse(d)
		for i, v := range src[:32] {
			dst[2+i] = byte(int8(math.Round(float64(v * id)))) // half away from zero
		}
		putHalf(dst, d)
	}
}

// nearestLevel is the index of the level closest to v, the first of equals.
func nearestLevel(levels *[16]int8, v float32) (best byte) {
	for i, l := range levels {
		if abs(v-float32(l)) < abs(v-float32(levels[best])) {
			best = byte(i)
		}
	}
	return best
}

// encodeIQ4_NL meets the extreme value by the outermost level and then fits
// the scale to the codes by weighted least squares.
func encodeIQ4_NL(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) > 0; dst, src = dst[18:], src[32:] {
		x := src[:32]
		id := inverse(extreme(x) / float32(ValuesIQ4[0]))
		var xl, ll float64
		for i, v := range x {
			q[i] = nearestLevel(&ValuesIQ4, v*id)
			l, w := float64(ValuesIQ4[q[i]]), float64(v)*float64(v)
			xl += float64(w * float64(v) * l)
			ll += float64(w * l * l)
		}
		d := float32(0)
		if ll > 0 {
			d = float32(xl / ll)
		}
		putHalf(dst, d)
		packNibbles(dst[2:], &q)
	}
}

// encodeMXFP4 takes the scale of OCP Microscaling Formats 1.0, §6.3: the
// exponent of the extreme value less that of the largest level.
func encodeMXFP4(dst []byte, src []float32) {
	var q [32]byte
	for ; len(src) > 0; dst, src = dst[17:], src[32:] {
		e := 0
		if top := abs(extreme(src[:32])); top > 0 {
			_, exp := math.Frexp(float64(top)) // top = f × 2^exp, ½ ≤ f < 1
			e = min(max(exp-1-2+127, 0), 254)
		}
		id := 1 / float64(halfPower(byte(e)))
		for i, v := range src[:32] {
			q[i] = nearestLevel(&ValuesFP4, float32(float64(v)*id))
		}
		dst[0] = byte(e)
		packNibbles(dst[1:], &q)
	}
}
