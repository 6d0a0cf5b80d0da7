package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// intKernel emits one AVX2 kernel of an integer class: M activation rows times
// a panel, or a slice of it that lies unpacked in Scratch (wide). A panel is
// two halves of 8 rows, one YMM register each.
type intKernel struct {
	*asm
	form
	m    int
	wide bool

	plane [4]reg.GPVirtual // packed: low codes, high codes, scales, super-scales
	slice reg.GPVirtual    // wide: the block of the unpacked slice
	work  reg.GPVirtual
	rows  rowPointers

	acc  [4][2]reg.VecVirtual // integer sums of the block or half
	facc [2]reg.VecVirtual    // float sums, of one row; more rows keep them in work
}

// rowPointers addresses up to 4 rows at a constant stride.
type rowPointers struct{ base, stride, triple reg.GPVirtual }

func (r rowPointers) at(m, disp int) operand.Mem {
	p := operand.Mem{Base: r.base, Disp: disp}
	switch m {
	case 1:
		return p.Idx(r.stride, 1)
	case 2:
		return p.Idx(r.stride, 2)
	case 3:
		return p.Idx(r.triple, 1)
	}
	return p
}

// loadRows reads base and stride of rows from args.
func (c *asm) loadRows(args reg.Register, base, stride, m int) (r rowPointers) {
	r.base = c.pointer(args, base)
	if m > 1 {
		r.stride = c.pointer(args, stride)
	}
	if m > 3 {
		r.triple = c.GP64()
		c.LEAQ(operand.Mem{Base: r.stride, Index: r.stride, Scale: 2}, r.triple)
	}
	return r
}

func (k *intKernel) emit(name string) {
	args := k.begin(name)
	k.work = k.pointer(args, argWork)
	k.holdConstants()
	if k.wide {
		k.emitWide(args)
	} else {
		k.emitPacked(args)
	}
	k.end()
}

// emitPacked computes M rows from packed panels, from zero.
func (k *intKernel) emitPacked(args reg.Register) {
	k.loadPlanes(args)
	k.fetchStart(k.form, k.plane)
	k.panels(args, func(panel, dst reg.GPVirtual) {
		k.loadPlanes(args)
		for _, p := range k.plane {
			if p != nil {
				k.ADDQ(panel, p)
			}
		}
		k.rows = k.loadRows(args, argActs, argActStride, k.m)
		k.zeroSums()
		k.eachBlock(args, k.packedBlock)
		out := k.loadRows(args, argDst, argDstStride, k.m)
		k.ADDQ(dst, out.base)
		k.storeSums(out)
	})
}

// eachBlock loops over the blocks of packed planes, and super-blocks.
func (k *intKernel) eachBlock(args reg.Register, body func()) {
	n := k.pointer(args, argN)
	if k.super == 0 {
		k.loop(n, body)
		return
	}
	k.SHRQ(operand.Imm(3), n)
	k.loop(n, func() {
		k.loadSuper()
		inner := k.GP64()
		k.MOVQ(operand.U32(8), inner)
		k.loop(inner, body)
	})
}

func (k *intKernel) loadPlanes(args reg.Register) {
	for i := range k.plane {
		if i < 2 && k.bits[i] == 0 || i == 3 && k.super == 0 {
			continue
		}
		k.plane[i] = k.pointer(args, argPlane+8*i)
	}
}

// holdConstants keeps constants in registers where there are enough of them.
func (k *intKernel) holdConstants() {
	if k.table != "" && !k.wide {
		k.hold(k.table)
	}
	if k.m > 2 {
		return
	}
	k.hold("ones16")
	if k.wide || k.bits[0] == 8 {
		return
	}
	k.hold(map[int]string{2: "mask03", 4: "mask0f"}[k.bits[0]])
	if k.bits[1] > 0 {
		k.hold(highMask(k.bits))
	}
}

// emitWide adds a slice to the results of all tiles of M rows.
func (k *intKernel) emitWide(args reg.Register) {
	tiles := k.pointer(args, argTiles)
	k.rows = k.loadRows(args, argActs, argActStride, k.m)
	dst := k.loadRows(args, argDst, argDstStride, k.m)
	k.loop(tiles, func() {
		k.slice = k.pointer(args, argSlice)
		start := k.GP64()
		k.MOVQ(k.rows.base, start)
		k.readSums(dst)
		k.loop(k.pointer(args, argN), k.wideBlock)
		k.storeSums(dst)
		k.LEAQ(operand.Mem{Base: start, Index: k.rows.stride, Scale: 4}, k.rows.base)
		k.LEAQ(operand.Mem{Base: dst.base, Index: dst.stride, Scale: 4}, dst.base)
	})
}

