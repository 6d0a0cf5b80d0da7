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

// softmax emits the update of the running softmax of rows by one tile, in three
// passes, so that the exponentials of the maxima are taken of 8 rows at once and no
// pass waits for a long chain: the rows' maxima, the factors, the probabilities.
func (g *gen) softmax() {
	g.begin("softmaxAVX2", "func(logits, m, l, alpha, ref *float32, from, to *int32, scale float32, n int)",
		"softmaxAVX2 is Scratch.softmax for n rows of 16 logits. alpha and ref have room for whole groups of 8 rows.")
	g.maxima()
	g.factors()
	g.probabilities()
	g.VZEROUPPER()
	g.RET()
}

// maxima scales and masks the logits and leaves each row's maximum in ref.
func (g *gen) maxima() {
	logits, from, to := g.param("logits"), g.param("from"), g.param("to")
	ref, n := g.param("ref"), g.param("n")
	scale := g.YMM()
	g.Load(g.Param("scale"), scale.AsX())
	g.VBROADCASTSS(scale.AsX(), scale)
	low := g.table("iotaLow", 0, 1, 2, 3, 4, 5, 6, 7)
	high := g.table("iotaHigh", 8, 9, 10, 11, 12, 13, 14, 15)
	none := g.load(g.f(math.Inf(-1)))
	at := g.GP64()
	g.XORQ(at, at)
	word := func(base reg.GPVirtual) operand.Mem { return operand.Mem{Base: base, Index: at, Scale: 4} }
	g.Label("max")
	s := [2]vecr{}
	for h := range s {
		s[h] = g.YMM()
		g.VMULPS(operand.Mem{Base: logits, Disp: 32 * h}, scale, s[h])
	}
	seen := g.GP32()
	g.MOVL(word(to), seen)
	g.SUBL(word(from), seen)
	g.CMPL(seen, operand.I32(16))
	g.JE(operand.LabelRef("whole"))
	begin, end := g.YMM(), g.YMM()
	g.VPBROADCASTD(word(from), begin)
	g.VPBROADCASTD(word(to), end)
	for h, iota := range []operand.Mem{low, high} {
		i, sees, before := g.load(iota), g.YMM(), g.YMM()
		g.VPCMPGTD(i, end, sees)     // to > i
		g.VPCMPGTD(i, begin, before) // from > i
		g.VPANDN(sees, before, sees)
		g.VBLENDVPS(sees, s[h], none, s[h])
	}
	g.Label("whole")
	most := g.YMM()
	g.VMAXPS(s[1], s[0], most)
	for h := range s {
		g.VMOVUPS(s[h], operand.Mem{Base: logits, Disp: 32 * h})
	}
	x := g.fold(most, func(a, b, dst operand.Op) { g.VMAXPS(a, b, dst) })
	g.VMOVSS(x, word(ref))
	g.ADDQ(operand.I32(64), logits)
	g.INCQ(at)
	g.CMPQ(at, n)
	g.JL(operand.LabelRef("max"))
}

// factors takes the rows' maxima from ref into m, writes alpha = exp(old m - ref) and
// makes ref what is to be taken off the logits.
func (g *gen) factors() {
	m, alpha, ref, n := g.param("m"), g.param("alpha"), g.param("ref"), g.param("n")
	words := []uint32{}
	for i := range 16 {
		words = append(words, map[bool]uint32{true: 0xffffffff, false: 0}[i < 8])
	}
	base, skip, mask := g.GP64(), g.GP64(), g.YMM()
	g.LEAQ(g.table("tailMask", words...), base)
	none := g.load(g.f(math.Inf(-1)))
	g.Label("eight")
	// The mask's first min(n, 8) lanes are set.
	g.XORQ(skip, skip)
	g.CMPQ(n, operand.I32(8))
	g.JGE(operand.LabelRef("masked"))
	g.MOVQ(operand.U32(8), skip)
	g.SUBQ(n, skip)
	g.Label("masked")
	g.VMOVUPS(operand.Mem{Base: base, Index: skip, Scale: 4}, mask)
	old, top, empty := g.YMM(), g.YMM(), g.YMM()
	g.VMASKMOVPS(operand.Mem{Base: m}, mask, old)
	g.VMOVUPS(operand.Mem{Base: ref}, top)
	g.VMAXPS(old, top, top)
	g.VMASKMOVPS(top, mask, operand.Mem{Base: m})
	// All hidden so far: take 0 for the maximum, so that exp gives 0 and not NaN.
	g.VCMPPS(operand.U8(0), none, top, empty)
	g.VANDNPS(top, empty, top)
	g.VMOVUPS(top, operand.Mem{Base: ref})
	g.VSUBPS(top, old, old)
	g.expNeg(old)
	g.VMOVUPS(old, operand.Mem{Base: alpha})
	for _, p := range []reg.GPVirtual{m, alpha, ref} {
		g.ADDQ(operand.I32(32), p)
	}
	g.SUBQ(operand.I32(8), n)
	g.JG(operand.LabelRef("eight"))
}

// probabilities writes exp(logit - ref) and updates l.
func (g *gen) probabilities() {
	logits, l, alpha, ref, n := g.param("logits"), g.param("l"), g.param("alpha"), g.param("ref"), g.param("n")
	at := g.GP64()
	g.XORQ(at, at)
	word := func(base reg.GPVirtual) operand.Mem { return operand.Mem{Base: base, Index: at, Scale: 4} }
	g.Label("row")
	top, s := g.YMM(), [2]vecr{}
	g.VBROADCASTSS(word(ref), top)
	for h := range s {
		s[h] = g.load(operand.Mem{Base: logits, Disp: 32 * h})
		g.VSUBPS(top, s[h], s[h])
	}
	g.expNeg(s[0], s[1])
	for h := range s {
		g.VMOVUPS(s[h], operand.Mem{Base: logits, Disp: 32 * h})
	}
	both, factor := g.YMM(), g.XMM()
	g.VADDPS(s[1], s[0], both)
	sum := g.fold(both, func(a, b, dst operand.Op) { g.VADDPS(a, b, dst) })
	g.VMOVSS(word(alpha), factor)
	g.VFMADD231SS(word(l), factor, sum) // sum + alpha·l
	g.VMOVSS(sum, word(l))
	g.ADDQ(operand.I32(64), logits)
	g.INCQ(at)
	g.CMPQ(at, n)
	g.JL(operand.LabelRef("row"))
}
