package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// emitUnpack writes the kernel that unpacks n blocks of a panel to the slice.
func (k *intKernel) emitUnpack(name string) {
	args := k.begin(name)
	k.work = k.pointer(args, argWork)
	k.loadPlanes(args)
	k.slice = k.pointer(args, argSlice)
	k.holdConstants()
	k.eachBlock(args, k.unpackBlock)
	k.end()
}

func (k *intKernel) unpackBlock() {
	k.prefetch()
	for g := range 8 {
		for h := range 2 {
			w, abs := k.packedCode(g, h)
			k.VMOVDQU(w, operand.Mem{Base: k.slice, Disp: sliceCodes + g*unit + 32*h})
			if k.signed() {
				k.VMOVDQU(abs, operand.Mem{Base: k.slice, Disp: sliceAbs + g*unit + 32*h})
			}
		}
	}
	k.unpackScales()
	k.advancePlanes()
	k.advance(k.slice, sliceBytes)
}

func (k *intKernel) unpackScales() {
	scale, low := k.packedScales()
	for h := range 2 {
		k.moveFloats(scale[h], sliceScale+32*h, false)
		if low[h] != nil && k.class != classSub {
			k.moveFloats(low[h], sliceMin+32*h, k.scale == scaleU8Min)
		}
	}
	if k.class < classSub {
		return
	}
	for half := range 2 {
		for h, s := range k.halfScales(half) {
			k.VMOVDQU(s, operand.Mem{Base: k.slice, Disp: sliceSub + 64*half + 32*h})
		}
	}
	if k.class == classSubMin {
		for h, s := range k.halfMins() {
			k.VMOVDQU(s, operand.Mem{Base: k.slice, Disp: sliceSubMin + 32*h})
		}
	}
}

// moveFloats stores 8 floats to the slice, negated where it wants an addend.
func (k *intKernel) moveFloats(v operand.Op, at int, negate bool) {
	t := k.YMM()
	k.VMOVUPS(v, t)
	if negate {
		k.VXORPS(k.mem("sign32"), t, t)
	}
	k.VMOVUPS(t, operand.Mem{Base: k.slice, Disp: at})
}