func (k *intKernel) packedBlock() {
	k.prefetch()
	if k.class == classSubMin {
		_, dmin := k.packedScales()
		k.subtractMins(dmin)
	}
	k.dots(k.packedCode)
	k.finish(k.packedScales())
	k.advance(k.rows.base, recordBytes)
	k.advancePlanes()
}

// advancePlanes moves the pointers to the next block.
func (k *intKernel) advancePlanes() {
	for i, bits := range k.bits {
		if bits > 0 {
			k.advance(k.plane[i], bits*unit)
		}
	}
	k.advance(k.plane[2], scaleBytes[k.scale])
}

func (k *intKernel) wideBlock() {
	if k.class == classSubMin {
		_, dmin := k.wideScales()
		k.subtractMins(dmin)
	}
	k.dots(k.wideCode)
	k.finish(k.wideScales())
	k.advance(k.rows.base, recordBytes)
	k.advance(k.slice, sliceBytes)
}

func (k *intKernel) prefetch() {
	k.fetchBlock(k.form, k.plane)
}

// dots sums the products of a block. Afterwards acc holds 16-bit pair sums of
// the whole block, or 32-bit sums where the class or the range of the codes
// needs them.
func (k *intKernel) dots(code func(g, h int) (w, abs reg.VecVirtual)) {
	for half := range 2 {
		k.clearAcc(half)
		for g := 4 * half; g < 4*half+4; g++ {
			w0, a0 := code(g, 0)
			w1, a1 := code(g, 1)
			w, a := [2]reg.VecVirtual{w0, w1}, [2]reg.VecVirtual{a0, a1}
			for m := range k.m {
				x := k.YMM()
				k.VPBROADCASTD(k.rows.at(m, 4*g), x)
				for h := range 2 {
					k.multiply(m, h, w[h], a[h], x)
				}
			}
		}
		if k.split() {
			k.closeHalf(half)
		}
	}
}

// split reports whether the halves of a block are summed apart.
func (k *intKernel) split() bool { return k.class >= classSub || k.wideSum() }

// clearAcc starts new sums: at the block's start, and at its middle if split.
func (k *intKernel) clearAcc(half int) {
	if half == 0 || k.split() {
		k.acc = [4][2]reg.VecVirtual{}
	}
}

// multiply adds the products of a group to acc. The first of a sum starts it,
// less the offset's part where that is summed in 16 bits: intermediate sums may
// wrap around, the last one fits.
func (k *intKernel) multiply(m, h int, w, abs, x reg.VecVirtual) {
	t := k.YMM()
	if k.signed() {
		k.VPSIGNB(w, x, t)
		k.VPMADDUBSW(t, abs, t)
		k.VPMADDWD(k.constant("ones16"), t, t)
		k.accumulate(m, h, t, k.VPADDD)
		return
	}
	k.VPMADDUBSW(x, w, t)
	k.accumulate(m, h, t, k.VPADDW)
}

func (k *intKernel) accumulate(m, h int, t reg.VecVirtual, add func(...operand.Op)) {
	if k.acc[m][h] == nil {
		k.acc[m][h] = t
		return
	}
	add(t, k.acc[m][h], k.acc[m][h])
}

// subtractOffset takes offset·Σx off the 16-bit sums: of the block (half < 0)
// or of a half.
func (k *intKernel) subtractOffset(m, half int) {
	corr := k.YMM()
	if half < 0 {
		other := k.YMM()
		k.VPBROADCASTD(k.rows.at(m, recHalf), corr)
		k.VPBROADCASTD(k.rows.at(m, recHalf+4), other)
		k.VPADDW(other, corr, corr)
	} else {
		k.VPBROADCASTD(k.rows.at(m, recHalf+4*half), corr)
	}
	switch k.offset {
	case 4, 8, 16, 32:
		shift := map[int]uint64{4: 2, 8: 3, 16: 4, 32: 5}[k.offset]
		k.VPSLLW(operand.Imm(shift), corr, corr)
	default:
		k.VPMULLW(k.constant(fmt.Sprintf("words%d", k.offset)), corr, corr)
	}
	for h := range 2 {
		k.VPSUBW(corr, k.acc[m][h], k.acc[m][h])
	}
}

