package main

import "github.com/mmcloughlin/avo/operand"

// finish emits the division of states by their sums: 0 where a sum is 0.
func (g *gen) finish() {
	g.begin("finishAVX2", "func(out *float32, outStride int, acc *float32, stride int, l *float32, dv, n int)",
		"finishAVX2 sets out[r][:dv] to acc[r][:dv] · (1/l[r]), or to 0 where l[r] is 0, for n rows; dv is a multiple of 8.")
	out, outStride := g.param("out"), g.param("outStride")
	acc, stride, l := g.param("acc"), g.param("stride"), g.param("l")
	dv, n := g.param("dv"), g.param("n")
	g.SHLQ(operand.U8(2), outStride)
	g.SHLQ(operand.U8(2), stride)
	zero := g.YMM()
	g.VXORPS(zero, zero, zero)
	g.Label("rows")
	sum, factor, some := g.YMM(), g.load(g.f(1)), g.YMM()
	g.VBROADCASTSS(operand.Mem{Base: l}, sum)
	g.VCMPPS(operand.U8(4), zero, sum, some) // sum ≠ 0, or NaN
	g.VDIVPS(sum, factor, factor)
	at := g.GP64()
	g.XORQ(at, at)
	g.Label("parts")
	v := g.YMM()
	g.VMULPS(operand.Mem{Base: acc, Index: at, Scale: 4}, factor, v)
	g.VANDPS(some, v, v)
	g.VMOVUPS(v, operand.Mem{Base: out, Index: at, Scale: 4})
	g.ADDQ(operand.U8(8), at)
	g.CMPQ(at, dv)
	g.JL(operand.LabelRef("parts"))
	g.ADDQ(outStride, out)
	g.ADDQ(stride, acc)
	g.ADDQ(operand.U8(4), l)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("rows"))
	g.VZEROUPPER()
	g.RET()
}
