package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var expPoly = []float64{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

// expNeg is eˣ for x ≤ 0, 0 below -87.3 and NaN for NaN, of several registers at
// once, in place: their chains of dependent instructions run side by side.
func (g *gen) expNeg(xs ...vecr) {
	n, r, p := make([]vecr, len(xs)), make([]vecr, len(xs)), make([]vecr, len(xs))
	each := func(f func(i int)) {
		for i := range xs {
			f(i)
		}
	}
	each(func(i int) { n[i] = g.YMM(); g.VMULPS(g.f(math.Log2E), xs[i], n[i]) })
	each(func(i int) { g.VROUNDPS(operand.U8(0), n[i], n[i]) })
	each(func(i int) { r[i] = g.YMM(); g.VMOVAPS(xs[i], r[i]) })
	each(func(i int) { g.VFNMADD231PS(g.f(0.693359375), n[i], r[i]) })
	each(func(i int) { g.VFNMADD231PS(g.f(-2.12194440e-4), n[i], r[i]) })
	each(func(i int) { p[i] = g.load(g.f(expPoly[0])) })
	for _, c := range expPoly[1:] {
		each(func(i int) { g.VFMADD213PS(g.f(c), r[i], p[i]) })
	}
	// What is too small is marked before its register is used again: xs < -87.3.
	each(func(i int) { g.VCMPPS(operand.U8(1), g.f(-87.33654), xs[i], xs[i]) })
	each(func(i int) { g.VCVTPS2DQ(n[i], n[i]) })
	each(func(i int) { g.VPADDD(g.u(127), n[i], n[i]) })
	each(func(i int) { g.VPSLLD(operand.U8(23), n[i], n[i]) })
	each(func(i int) { g.VANDNPS(n[i], xs[i], n[i]) }) // ¬small · 2ⁿ
	each(func(i int) { g.VANDNPS(r[i], xs[i], r[i]) }) // of -Inf, r is NaN
	each(func(i int) { g.VANDNPS(p[i], xs[i], p[i]) })
	each(func(i int) { g.VMULPS(r[i], r[i], xs[i]) })
	each(func(i int) { g.VFMADD213PS(r[i], xs[i], p[i]) }) // p·r² + r
	each(func(i int) { g.VADDPS(g.f(1), p[i], p[i]) })
	each(func(i int) { g.VMULPS(n[i], p[i], xs[i]) })
}

// fold reduces 8 lanes to the lowest, as a tree.
func (g *gen) fold(v vecr, op func(a, b, dst operand.Op)) reg.VecVirtual {
	x, t := g.XMM(), g.XMM()
	g.VEXTRACTF128(operand.U8(1), v, t)
	op(t, v.AsX(), x)
	g.VMOVHLPS(x, x, t)
	op(t, x, x)
	g.VMOVSHDUP(x, t)
	op(t, x, x)
	return x
}

// softmax emits the update of the running softmax of rows by one tile.
func (g *gen) softmax() {
	g.begin("softmaxAVX2", "func(logits, m, l, alpha *float32, from, to *int32, scale float32, n int)",
		"softmaxAVX2 is Scratch.softmax for n rows of 16 logits.")
	logits, m, l, alpha := g.param("logits"), g.param("m"), g.param("l"), g.param("alpha")
	from, to, n := g.param("from"), g.param("to"), g.param("n")
	scale := g.YMM()
	g.Load(g.Param("scale"), scale.AsX())
	g.VBROADCASTSS(scale.AsX(), scale)
	low := g.table("iotaLow", 0, 1, 2, 3, 4, 5, 6, 7)
	high := g.table("iotaHigh", 8, 9, 10, 11, 12, 13, 14, 15)
	none := g.load(g.f(math.Inf(-1)))
	at := g.GP64()
	g.XORQ(at, at)
	word := func(base reg.GPVirtual) operand.Mem { return operand.Mem{Base: base, Index: at, Scale: 4} }

	g.Label("loop")
	g.CMPQ(at, n)
	g.JGE(operand.LabelRef("done"))
	begin, end := g.YMM(), g.YMM()
	g.VPBROADCASTD(word(from), begin)
	g.VPBROADCASTD(word(to), end)
	s := [2]vecr{}
	for h, iota := range []operand.Mem{low, high} {
		s[h] = g.load(operand.Mem{Base: logits, Disp: 32 * h})
		g.VMULPS(scale, s[h], s[h])
		i, sees, before := g.load(iota), g.YMM(), g.YMM()
		g.VPCMPGTD(i, end, sees)     // to > i
		g.VPCMPGTD(i, begin, before) // from > i
		g.VPANDN(sees, before, sees)
		g.VBLENDVPS(sees, s[h], none, s[h])
	}
	most, top := g.YMM(), g.YMM()
	maxOp := func(a, b, dst operand.Op) { g.VMAXPS(a, b, dst) }
	g.VMAXPS(s[1], s[0], most)
	x := g.fold(most, maxOp)
	old := g.YMM()
	g.VBROADCASTSS(word(m), old)
	g.VMAXSS(old.AsX(), x, x)
	g.VMOVSS(x, word(m))
	g.VBROADCASTSS(x, top)
	// All hidden so far: take 0 for the maximum, so that exp gives 0 and not NaN.
	empty := g.YMM()
	g.VCMPPS(operand.U8(0), none, top, empty)
	g.VANDNPS(top, empty, top)
	for _, v := range []vecr{s[0], s[1], old} {
		g.VSUBPS(top, v, v)
	}
	g.expNeg(s[0], s[1], old)
	g.VMOVUPS(s[0], operand.Mem{Base: logits})
	g.VMOVUPS(s[1], operand.Mem{Base: logits, Disp: 32})
	g.VMOVSS(old.AsX(), word(alpha))
	both := g.YMM()
	g.VADDPS(s[1], s[0], both)
	sum := g.fold(both, func(a, b, dst operand.Op) { g.VADDPS(a, b, dst) })
	g.VFMADD231SS(word(l), old.AsX(), sum) // sum + alpha·l
	g.VMOVSS(sum, word(l))
	g.ADDQ(operand.I32(64), logits)
	g.INCQ(at)
	g.JMP(operand.LabelRef("loop"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}
