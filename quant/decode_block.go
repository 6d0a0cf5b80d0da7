package quant

import "math"

// The types with blocks of 32 values. Each block holds its scale first; values
// 0 to 15 lie in the low halves of the bytes, 16 to 31 in the high ones.

// Q4_0: half d, 16 bytes. value = d × (q − 8).
func decodeQ4_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := half(src)
		for i, b := range src[2:18] {
			dst[i] = d * float32(int(b&15)-8)
			dst[i+16] = d * float32(int(b>>4)-8)
		}
		dst, src = dst[32:], src[18:]
	}
}

// Q4_1: half d, half m, 16 bytes. value = d × q + m.
func decodeQ4_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, m := half(src), half(src[2:])
		for i, b := range src[4:20] {
			dst[i] = float32(d*float32(b&15)) + m
			dst[i+16] = float32(d*float32(b>>4)) + m
		}
		dst, src = dst[32:], src[20:]
	}
}

// Q5_0: half d, 32 fifth bits, 16 bytes. value = d × (q − 16).
func decodeQ5_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, h := half(src), u32(src[2:])
		for i, b := range src[6:22] {
			lo := int(b&15) | int(h>>i&1)<<4
			hi := int(b>>4) | int(h>>(i+16)&1)<<4
			dst[i] = d * float32(lo-16)
			dst[i+16] = d * float32(hi-16)
		}
		dst, src = dst[32:], src[22:]
	}
}

// Q5_1: half d, half m, 32 fifth bits, 16 bytes. value = d × q + m.
func decodeQ5_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, m, h := half(src), half(src[2:]), u32(src[4:])
		for i, b := range src[8:24] {
			lo := int(b&15) | int(h>>i&1)<<4
			hi := int(b>>4) | int(h>>(i+16)&1)<<4
			dst[i] = float32(d*float32(lo)) + m
			dst[i+16] = float32(d*float32(hi)) + m
		}
		dst, src = dst[32:], src[24:]
	}
}

// Q8_0: half d, 32 signed bytes. value = d × q.
func decodeQ8_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := half(src)
		for i, b := range src[2:34] {
			dst[i] = d * float32(int8(b))
		}
		dst, src = dst[32:], src[34:]
	}
}

// ValuesIQ4 are the 16 levels of IQ4_NL and IQ4_XS.
var ValuesIQ4 = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// IQ4_NL: half d, 16 bytes. value = d × ValuesIQ4[q].
func decodeIQ4_NL(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := half(src)
		for i, b := range src[2:18] {
			dst[i] = d * float32(ValuesIQ4[b&15])
			dst[i+16] = d * float32(ValuesIQ4[b>>4])
		}
		dst, src = dst[32:], src[18:]
	}
}

// ValuesFP4 are the 16 values of the 4-bit float E2M1, doubled so that they
// are integers (the scale is halved instead).
var ValuesFP4 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// MXFP4: a byte e, 16 bytes. value = 2^(e−128) × ValuesFP4[q].
// OCP Microscaling Formats 1.0, with ggml's order of the nibbles.
func decodeMXFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := halfPower(src[0])
		for i, b := range src[1:17] {
			dst[i] = d * float32(ValuesFP4[b&15])
			dst[i+16] = d * float32(ValuesFP4[b>>4])
		}
		dst, src = dst[32:], src[17:]
	}
}

// halfPower is 2^(e−128): half the E8M0 scale e, a subnormal for e < 2.
func halfPower(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}
