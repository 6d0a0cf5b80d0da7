package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
)

func (g *gen) zero() vecr {
	v := g.YMM()
	g.VXORPS(v, v, v)
	return v
}

func (g *gen) add(a, b, dst operand.Op) { g.VADDPS(a, b, dst) }

// storeSum adds the partial sums and returns them.
func (g *gen) storeSum(acc []vecr) {
	x := g.fold(acc, g.add)
	g.VZEROUPPER() // before the store, which is of the older kind; see scalar
	g.Store(x, g.ReturnIndex(0))
	g.RET()
}

// reductions emits the sums, the maximum and the search.
func reductions(g *gen) {
	g.reduce(reduction{
		name: "sumAVX2", doc: "sumAVX2 is the sum of x.", signature: "func(x *float32, n int) float32",
		names: []string{"x"}, begin: g.zero, finish: g.storeSum,
		step: func(_, in []vecr, _ *vecr, acc vecr) vecr { g.VADDPS(in[0], acc, acc); return nil },
	})
	g.reduce(reduction{
		name: "sumSquaresAVX2", doc: "sumSquaresAVX2 is the sum of (x - mean)².", signature: "func(x *float32, mean float32, n int) float32",
		names: []string{"x"}, scalars: []string{"mean"}, begin: g.zero, finish: g.storeSum,
		step: func(s, in []vecr, mask *vecr, acc vecr) vecr {
			g.VSUBPS(s[0], in[0], in[0])
			if mask != nil {
				g.VANDPS(*mask, in[0], in[0])
			}
			g.VFMADD231PS(in[0], in[0], acc)
			return nil
		},
	})
	g.reduce(reduction{
		name: "dotAVX2", doc: "dotAVX2 is the sum of x · y.", signature: "func(x, y *float32, n int) float32",
		names: []string{"x", "y"}, begin: g.zero, finish: g.storeSum,
		step: func(_, in []vecr, _ *vecr, acc vecr) vecr { g.VFMADD231PS(in[0], in[1], acc); return nil },
	})
	g.reduce(reduction{
		name: "decayDotAVX2", doc: "decayDotAVX2 computes dst = a · s + b · u and returns the sum of dst · c.",
		signature: "func(dst, s, u, c *float32, a, b float32, n int) float32",
		names:     []string{"s", "u", "c"}, scalars: []string{"a", "b"}, dst: "dst", begin: g.zero, finish: g.storeSum,
		step: func(s, in []vecr, mask *vecr, acc vecr) vecr {
			g.VMULPS(s[0], in[0], in[0])
			g.VFMADD231PS(s[1], in[1], in[0])
			if mask != nil {
				g.VANDPS(*mask, in[0], in[0])
			}
			g.VFMADD231PS(in[0], in[2], acc)
			return in[0]
		},
	})
	g.expSum()
	g.maximum()
	g.find()
}

// expSum emits dst = exp(x - m) with its sum.
func (g *gen) expSum() {
	g.reduce(reduction{
		name: "expSumAVX2", doc: "expSumAVX2 computes dst = exp(x - m) and returns the sum.",
		signature: "func(dst, x *float32, m float32, n int) float32",
		names:     []string{"x"}, scalars: []string{"m"}, dst: "dst", begin: g.zero, finish: g.storeSum,
		step: func(s, in []vecr, mask *vecr, acc vecr) vecr {
			g.VSUBPS(s[0], in[0], in[0])
			e := g.exp(in[0])
			if mask != nil {
				g.VANDPS(*mask, e, e)
			}
			g.VADDPS(e, acc, acc)
			return e
		},
	})
}

// maximum emits the maximum; NaN is told apart, because VMAXPS drops it or not by
// the order of its sources.
func (g *gen) maximum() {
	var nan vecr
	g.reduce(reduction{
		name: "maxAVX2", doc: "maxAVX2 is the largest element of x; nan is not 0 if there is a NaN.",
		signature: "func(x *float32, n int) (m float32, nan uint32)", names: []string{"x"},
		begin: func() vecr {
			if nan == nil {
				nan = g.zero()
			}
			return g.load(g.f(math.Inf(-1)))
		},
		step: func(_, in []vecr, mask *vecr, acc vecr) vecr {
			c := g.YMM()
			g.VCMPPS(operand.U8(3), in[0], in[0], c) // unordered
			g.VORPS(c, nan, nan)
			if mask != nil {
				low := g.load(g.f(math.Inf(-1)))
				g.VBLENDVPS(*mask, in[0], low, in[0])
			}
			g.VMAXPS(in[0], acc, acc)
			return nil
		},
		finish: func(acc []vecr) {
			x := g.fold(acc, func(a, b, dst operand.Op) { g.VMAXPS(a, b, dst) })
			bits := g.GP32()
			g.VMOVMSKPS(nan, bits)
			g.VZEROUPPER()
			g.Store(x, g.Return("m"))
			g.Store(bits, g.Return("nan"))
			g.RET()
		},
	})
}

// find emits the search for the first element equal to m.
func (g *gen) find() {
	g.begin("findAVX2", "func(x *float32, m float32, n int) int", "findAVX2 is the lowest index of an element equal to m, n if there is none.")
	x, n, m := g.pointer("x"), g.pointer("n"), g.scalar("m")
	at, bits, c := g.GP64(), g.GP32(), g.YMM()
	g.XORQ(at, at)
	g.Label("loop")
	g.CMPQ(n, operand.I32(8))
	g.JL(operand.LabelRef("tail"))
	g.VCMPPS(operand.U8(0), operand.Mem{Base: x}, m, c)
	g.VMOVMSKPS(c, bits)
	g.TESTL(bits, bits)
	g.JNZ(operand.LabelRef("found"))
	g.ADDQ(operand.I32(32), x)
	g.ADDQ(operand.I32(8), at)
	g.SUBQ(operand.I32(8), n)
	g.JMP(operand.LabelRef("loop"))
	g.Label("tail")
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef("none"))
	mask := g.tailMask(n)
	g.VMASKMOVPS(operand.Mem{Base: x}, mask, c)
	g.VCMPPS(operand.U8(0), c, m, c)
	g.VANDPS(mask, c, c)
	g.VMOVMSKPS(c, bits)
	g.TESTL(bits, bits)
	g.JZ(operand.LabelRef("none"))
	g.Label("found")
	g.BSFL(bits, bits)
	g.ADDQ(bits.As64(), at)
	g.Store(at, g.ReturnIndex(0))
	g.VZEROUPPER()
	g.RET()
	g.Label("none")
	g.ADDQ(n, at)
	g.Store(at, g.ReturnIndex(0))
	g.VZEROUPPER()
	g.RET()
}
