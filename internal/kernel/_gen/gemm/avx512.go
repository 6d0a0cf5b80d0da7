package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx512Kernels emits the AVX-512 tier with VNNI: the same set as avx2Kernels,
// with tiles of 8 rows, and one register for the 16 rows of a panel.
func avx512Kernels(ctx *build.Context) {
	c := newAsm(ctx)
	done := map[string]bool{}
	for _, f := range types {
		for _, m := range []int{1, 2, 4} {
			k := zKernel{asm: c, form: f, m: m}
			k.emit(fmt.Sprintf("avx512%sx%d", f.name, m))
		}
		u := zKernel{asm: c, form: f, m: 1}
		u.emitUnpack("avx512Unpack" + f.name)
		if name := f.zWideName(); !done[name] {
			done[name] = true
			k := zKernel{asm: c, form: f, m: 8, wide: true}
			k.emit("avx512" + name)
		}
	}
	for _, f := range floatTypes {
		for _, m := range []int{1, 2, 4} {
			k := zFloat{asm: c, floatType: f, m: m, parts: 4}
			k.emit(fmt.Sprintf("avx512%sx%d", f.name, m))
		}
		if f.bytes < 4 {
			k := zFloat{asm: c, floatType: f}
			k.unpackFloat("avx512Unpack" + f.name)
		}
	}
	c.zWideFloats("avx512WideFloat")
}

// zWideName is the name of the kernel for unpacked slices: all codes are
// unsigned, have an offset of 128 if any, and their sums never leave 32 bits.
func (f form) zWideName() string {
	return map[class]string{classOffset: "WideOffset", classMin: "WideMin", classSub: "WideSub", classSubMin: "WideSubMin"}[f.class]
}

// zKernel emits one AVX-512 kernel of an integer class; compare intKernel.
type zKernel struct {
	*asm
	form
	m    int
	wide bool

	plane [4]reg.GPVirtual
	slice reg.GPVirtual
	rows  rowSet
	super [2]reg.VecVirtual    // d and dmin of the super-block
	acc   [8][2]reg.VecVirtual // integer sums: of the block, or of its halves
	facc  [8]reg.VecVirtual
}

// rowSet addresses up to 8 rows at a constant stride.
type rowSet struct{ base, x1, x3, x5, x7 reg.GPVirtual }

func (r rowSet) at(m, disp int) operand.Mem {
	p := operand.Mem{Base: r.base, Disp: disp}
	switch m {
	case 1, 2, 4:
		return p.Idx(r.x1, uint8(m))
	case 3:
		return p.Idx(r.x3, 1)
	case 5:
		return p.Idx(r.x5, 1)
	case 6:
		return p.Idx(r.x3, 2)
	case 7:
		return p.Idx(r.x7, 1)
	}
	return p
}

// loadSet reads base and stride of m rows from args.
func (c *asm) loadSet(args reg.Register, base, stride, m int) (r rowSet) {
	r.base = c.pointer(args, base)
	if m > 1 {
		r.x1 = c.pointer(args, stride)
	}
	multiple := func(x reg.GPVirtual, scale uint8) reg.GPVirtual {
		p := c.GP64()
		c.LEAQ(operand.Mem{Base: x, Index: r.x1, Scale: scale}, p)
		return p
	}
	if m > 3 {
		r.x3 = multiple(r.x1, 2)
	}
	if m > 5 {
		r.x5, r.x7 = multiple(r.x1, 4), multiple(r.x3, 4)
	}
	return r
}

func (k *zKernel) emit(name string) {
	args := k.begin(name)
	k.zero() // before any loop
	k.holdConstants()
	if k.wide {
		k.emitWide(args)
	} else {
		k.emitPacked(args)
	}
	k.end()
}

// hold512 loads constants to registers for the rest of the function.
func (c *asm) hold512(names ...string) {
	for _, n := range names {
		r := c.ZMM()
		c.VMOVDQU32(c.mem(n), r)
		c.loaded[n] = r
	}
}

func (k *zKernel) holdConstants() {
	if k.wide {
		return
	}
	if k.offset > 0 {
		k.hold512(k.minusOffset())
	}
	switch k.bits[0] {
	case 8:
		k.hold512("signs8")
	default:
		k.hold512(map[int]string{2: "mask03", 4: "mask0f"}[k.bits[0]])
	}
	if k.bits[1] > 0 {
		k.hold512(highMask(k.bits))
	}
	if k.table != "" {
		k.hold512(k.unsignedTable())
	}
	if k.class >= classSub {
		k.hold512("halfOrder")
	}
}

