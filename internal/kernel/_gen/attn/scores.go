package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
)

// scores emits q·k for rows of q and a key tile [dk][16]: each of a row's 16 sums
// runs over d in ascending order, by fused multiply-add.
func (g *gen) scores(e elem) {
	name := "scores" + e.name + "AVX2"
	g.begin(name, fmt.Sprintf("func(out, q *float32, qStride int, k *%s, dk, rows int)", e.goType),
		name+" computes out[r][j] = q[r]·k[·][j] for rows r and the 16 keys j of a tile.")
	out, q, stride := g.param("out"), g.param("q"), g.param("qStride")
	k, rows := g.param("k"), g.param("rows")
	g.SHLQ(operand.U8(2), stride)
	g.blocks(rows, func(n int) {
		var acc [6][2]vecr
		for r := range n {
			for h := range 2 {
				acc[r][h] = g.YMM()
				g.VXORPS(acc[r][h], acc[r][h], acc[r][h])
			}
		}
		qs, kp := g.rows(q, stride, n), g.GP64()
		g.MOVQ(k, kp)
		g.repeat(fmt.Sprintf("d%d", n), "dk", func(i int) {
			keys := [2]vecr{g.YMM(), g.YMM()}
			for h := range keys {
				g.widen(e, operand.Mem{Base: kp, Disp: (16*i + 8*h) * e.size}, keys[h])
			}
			for r := range n {
				b := g.YMM()
				g.VBROADCASTSS(qs.at(r, 4*i), b)
				for h := range keys {
					g.VFMADD231PS(keys[h], b, acc[r][h])
				}
			}
		}, func(i int) {
			g.advance(qs, 4*i)
			g.ADDQ(operand.I32(int32(16*i*e.size)), kp)
		})
		for r := range n {
			for h := range 2 {
				g.VMOVUPS(acc[r][h], operand.Mem{Base: out, Disp: 64*r + 32*h})
			}
		}
		g.ADDQ(operand.I32(int32(64*n)), out)
		for range n {
			g.ADDQ(stride, q)
		}
	})
}
