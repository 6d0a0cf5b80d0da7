package quant

// The types with super-blocks of 256 values: a float16 scale for the whole
// and small integer scales for groups of 16 or 32. Positions below name values
// inside a super-block of ggml's block_q2_K to block_iq4_xs.

// Q2_K: 16 bytes of scale (low half) and minimum (high half) for groups of 16,
// 64 bytes of 2-bit values, half d, half dmin. value = d·s × q − dmin·m.
func decodeQ2_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		scales, qs := src[:16], src[16:80]
		d, dmin := half(src[80:]), half(src[82:])
		for g, s := range scales {
			dl, ml := d*float32(s&15), dmin*float32(s>>4)
			// Group g: 128 values a half, 4 shifts a half, 2 groups a shift.
			q, shift := qs[g/8*32+g%2*16:], g/2%4*2
			out := dst[g*16 : g*16+16]
			for i := range out {
				out[i] = float32(dl*float32(q[i]>>shift&3)) - ml
			}
		}
		dst, src = dst[256:], src[84:]
	}
}

// Q3_K: 32 bytes of third bits, 64 bytes of 2-bit values, 12 bytes with 16
// scales of 6 bits, half d. value = d·(s − 32) × (q − 4 unless its third bit).
func decodeQ3_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		hmask, qs, scales := src[:32], src[32:96], src[96:108]
		d := half(src[108:])
		for g := range 16 {
			dl := d * float32(scaleQ3_K(scales, g)-32)
			q, shift := qs[g/8*32+g%2*16:], g/2%4*2
			h, bit := hmask[g%2*16:], g/2
			out := dst[g*16 : g*16+16]
			for i := range out {
				v := int(q[i] >> shift & 3)
				if h[i]>>bit&1 == 0 {
					v -= 4
				}
				out[i] = dl * float32(v)
			}
		}
		dst, src = dst[256:], src[110:]
	}
}

// scaleQ3_K is scale g of 16: 4 low bits in bytes 0 to 7, 2 high bits in 8 to 11.
func scaleQ3_K(s []byte, g int) int {
	return int(s[g%8]>>(g/8*4)&15 | s[8+g%4]>>(g/4*2)&3<<4)
}

// scaleMinK unpacks scale and minimum j of 8, 6 bits each, from the 12 bytes
// that Q4_K and Q5_K share.
func scaleMinK(s []byte, j int) (scale, min uint8) {
	if j < 4 {
		return s[j] & 63, s[j+4] & 63
	}
	return s[j+4]&15 | s[j-4]>>6<<4, s[j+4]>>4 | s[j]>>6<<4
}

// Q4_K: half d, half dmin, 12 bytes of scales, 128 bytes of 4-bit values.
// value = d·s × q − dmin·m for groups of 32.
func decodeQ4_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, dmin := half(src), half(src[2:])
		scales, qs := src[4:16], src[16:144]
		for g := range 8 {
			s, m := scaleMinK(scales, g)
			dl, ml := d*float32(s), dmin*float32(m)
			q, shift := qs[g/2*32:], g%2*4
			out := dst[g*32 : g*32+32]
			for i := range out {
				out[i] = float32(dl*float32(q[i]>>shift&15)) - ml
			}
		}
		dst, src = dst[256:], src[144:]
	}
}

// Q5_K: as Q4_K with 32 bytes of fifth bits (bit g of each byte for group g)
// between the scales and the values.
func decodeQ5_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, dmin := half(src), half(src[2:])
		scales, qh, qs := src[4:16], src[16:48], src[48:176]
		for g := range 8 {
			s, m := scaleMinK(scales, g)
			dl, ml := d*float32(s), dmin*float32(m)
			q, shift := qs[g/2*32:], g%2*4
			out := dst[g*32 : g*32+32]
			for i := range out {
				v := q[i]>>shift&15 | qh[i]>>g&1<<4
				out[i] = float32(dl*float32(v)) - ml
			}
		}
		dst, src = dst[256:], src[176:]
	}
}

// Q6_K: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales
// for groups of 16, half d. value = d·s × (q − 32).
func decodeQ6_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		ql, qh, scales := src[:128], src[128:192], src[192:208]
		d := half(src[208:])
		for g := range 16 {
			dl := d * float32(int8(scales[g]))
			// Runs of 32 values: two nibble halves of 64 bytes, four bit pairs of 32.
			run, at := g/2%4, g%2*16
			l, lshift := ql[g/8*64+run%2*32+at:], run/2*4
			h, hshift := qh[g/8*32+at:], run*2
			out := dst[g*16 : g*16+16]
			for i := range out {
				v := l[i]>>lshift&15 | h[i]>>hshift&3<<4
				out[i] = dl * float32(int(v)-32)
			}
		}
		dst, src = dst[256:], src[210:]
	}
}

// IQ4_XS: half d, 8 high bit pairs of the scales, 8 low nibbles, 128 bytes in
// blocks of 32 as IQ4_NL. value = d·(s − 32) × ValuesIQ4[q].
func decodeIQ4_XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, high := half(src), u16(src[2:])
		low, qs := src[4:8], src[8:136]
		for g := range 8 {
			s := int(low[g/2]>>(g%2*4)&15) | int(high>>(2*g)&3)<<4
			dl := d * float32(s-32)
			out := dst[g*32 : g*32+32]
			for i, b := range qs[g*16 : g*16+16] {
				out[i] = dl * float32(ValuesIQ4[b&15])
				out[i+16] = dl * float32(ValuesIQ4[b>>4])
			}
		}
		dst, src = dst[256:], src[136:]
	}
}