func (k *zKernel) minusOffset() string { return fmt.Sprintf("minus%d", k.offset) }

func (k *zKernel) unsignedTable() string {
	if k.table == "iq4" {
		return "iq4Unsigned"
	}
	return k.table
}

func (k *zKernel) loadPlanes(args reg.Register) {
	for i := range k.plane {
		if i < 2 && k.bits[i] == 0 || i == 3 && k.form.super == 0 {
			continue
		}
		k.plane[i] = k.pointer(args, argPlane+8*i)
	}
}

func (k *zKernel) emitPacked(args reg.Register) {
	k.loadPlanes(args)
	k.fetchStart(k.form, k.plane)
	k.panels(args, func(panel, dst reg.GPVirtual) {
		k.loadPlanes(args)
		for _, p := range k.plane {
			if p != nil {
				k.ADDQ(panel, p)
			}
		}
		k.rows = k.loadSet(args, argActs, argActStride, k.m)
		for m := range k.m {
			k.facc[m] = k.zero()
		}
		k.eachBlock(args, func() {
			k.prefetch()
			k.dots(k.packedCode)
			k.finish(k.packedScales())
			k.advance(k.rows.base, recordBytes)
			k.advancePlanes()
		})
		out := k.loadSet(args, argDst, argDstStride, k.m)
		k.ADDQ(dst, out.base)
		for m := range k.m {
			k.VMOVUPS(k.facc[m], out.at(m, 0))
		}
	})
}

// eachBlock loops over the blocks of packed planes, and super-blocks.
func (k *zKernel) eachBlock(args reg.Register, body func()) {
	n := k.pointer(args, argN)
	if k.form.super == 0 {
		k.loop(n, body)
		return
	}
	for i := range k.form.super / 32 {
		k.super[i] = k.ZMM()
	}
	k.SHRQ(operand.Imm(3), n)
	k.loop(n, func() {
		k.fetch(k.plane[3], k.form.super, prefetchAhead/4, true)
		for i := range k.form.super / 32 {
			k.VCVTPH2PS(operand.Mem{Base: k.plane[3], Disp: 32 * i}, k.super[i])
		}
		k.advance(k.plane[3], k.form.super)
		inner := k.GP64()
		k.MOVQ(operand.U32(8), inner)
		k.loop(inner, body)
	})
}

func (k *zKernel) emitWide(args reg.Register) {
	tiles := k.pointer(args, argTiles)
	k.rows = k.loadSet(args, argActs, argActStride, k.m)
	dst, stride := k.pointer(args, argDst), k.pointer(args, argDstStride)
	k.loop(tiles, func() {
		k.slice = k.pointer(args, argSlice)
		start := k.GP64()
		k.MOVQ(k.rows.base, start)
		for m := range k.m {
			k.facc[m] = k.zero()
		}
		k.eachRow(dst, stride, func(m int, at operand.Mem) { k.VMOVUPS(at, k.facc[m]) })
		k.loop(k.pointer(args, argN), func() {
			k.dots(k.wideCode)
			k.finish(k.wideScales())
			k.advance(k.rows.base, recordBytes)
			k.advance(k.slice, sliceBytes)
		})
		k.eachRow(dst, stride, func(m int, at operand.Mem) { k.VMOVUPS(k.facc[m], at) })
		k.LEAQ(operand.Mem{Base: start, Index: k.rows.x1, Scale: 8}, k.rows.base)
		k.LEAQ(operand.Mem{Base: dst, Index: stride, Scale: 8}, dst)
	})
}

// eachRow visits the 8 result rows of a tile with one more register only.
func (c *asm) eachRow(dst, stride reg.GPVirtual, f func(m int, at operand.Mem)) {
	p := c.GP64()
	c.MOVQ(dst, p)
	for m := range 8 {
		f(m, operand.Mem{Base: p})
		if m < 7 {
			c.ADDQ(stride, p)
		}
	}
}

// zero is a new register of zeros. It is a copy, because avo takes VPXORD of a
// register with itself for a use of it.
func (c *asm) zero() reg.VecVirtual {
	const name = "zero"
	if c.loaded[name] == nil {
		r := c.ZMM()
		c.VPXORD(r, r, r)
		c.loaded[name] = r
	}
	z := c.ZMM()
	c.VMOVDQA32(c.loaded[name], z)
	return z
}

