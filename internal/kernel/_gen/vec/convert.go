package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// conversions emits the 16-bit types. AVX2 has no masked moves of 16 bits, so what
// is left of a vector goes one by one, through the same instructions.
func conversions(g *gen) {
	g.convert("f16ToF32AVX2", "func(dst *float32, src *uint16, n int)", 4, 2, func(src, dst operand.Mem) {
		v := g.YMM()
		g.VCVTPH2PS(src, v)
		g.VMOVUPS(v, dst)
	}, func(src, dst operand.Mem) {
		r, v := g.GP32(), g.XMM()
		g.MOVWLZX(src, r)
		g.VMOVD(r, v)
		g.VCVTPH2PS(v, v)
		g.VMOVSS(v, dst)
	})
	g.convert("bf16ToF32AVX2", "func(dst *float32, src *uint16, n int)", 4, 2, func(src, dst operand.Mem) {
		v := g.YMM()
		g.VPMOVZXWD(src, v)
		g.VPSLLD(operand.U8(16), v, v)
		g.VMOVUPS(v, dst)
	}, func(src, dst operand.Mem) {
		r := g.GP32()
		g.MOVWLZX(src, r)
		g.SHLL(operand.U8(16), r)
		g.MOVL(r, dst)
	})
	g.convert("f32ToF16AVX2", "func(dst *uint16, src *float32, n int)", 2, 4, func(src, dst operand.Mem) {
		v := g.load(src)
		g.saturate(v)
		g.VCVTPS2PH(operand.U8(0), v, v.AsX())
		g.VMOVUPS(v.AsX(), dst)
	}, func(src, dst operand.Mem) {
		v, r := g.YMM(), g.GP32()
		g.VMOVSS(src, v.AsX())
		g.saturate(v)
		g.VCVTPS2PH(operand.U8(0), v, v.AsX())
		g.VMOVD(v.AsX(), r)
		g.MOVW(r.As16(), dst)
	})
}

// saturate clamps finite values to ±65504 in place.
func (g *gen) saturate(v vecr) {
	isInf, c, lim := g.abs(v), g.YMM(), g.YMM()
	g.VCMPPS(operand.U8(0), g.f(math.Inf(1)), isInf, isInf)
	g.VMOVUPS(g.f(65504), lim)
	g.VMINPS(v, lim, c) // NaN, the second source, stays
	g.VMOVUPS(g.f(-65504), lim)
	g.VMAXPS(c, lim, c)
	g.VBLENDVPS(isInf, v, c, v)
}

func (g *gen) convert(name, signature string, dstSize, srcSize int, eight, one func(src, dst operand.Mem)) {
	g.begin(name, signature, name+" converts n elements.")
	dst, src, n := g.pointer("dst"), g.pointer("src"), g.pointer("n")
	step := func(k int) {
		g.ADDQ(operand.I32(int32(k*dstSize)), dst)
		g.ADDQ(operand.I32(int32(k*srcSize)), src)
		g.SUBQ(operand.I32(int32(k)), n)
	}
	at := func(r reg.GPVirtual) operand.Mem { return operand.Mem{Base: r} }
	g.Label("loop")
	g.CMPQ(n, operand.I32(8))
	g.JL(operand.LabelRef("tail"))
	eight(at(src), at(dst))
	step(8)
	g.JMP(operand.LabelRef("loop"))
	g.Label("tail")
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef("done"))
	one(at(src), at(dst))
	step(1)
	g.JMP(operand.LabelRef("tail"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}
