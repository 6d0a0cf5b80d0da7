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
// [n][16] with tiles of 8 rows.
func (c *asm) zWideFloats(name string) {
	for end, suffix := range wideEnds {
		c.zWideFloat(name+suffix, wideEnd(end))
	}
}

func (c *asm) zWideFloat(name string, end wideEnd) {
	args := c.begin(name)
	c.zero() // before any loop
	tiles := c.pointer(args, argTiles)
	x := c.loadSet(args, argActs, argActStride, 8)
	dst, stride := c.pointer(args, argDst), c.pointer(args, argDstStride)
	if end.finishes() {
		c.copyFinish(args)
	}
	c.loop(tiles, func() {
		w, n, start := c.pointer(args, argSlice), c.pointer(args, argN), c.GP64()
		c.MOVQ(x.base, start)
		var acc [8]reg.VecVirtual
		for m := range acc {
			acc[m] = c.zero()
		}
		if end.finishes() {
			c.fetchFinish(args, 8)
		}
		c.loop(n, func() {
			v := c.ZMM()
			c.VMOVUPS(operand.Mem{Base: w}, v)
			for m := range acc {
				c.VFMADD231PS_BCST(x.at(m, 0), v, acc[m])
			}
			c.advance(w, 64)
			c.advance(x.base, 4)
		})
		c.eachRow(dst, stride, func(m int, at operand.Mem) {
			if end.adds() {
				c.VADDPS(at, acc[m], acc[m])
			}
			if !end.finishes() {
				c.VMOVUPS(acc[m], at)
			}
		})
		if end.finishes() {
			c.zFinishRows(&acc, args)
		}
		c.LEAQ(operand.Mem{Base: start, Index: x.x1, Scale: 8}, x.base)
		c.LEAQ(operand.Mem{Base: dst, Index: stride, Scale: 8}, dst)
	})
	c.end()
}

// zFinishRows adds bias and residual, and writes the output.
func (c *asm) zFinishRows(acc *[8]reg.VecVirtual, args reg.Register) {
	bias := c.ZMM()
	c.VMOVUPS(operand.Mem{Base: c.pointer(args, argBias)}, bias)
	part := func(at, strideAt int, f func(m int, at operand.Mem)) {
		work, stride := c.pointer(args, argWork), c.pointer(args, strideAt)
		p := c.pointer(work, at)
		c.eachRow(p, stride, f)
		c.LEAQ(operand.Mem{Base: p, Index: stride, Scale: 8}, p)
		c.MOVQ(p, operand.Mem{Base: work, Disp: at})
	}
	part(workRes, argResStride, func(m int, at operand.Mem) {
		c.VADDPS(bias, acc[m], acc[m])
		c.VADDPS(at, acc[m], acc[m])
	})
	part(workOut, argOutStride, func(m int, at operand.Mem) { c.VMOVUPS(acc[m], at) })
}
