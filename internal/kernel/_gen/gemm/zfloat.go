package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// zFloat emits AVX-512 kernels of float weights; compare floatKernel, whose
// chains and order of sums these have.
type zFloat struct {
	*asm
	floatType
	m, parts int
	w        reg.GPVirtual
	rows     rowSet
	acc      [4][4]reg.VecVirtual // [part][row]
	total    [4]reg.VecVirtual
}

func (k *zFloat) emit(name string) {
	args := k.begin(name)
	k.zero() // before any loop
	k.panels(args, func(panel, dst reg.GPVirtual) {
		k.w = k.pointer(args, argPlane)
		k.ADDQ(panel, k.w)
		k.rows = k.loadSet(args, argActs, argActStride, k.m)
		for m := range k.m {
			k.total[m] = k.zero()
		}
		k.wholeRow(k.pointer(args, argN))
		out := k.loadSet(args, argDst, argDstStride, k.m)
		k.ADDQ(dst, out.base)
		for m := range k.m {
			k.VMOVUPS(k.total[m], out.at(m, 0))
		}
	})
	k.end()
}

// wholeRow adds up n values of a row: many segments at once, one, what is left.
func (k *zFloat) wholeRow(n reg.GPVirtual) {
	if k.parts > 1 {
		k.whileAtLeast(n, k.parts*segment, func() {
			k.segments(k.parts)
			k.advance(k.w, (k.parts-1)*k.segmentBytes())
			k.advance(k.rows.base, (k.parts-1)*segment*4)
		})
	}
	k.whileAtLeast(n, segment, func() { k.segments(1) })
	k.TESTQ(n, n)
	k.skip(k.JZ, func() { k.rest(n) })
}

func (k *zFloat) segmentBytes() int { return segment * 16 * k.bytes }

// segments runs so many segments at once and adds their sums up.
func (k *zFloat) segments(parts int) {
	k.clear(parts)
	n := k.GP64()
	k.MOVQ(operand.U32(uint32(segment/k.group)), n)
	k.loop(n, func() {
		for p := range parts {
			k.PREFETCHT0(operand.Mem{Base: k.w, Disp: (p + parts) * k.segmentBytes()})
		}
		for i := range k.group {
			k.step(parts, i)
		}
		k.next()
	})
	k.addSums(parts)
}

// rest is the incomplete last segment of n values.
func (k *zFloat) rest(n reg.GPVirtual) {
	k.clear(1)
	if k.group == 1 {
		k.loop(n, func() { k.step(1, 0); k.next() })
	} else {
		pairs := k.GP64()
		k.MOVQ(n, pairs)
		k.SHRQ(operand.Imm(1), pairs)
		k.skip(k.JZ, func() {
			k.loop(pairs, func() { k.step(1, 0); k.step(1, 1); k.next() })
		})
		k.TESTQ(operand.U32(1), n)
		k.skip(k.JZ, func() { k.step(1, 0) })
	}
	k.addSums(1)
}

func (k *zFloat) clear(parts int) {
	for p := range parts {
		for m := range k.m {
			k.acc[p][m] = k.zero()
		}
	}
}

func (k *zFloat) step(parts, i int) {
	for p := range parts {
		w := k.weight(p, i)
		for m := range k.m {
			k.VFMADD231PS_BCST(k.rows.at(m, p*segment*4+4*i), w, k.acc[p][m])
		}
	}
}

// weight reads value i of a group for 16 rows as floats.
func (k *zFloat) weight(part, i int) reg.VecVirtual {
	w := k.ZMM()
	src := operand.Mem{Base: k.w, Disp: part * k.segmentBytes()}
	switch k.name {
	case "F32":
		k.VMOVUPS(src, w)
	case "F16":
		k.VCVTPH2PS(src, w)
	case "BF16":
		if i == 0 {
			k.VMOVDQU32(src, w)
			k.VPSLLD(operand.Imm(16), w, w)
		} else {
			k.VMOVDQU32(src, w)
			k.VPANDD(k.mem("high16"), w, w)
		}
	}
	return w
}

func (k *zFloat) next() {
	k.advance(k.w, 16*k.bytes*k.group)
	k.advance(k.rows.base, 4*k.group)
}

func (k *zFloat) addSums(parts int) {
	for m := range k.m {
		for p := range parts {
			k.VADDPS(k.acc[p][m], k.total[m], k.total[m])
		}
	}
}

// unpackFloat emits the conversion of n values of 16 rows to float32 [n][16].
func (k *zFloat) unpackFloat(name string) {
	args := k.begin(name)
	k.w = k.pointer(args, argPlane)
	dst, n := k.pointer(args, argSlice), k.pointer(args, argN)
	if k.group == 2 { // a pair whose second value does not exist is zero
		k.INCQ(n)
		k.SHRQ(operand.Imm(1), n)
	}
	k.loop(n, func() {
		for i := range k.group {
			k.VMOVUPS(k.weight(0, i), operand.Mem{Base: dst, Disp: 64 * i})
		}
		k.advance(k.w, 16*k.bytes*k.group)
		k.advance(dst, 64*k.group)
	})
	k.end()
}

