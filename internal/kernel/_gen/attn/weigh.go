package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
)

// weigh emits acc[r] = alpha[r]·acc[r] + Σ p[r][j]·v[j] over the first keys j, in
// ascending order, by fused multiply-add. width is a multiple of 8. Columns go in
// groups that give at least six sums in flight where there are so many.
func (g *gen) weigh(e elem) {
	name := "weigh" + e.name + "AVX2"
	g.begin(name, fmt.Sprintf("func(acc *float32, accStride int, p, alpha *float32, v *%s, vStride, width, keys, rows int)", e.goType),
		name+" computes acc[r] = alpha[r]·acc[r] + Σ p[r][j]·v[j] for rows r of width columns; p's rows are 16 apart.")
	acc, stride, p, alpha := g.param("acc"), g.param("accStride"), g.param("p"), g.param("alpha")
	v, vStride, rows := g.param("v"), g.param("vStride"), g.param("rows")
	g.SHLQ(operand.U8(2), stride)
	g.SHLQ(operand.U8(e.size/2), vStride)
	g.blocks(rows, func(n int) {
		at, vcol, left := g.rows(acc, stride, n), g.GP64(), g.param("width")
		g.MOVQ(v, vcol)
		groups := map[int][]int{1: {8, 2, 1}, 2: {4, 1}, 3: {2, 1}, 4: {2, 1}, 6: {2, 1}}[n]
		for _, w := range groups {
			label := fmt.Sprintf("r%dw%d", n, w)
			g.Label(label)
			g.CMPQ(left, operand.I32(int32(8*w)))
			g.JL(operand.LabelRef(label + "end"))
			var sum [6][8]vecr
			for r := range n {
				b := g.YMM()
				g.VBROADCASTSS(operand.Mem{Base: alpha, Disp: 4 * r}, b)
				for c := range w {
					sum[r][c] = g.YMM()
					g.VMULPS(at.at(r, 32*c), b, sum[r][c])
				}
			}
			vp, pp := g.GP64(), g.GP64()
			g.MOVQ(vcol, vp)
			g.MOVQ(p, pp)
			g.repeat(label+"k", "keys", func(i int) {
				// Values first where several rows share them; a single row has no
				// registers for eight.
				var vs [8]vecr
				if n > 1 {
					for c := range w {
						vs[c] = g.YMM()
						g.widen(e, operand.Mem{Base: vp, Disp: 8 * c * e.size}, vs[c])
					}
				}
				for r := range n {
					b := g.YMM()
					g.VBROADCASTSS(operand.Mem{Base: pp, Disp: 64*r + 4*i}, b)
					for c := range w {
						x := vs[c]
						if n == 1 {
							x = g.YMM()
							g.widen(e, operand.Mem{Base: vp, Disp: 8 * c * e.size}, x)
						}
						g.VFMADD231PS(x, b, sum[r][c])
					}
				}
				g.ADDQ(vStride, vp)
			}, func(i int) { g.ADDQ(operand.I32(int32(4*i)), pp) })
			for r := range n {
				for c := range w {
					g.VMOVUPS(sum[r][c], at.at(r, 32*c))
				}
			}
			g.advance(at, 32*w)
			g.ADDQ(operand.I32(int32(8*w*e.size)), vcol)
			g.SUBQ(operand.I32(int32(8*w)), left)
			g.JMP(operand.LabelRef(label))
			g.Label(label + "end")
		}
		for range n {
			g.ADDQ(stride, acc)
		}
		g.ADDQ(operand.I32(int32(64*n)), p)
		g.ADDQ(operand.I32(int32(4*n)), alpha)
	})
}
