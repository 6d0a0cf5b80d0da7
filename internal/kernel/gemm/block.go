package gemm

import (
	"encoding/binary"

	"github.com/inferflow/inferflow/quant"
)

// block is one source block with its bit fields apart: 32 or 256 codes, four
// bytes a word in their order along K, scales and minima as integers, float16
// bits for the whole. The layouts are ggml's (ggml-common.h, ggml-quants.c).
type block struct {
	codes   [superK / 4]uint32
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
		for q := range 8 {
			b.codes[q] = word(src[2:], q)
		}
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

// Fields of four codes in a word.
const (
	ones   = 0x01010101
	twos   = 0x03030303 // 2 bits
	fours  = 0x0f0f0f0f // 4 bits
	spread = 0x00204081 // a product with it puts bits 0 to 3 in four bytes
)

func le16(b []byte) uint16        { return binary.LittleEndian.Uint16(b) }
func word(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }

// readSmall reads the blocks of 32 values with nibbles at their end.
func (b *block) readSmall(t quant.Type, src []byte) {
	var high uint32
	switch t {
	case quant.MXFP4:
		b.scale[0] = int8(src[0])
	case quant.Q5_0:
		b.d, high = le16(src), word(src[2:], 0)
	case quant.Q4_1:
		b.d, b.dmin = le16(src), le16(src[2:])
	case quant.Q5_1:
		b.d, b.dmin, high = le16(src), le16(src[2:]), word(src[4:], 0)
	default:
		b.d = le16(src)
	}
	qs := src[len(src)-16:]
	for q := range 4 {
		w := word(qs, q)
		b.codes[q] = w&fours | high>>(4*q)&15*spread&ones<<4
		b.codes[q+4] = w>>4&fours | high>>(4*q+16)&15*spread&ones<<4
	}
}

func (b *block) readQ2K(src []byte) {
	for q := range b.codes {
		b.codes[q] = word(src[16:], q/32*8+q%8) >> (q / 8 % 4 * 2) & twos
	}
	for g, s := range src[:16] {
		b.scale[g], b.min[g] = int8(s&15), s>>4
	}
	b.d, b.dmin = le16(src[80:]), le16(src[82:])
}

func (b *block) readQ3K(src []byte) {
	for q := range b.codes {
		low := word(src[32:], q/32*8+q%8) >> (q / 8 % 4 * 2) & twos
		b.codes[q] = low | word(src, q%8)>>(q/8)&ones<<2
	}
	scales := src[96:108]
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
	for q := range b.codes {
		b.codes[q] = word(qs, q/16*8+q%8) >> (q / 8 % 2 * 4) & fours
		if t == quant.Q5_K {
			b.codes[q] |= word(src[16:], q%8) >> (q / 8) & ones << 4
		}
	}
}

func (b *block) readQ6K(src []byte) {
	for q := range b.codes {
		run, at := q/8%4, q%8
		low := word(src, q/32*16+run%2*8+at) >> (run / 2 * 4) & fours
		b.codes[q] = low | word(src[128:], q/32*8+at)>>(run*2)&twos<<4
	}
	for g, s := range src[192:208] {
		b.scale[g] = int8(s)
	}
	b.d = le16(src[208:])
}

func (b *block) readIQ4XS(src []byte) {
	high, low := le16(src[2:]), src[4:8]
	b.d = le16(src)
	for j := range 8 {
		b.scale[j] = int8(low[j/2]>>(j%2*4)&15|byte(high>>(2*j))&3<<4) - 32
	}
	for q := range b.codes {
		b.codes[q] = word(src[8:], q/8*4+q%4) >> (q % 8 / 4 * 4) & fours
	}
}