// zWideFloats emits the kernels that multiply one segment of float weights
// [n][16] with tiles of 8 rows: of one panel, and of two panels at a time, which
// load less for a product.
func (c *asm) zWideFloats(name string) {
	for end, suffix := range wideEnds {
		c.zWideFloat(name+suffix, wideEnd(end), 1)
	}
	for end, suffix := range wideEnds {
		c.zWideFloat(name+"Pair"+suffix, wideEnd(end), 2)
	}
}

// zSums are the sums of a tile, a register a panel and row.
type zSums [][8]reg.VecVirtual

func (c *asm) zWideFloat(name string, end wideEnd, panels int) {
	args := c.begin(name)
	c.zero() // before any loop
	tiles := c.pointer(args, argTiles)
	x := c.loadSet(args, argActs, argActStride, 8)
	dst, stride := c.pointer(args, argDst), c.pointer(args, argDstStride)
	next := c.pointer(args, argNext)
	if end.finishes() {
		c.copyFinish(args)
	}
	c.loop(tiles, func() {
		acc := make(zSums, panels)
		for h := range acc {
			for m := range acc[h] {
				acc[h][m] = c.zero()
			}
		}
		if end.finishes() {
			c.fetchFinish(args, 8, panels)
		}
		c.zSegment(acc, x, args, next)
		c.eachRow(dst, stride, func(m int, at operand.Mem) {
			for h := range acc {
				if end.adds() {
					c.VADDPS(at.Offset(64*h), acc[h][m], acc[h][m])
				}
				if !end.finishes() {
					c.VMOVUPS(acc[h][m], at.Offset(64*h))
				}
			}
		})
		if end.finishes() {
			c.zFinishRows(acc, args)
		}
		done := c.pointer(args, argN)
		c.SHLQ(operand.U8(2), done)
		c.SUBQ(done, x.base)
		c.LEAQ(operand.Mem{Base: x.base, Index: x.x1, Scale: 8}, x.base)
		c.LEAQ(operand.Mem{Base: dst, Index: stride, Scale: 8}, dst)
	})
	c.end()
}

// zSegment adds n products a sum; the base of x is moved on. Meanwhile it fetches
// the panels that come next for the second-level cache, as wideSegment does.
func (c *asm) zSegment(acc zSums, x rowSet, args reg.Register, next reg.GPVirtual) {
	w, n := [2]reg.GPVirtual{c.pointer(args, argSlice)}, c.pointer(args, argN)
	if len(acc) > 1 {
		w[1] = c.pointer(args, argSecond)
	}
	step := func(i int) {
		var v [2]reg.VecVirtual
		for h := range acc {
			v[h] = c.ZMM()
			at := operand.Mem{Base: w[0], Disp: 64 * i}
			if h > 0 {
				at = at.Idx(w[h], 1)
			}
			c.VMOVUPS(at, v[h])
		}
		for m := range acc[0] {
			if len(acc) == 1 {
				c.VFMADD231PS_BCST(x.at(m, 4*i), v[0], acc[0][m])
				continue
			}
			value := c.ZMM()
			c.VBROADCASTSS(x.at(m, 4*i), value)
			for h := range acc {
				c.VFMADD231PS(v[h], value, acc[h][m])
			}
		}
	}
	c.whileAtLeast(n, floatUnroll, func() {
		for i := range floatUnroll {
			step(i)
		}
		c.PREFETCHT1(operand.Mem{Base: next})
		if len(acc) > 1 {
			c.PREFETCHT1(operand.Mem{Base: next, Index: c.pointer(args, argPanel), Scale: 1})
		}
		c.advance(next, 64)
		c.advance(w[0], 64*floatUnroll)
		c.advance(x.base, 4*floatUnroll)
	})
	c.TESTQ(n, n)
	c.skip(c.JZ, func() { c.loop(n, func() { step(0); c.advance(w[0], 64); c.advance(x.base, 4) }) })
}

// zFinishRows adds bias and residual, and writes the output.
func (c *asm) zFinishRows(acc zSums, args reg.Register) {
	part := func(at, strideAt int, f func(m int, at operand.Mem)) {
		work, stride := c.pointer(args, argWork), c.pointer(args, strideAt)
		p := c.pointer(work, at)
		c.eachRow(p, stride, f)
		c.LEAQ(operand.Mem{Base: p, Index: stride, Scale: 8}, p)
		c.MOVQ(p, operand.Mem{Base: work, Disp: at})
	}
	bias := operand.Mem{Base: c.pointer(args, argBias)}
	for h := range acc {
		b := c.ZMM()
		c.VMOVUPS(bias.Offset(64*h), b)
		for m := range acc[h] {
			c.VADDPS(b, acc[h][m], acc[h][m])
		}
	}
	part(workRes, argResStride, func(m int, at operand.Mem) {
		for h := range acc {
			c.VADDPS(at.Offset(64*h), acc[h][m], acc[h][m])
		}
	})
	part(workOut, argOutStride, func(m int, at operand.Mem) {
		for h := range acc {
			c.VMOVUPS(acc[h][m], at.Offset(64*h))
		}
	})
}
