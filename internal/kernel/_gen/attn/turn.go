package main

import "github.com/mmcloughlin/avo/operand"

// turn emits the transposition of keys into a tile [dk][16], 8 keys by 8 components
// at a time. Both numbers are multiples of 8.
func (g *gen) turn() {
	g.begin("turnF32AVX2", "func(out, k *float32, stride, dk, n int)",
		"turnF32AVX2 sets out[16·d + i] to k[i·stride + d] for n keys i and components d of dk, both multiples of 8.")
	out, k, stride := g.param("out"), g.param("k"), g.param("stride")
	dk, n := g.param("dk"), g.param("n")
	g.SHLQ(operand.U8(2), stride)
	g.Label("keys")
	o, src, left := g.GP64(), g.GP64(), g.GP64()
	g.MOVQ(out, o)
	g.MOVQ(k, src)
	g.MOVQ(dk, left)
	g.Label("parts")
	low := g.rows(src, stride, 6)
	high := g.GP64() // the seventh row
	g.LEAQ(operand.Mem{Base: low.high, Index: stride, Scale: 2}, high)
	g.ADDQ(stride, high)
	var in [8]vecr
	for i := range in {
		switch {
		case i < 6:
			in[i] = g.load(low.at(i, 0))
		case i == 6:
			in[i] = g.load(operand.Mem{Base: high})
		default:
			in[i] = g.load(operand.Mem{Base: high, Index: stride, Scale: 1})
		}
	}
	for d, v := range g.turned(in) {
		g.VMOVUPS(v, operand.Mem{Base: o, Disp: 64 * d})
	}
	g.ADDQ(operand.U8(32), src)
	g.ADDQ(operand.I32(8*64), o)
	g.SUBQ(operand.U8(8), left)
	g.JNZ(operand.LabelRef("parts"))
	g.ADDQ(operand.U8(32), out)
	g.LEAQ(operand.Mem{Base: k, Index: stride, Scale: 8}, k)
	g.SUBQ(operand.U8(8), n)
	g.JNZ(operand.LabelRef("keys"))
	g.VZEROUPPER()
	g.RET()
}

// turned gives the columns of a matrix of 8 rows.
func (g *gen) turned(in [8]vecr) (out [8]vecr) {
	var a, b [8]vecr
	for i := 0; i < 8; i += 2 { // pairs of two rows
		a[i], a[i+1] = g.YMM(), g.YMM()
		g.VUNPCKLPS(in[i+1], in[i], a[i])
		g.VUNPCKHPS(in[i+1], in[i], a[i+1])
	}
	for i := 0; i < 8; i += 4 { // fours of four rows
		for h := range 2 {
			b[i+2*h], b[i+2*h+1] = g.YMM(), g.YMM()
			g.VSHUFPS(operand.U8(0x44), a[i+2+h], a[i+h], b[i+2*h])
			g.VSHUFPS(operand.U8(0xee), a[i+2+h], a[i+h], b[i+2*h+1])
		}
	}
	for i := range 4 {
		out[i], out[i+4] = g.YMM(), g.YMM()
		g.VPERM2F128(operand.U8(0x20), b[i+4], b[i], out[i])
		g.VPERM2F128(operand.U8(0x31), b[i+4], b[i], out[i+4])
	}
	return out
}