func (k *zKernel) prefetch() {
	k.fetchBlock(k.form, k.plane)
}

func (k *zKernel) advancePlanes() {
	for i, bits := range k.bits {
		if bits > 0 {
			k.advance(k.plane[i], bits*unit)
		}
	}
	k.advance(k.plane[2], scaleBytes[k.scale])
}

// halves is the number of integer sums of a block and row. One row has two in
// any case, so that chains are short.
func (k *zKernel) halves() int {
	if k.class >= classSub || k.m == 1 {
		return 2
	}
	return 1
}

// dots sums the products of a block in 32 bits, starting at −offset·Σx. For
// slices, whose offset is 128, that is in the record.
func (k *zKernel) dots(code func(g int) reg.VecVirtual) {
	for m := range k.m {
		for half := range 2 {
			switch {
			case half < k.halves() && k.wide && k.offset > 0:
				k.acc[m][half] = k.ZMM()
				at := recBias
				if k.halves() == 2 {
					at += 4 + 4*half
				}
				k.VPBROADCASTD(k.rows.at(m, at), k.acc[m][half])
			case half < k.halves():
				k.acc[m][half] = k.zero()
			}
			if k.offset > 0 && !k.wide {
				k.VPDPWSSD_BCST(k.rows.at(m, recHalf+4*half), k.loaded[k.minusOffset()], k.acc[m][half%k.halves()])
			}
		}
	}
	for g := range 8 {
		w := code(g)
		for m := range k.m {
			k.VPDPBUSD_BCST(k.rows.at(m, 4*g), w, k.acc[m][g/4%k.halves()])
		}
	}
	if k.halves() == 2 && k.class < classSub {
		for m := range k.m {
			k.VPADDD(k.acc[m][1], k.acc[m][0], k.acc[m][0])
		}
	}
}

// finish turns the integer sums of a block to floats and adds them up. Sums of
// halves times integer scales stay below 2²⁴, so floats compute them exactly.
func (k *zKernel) finish(scale, low operand.Op) {
	var sub [2]operand.Op
	if k.class >= classSub {
		sub = k.halfScales()
	}
	var subMin reg.VecVirtual
	if k.class == classSubMin {
		subMin = k.halfMins()
	} else { // used by all rows; of the other class there are registers too few
		scale, low = k.inRegister(scale), k.inRegister(low)
	}
	for m := range k.m {
		if k.class == classSubMin {
			k.subtractMins(m, low, subMin)
		}
		sum := k.acc[m][0]
		k.VCVTDQ2PS(sum, sum)
		if k.class >= classSub {
			k.VMULPS(sub[0], sum, sum)
			k.VCVTDQ2PS(k.acc[m][1], k.acc[m][1])
			k.VFMADD231PS(sub[1], k.acc[m][1], sum)
		}
		sx, p := k.ZMM(), k.ZMM()
		k.VBROADCASTSS(k.rows.at(m, recScale), sx)
		k.VMULPS(scale, sx, p)
		k.VFMADD231PS(p, sum, k.facc[m])
		switch {
		case k.class == classMin && k.scale == scaleU8Min && !k.wide:
			k.VBROADCASTSS(k.rows.at(m, recSum), sx)
			k.VFNMADD231PS(low, sx, k.facc[m])
		case k.class == classMin:
			k.VBROADCASTSS(k.rows.at(m, recSum), sx)
			k.VFMADD231PS(low, sx, k.facc[m])
		}
	}
}

// inRegister loads an operand that many instructions use; nil stays nil.
func (k *zKernel) inRegister(v operand.Op) operand.Op {
	if m, ok := v.(operand.Mem); ok {
		r := k.ZMM()
		k.VMOVUPS(m, r)
		return r
	}
	return v
}

// subtractMins takes dmin·scale·Σ_half m·Σx off the sum of a row.
func (k *zKernel) subtractMins(m int, dmin operand.Op, low reg.VecVirtual) {
	t := k.zero()
	k.VPDPWSSD_BCST(k.rows.at(m, recPair), low, t)
	k.VCVTDQ2PS(t, t)
	p := k.ZMM()
	k.VBROADCASTSS(k.rows.at(m, recScale), p)
	k.VMULPS(dmin, p, p)
	k.VFNMADD231PS(t, p, k.facc[m])
}
