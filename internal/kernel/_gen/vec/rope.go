package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ropes emits the two layouts of the rotary embedding.
func ropes(g *gen) {
	g.ropeHalf()
	g.ropePairs()
}

// blocks emits a loop that takes step elements at a time and one masked rest.
func (g *gen) blocks(n reg.GPVirtual, step int, full func(), rest func()) {
	g.Label("loop")
	g.CMPQ(n, operand.I32(int32(step)))
	g.JL(operand.LabelRef("tail"))
	full()
	g.SUBQ(operand.I32(int32(step)), n)
	g.JMP(operand.LabelRef("loop"))
	g.Label("tail")
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef("done"))
	rest()
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}

func (g *gen) ropeHalf() {
	g.begin("ropeHalfAVX2", "func(a, b, cos, sin *float32, n int)", "ropeHalfAVX2 turns the pairs (a[i], b[i]).")
	p := g.pointers([]string{"a", "b", "cos", "sin"})
	n := g.pointer("n")
	turn := func(v []vecr) {
		a, b, c, s := v[0], v[1], v[2], v[3]
		bs, as := g.YMM(), g.YMM()
		g.VMULPS(s, b, bs)
		g.VMULPS(s, a, as)
		g.VFMSUB213PS(bs, c, a) // a·c - b·s
		g.VFMADD213PS(as, c, b) // b·c + a·s
	}
	g.blocks(n, 8, func() {
		var v []vecr
		for _, r := range p {
			v = append(v, g.load(operand.Mem{Base: r}))
		}
		turn(v)
		g.VMOVUPS(v[0], operand.Mem{Base: p[0]})
		g.VMOVUPS(v[1], operand.Mem{Base: p[1]})
		g.advance(p, 32)
	}, func() {
		mask := g.tailMask(n)
		var v []vecr
		for _, r := range p {
			x := g.YMM()
			g.VMASKMOVPS(operand.Mem{Base: r}, mask, x)
			v = append(v, x)
		}
		turn(v)
		g.VMASKMOVPS(v[0], mask, operand.Mem{Base: p[0]})
		g.VMASKMOVPS(v[1], mask, operand.Mem{Base: p[1]})
	})
}

func (g *gen) ropePairs() {
	g.begin("ropePairsAVX2", "func(x, cos, sin *float32, n int)", "ropePairsAVX2 turns the n pairs (x[2i], x[2i+1]).")
	x, cos, sin, n := g.pointer("x"), g.pointer("cos"), g.pointer("sin"), g.pointer("n")
	index := g.load(g.table("twice", 0, 0, 1, 1, 2, 2, 3, 3))
	turn := func(v, c, s vecr) {
		g.VPERMPS(c, index, c)
		g.VPERMPS(s, index, s)
		w := g.YMM()
		g.VPERMILPS(operand.U8(0xb1), v, w)
		g.VMULPS(s, w, w)
		g.VFMADDSUB213PS(w, c, v) // u·c - v·s in even lanes, v·c + u·s in odd ones
	}
	g.blocks(n, 4, func() {
		v, c, s := g.load(operand.Mem{Base: x}), g.YMM(), g.YMM()
		g.VMOVUPS(operand.Mem{Base: cos}, c.AsX())
		g.VMOVUPS(operand.Mem{Base: sin}, s.AsX())
		turn(v, c, s)
		g.VMOVUPS(v, operand.Mem{Base: x})
		g.advance(ptrs{x}, 32)
		g.advance(ptrs{cos, sin}, 16)
	}, func() {
		mask := g.tailMask(n)
		v, c, s := g.YMM(), g.YMM(), g.YMM()
		g.VMASKMOVPS(operand.Mem{Base: cos}, mask.AsX(), c.AsX())
		g.VMASKMOVPS(operand.Mem{Base: sin}, mask.AsX(), s.AsX())
		g.ADDQ(n, n)
		wide := g.tailMask(n)
		g.VMASKMOVPS(operand.Mem{Base: x}, wide, v)
		turn(v, c, s)
		g.VMASKMOVPS(v, wide, operand.Mem{Base: x})
	})
}