// closeHalf widens the sums of a half, times its integer scale if it has one,
// and adds the halves up in work.
func (k *intKernel) closeHalf(half int) {
	var scale [2]operand.Op
	if k.class >= classSub {
		scale = k.halfScales(half)
	} else {
		ones := k.constant("ones16")
		scale = [2]operand.Op{ones, ones}
	}
	for m := range k.m {
		if k.class == classSub {
			k.subtractOffset(m, half)
		}
		for h := range 2 {
			a, part := k.acc[m][h], operand.Mem{Base: k.work, Disp: workPart + 64*m + 32*h}
			k.VPMADDWD(scale[h], a, a)
			if half == 0 {
				k.VMOVDQU(a, part)
			} else {
				k.VPADDD(part, a, a)
			}
		}
	}
}

// finish turns the integer sums of a block to floats and adds them up.
func (k *intKernel) finish(scale, low [2]operand.Op) {
	for m := range k.m {
		if k.class == classOffset && !k.signed() {
			k.subtractOffset(m, -1)
		}
		sx := k.YMM()
		k.VBROADCASTSS(k.rows.at(m, recScale), sx)
		var xs reg.VecVirtual
		if k.class == classMin {
			xs = k.YMM()
			k.VBROADCASTSS(k.rows.at(m, recSum), xs)
		}
		for h := range 2 {
			a := k.acc[m][h]
			if !k.split() && !k.signed() {
				k.VPMADDWD(k.constant("ones16"), a, a)
			}
			k.VCVTDQ2PS(a, a)
			p := k.YMM()
			k.VMULPS(scale[h], sx, p)
			sum := k.addFloat(m, h, a, p)
			if k.class == classMin {
				k.addMin(sum, low[h], xs)
			}
			if k.m > 1 {
				k.VMOVUPS(sum, k.sumAt(m, h))
			}
		}
	}
}

// addFloat adds a·p to the float sum, which for several rows comes from work,
// and returns the register of the sum.
func (k *intKernel) addFloat(m, h int, a, p reg.VecVirtual) reg.VecVirtual {
	if k.m == 1 {
		k.VFMADD231PS(p, a, k.facc[h])
		return k.facc[h]
	}
	k.VFMADD213PS(k.sumAt(m, h), a, p)
	return p
}

// sumAt is where work keeps the float sums of several rows.
func (k *intKernel) sumAt(m, h int) operand.Mem {
	return operand.Mem{Base: k.work, Disp: workAcc + 64*m + 32*h}
}

// addMin adds low·xs. Packed K types keep their minimum positive.
func (k *intKernel) addMin(sum reg.VecVirtual, low operand.Op, xs reg.VecVirtual) {
	if k.scale == scaleU8Min && !k.wide {
		k.VFNMADD231PS(low, xs, sum)
		return
	}
	k.VFMADD231PS(low, xs, sum)
}

// subtractMins takes dmin·scale·Σ_half m·Σx off the sums, before the products of
// the block: the minima are unpacked once for all rows.
func (k *intKernel) subtractMins(dmin [2]operand.Op) {
	low := k.halfMins()
	for m := range k.m {
		sx, x := k.YMM(), k.YMM()
		k.VBROADCASTSS(k.rows.at(m, recScale), sx)
		k.VPBROADCASTD(k.rows.at(m, recPair), x)
		for h := range 2 {
			t, p := k.YMM(), k.YMM()
			k.VPMADDWD(low[h], x, t)
			k.VCVTDQ2PS(t, t)
			k.VMULPS(dmin[h], sx, p)
			if k.m == 1 {
				k.VFNMADD231PS(t, p, k.facc[h])
				continue
			}
			k.VFNMADD213PS(k.sumAt(m, h), p, t)
			k.VMOVUPS(t, k.sumAt(m, h))
		}
	}
}

func (k *intKernel) zeroSums() {
	if k.m == 1 {
		for h := range k.facc {
			k.facc[h] = k.YMM()
			k.VXORPS(k.facc[h], k.facc[h], k.facc[h])
		}
		return
	}
	z := k.YMM()
	k.VXORPS(z, z, z)
	for i := range 2 * k.m {
		k.VMOVUPS(z, operand.Mem{Base: k.work, Disp: workAcc + 32*i})
	}
}

func (k *intKernel) readSums(dst rowPointers) {
	for m := range k.m {
		for h := range 2 {
			t := k.YMM()
			k.VMOVUPS(dst.at(m, 32*h), t)
			k.VMOVUPS(t, k.sumAt(m, h))
		}
	}
}

func (k *intKernel) storeSums(dst rowPointers) {
	for m := range k.m {
		for h := range 2 {
			t := k.facc[h]
			if k.m > 1 {
				t = k.YMM()
				k.VMOVUPS(k.sumAt(m, h), t)
			}
			k.VMOVUPS(t, dst.at(m, 32*h))
		}
	}
}
