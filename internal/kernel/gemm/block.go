package gemm

import (
	"encoding/binary"

	"github.com/inferflow/inferflow/quant"
)

// block is one source block with its bit fields apart: 32 or 256 codes in their
// order along K, scales and minima as integers, float16 bits for the whole.
// The layouts are ggml's (ggml-common.h, ggml-quants.c).
type block struct {
	codes   [superK]byte
	scale   [16]int8 // per 32 values, or per 16 in Q2_K, Q3_K, Q6_K; biases removed
	min     [16]byte
	d, dmin uint16
}

func (b *block) read(t quant.Type, src []byte) {
	switch t {
	case quant.Q4_0, quant.IQ4_NL, quant.Q5_0, quant.Q4_1, quant.Q5_1, quant.MXFP4:
		b.readSmall(t, src)
	case quant.Q8_0:
		b.d = le16(src)
		copy(b.codes[:granule], src[2:])
	case quant.Q2_K:
		b.readQ2K(src)
	case quant.Q3_K:
		b.readQ3K(src)
	case quant.Q4_K, quant.Q5_K:
		b.readQ45K(t, src)
	case quant.Q6_K:
		b.readQ6K(src)
	case quant.IQ4_XS:
		b.readIQ4XS(src)
	}
}

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }

// readSmall reads the blocks of 32 values with nibbles at their end.
func (b *block) readSmall(t quant.Type, src []byte) {
	var high uint32
	switch t {
	case quant.MXFP4:
		b.scale[0] = int8(src[0])
	case quant.Q5_0:
		b.d, high = le16(src), binary.LittleEndian.Uint32(src[2:])
	case quant.Q4_1:
		b.d, b.dmin = le16(src), le16(src[2:])
	case quant.Q5_1:
		b.d, b.dmin, high = le16(src), le16(src[2:]), binary.LittleEndian.Uint32(src[4:])
	default:
		b.d = le16(src)
	}
	for i, q := range src[len(src)-16:] {
		b.codes[i] = q&15 | byte(high>>i&1)<<4
		b.codes[i+16] = q>>4 | byte(high>>(i+16)&1)<<4
	}
}

func (b *block) readQ2K(src []byte) {
	qs := src[16:80]
	for i := range b.codes {
		b.codes[i] = qs[i/128*32+i%32] >> (i / 32 % 4 * 2) & 3
	}
	for g, s := range src[:16] {
		b.scale[g], b.min[g] = int8(s&15), s>>4
	}
	b.d, b.dmin = le16(src[80:]), le16(src[82:])
}

func (b *block) readQ3K(src []byte) {
	hmask, qs, scales := src[:32], src[32:96], src[96:108]
	for i := range b.codes {
		b.codes[i] = qs[i/128*32+i%32]>>(i/32%4*2)&3 | hmask[i%32]>>(i/32)&1<<2
	}
	for g := range b.scale {
		b.scale[g] = int8(scales[g%8]>>(g/8*4)&15|scales[8+g%4]>>(g/4*2)&3<<4) - 32
	}
	b.d = le16(src[108:])
}

func (b *block) readQ45K(t quant.Type, src []byte) {
	b.d, b.dmin = le16(src), le16(src[2:])
	s, qs := src[4:16], src[len(src)-128:]
	for j := range 8 {
		if j < 4 {
			b.scale[j], b.min[j] = int8(s[j]&63), s[j+4]&63
		} else {
			b.scale[j] = int8(s[j+4]&15 | s[j-4]>>6<<4)
			b.min[j] = s[j+4]>>4 | s[j]>>6<<4
		}
	}
	for i := range b.codes {
		b.codes[i] = qs[i/64*32+i%32] >> (i / 32 % 2 * 4) & 15
		if t == quant.Q5_K {
			b.codes[i] |= src[16+i%32] >> (i / 32) & 1 << 4
		}
	}
}

func (b *block) readQ6K(src []byte) {
	ql, qh := src[:128], src[128:192]
	for i := range b.codes {
		run, at := i/32%4, i%32
		low := ql[i/128*64+run%2*32+at] >> (run / 2 * 4) & 15
		b.codes[i] = low | qh[i/128*32+at]>>(run*2)&3<<4
	}
	for g, s := range src[192:208] {
		b.scale[g] = int8(s)
	}
	b.d = le16(src[208:])
}

func (b *block) readIQ4XS(src []byte) {
	high, low, qs := le16(src[2:]), src[4:8], src[8:136]
	b.d = le16(src)
	for j := range 8 {
		b.scale[j] = int8(low[j/2]>>(j%2*4)&15|byte(high>>(2*j))&3<<4) - 32
	}
	for i := range b.codes {
		b.codes[i] = qs[i/32*16+i%16] >> (i % 32 / 16 * 4) & 15
	}
}
