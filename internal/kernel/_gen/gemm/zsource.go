package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// This file reads weights for AVX-512 kernels; compare source.go. Codes are
// unsigned, signed values have 128 added.

func (k *zKernel) packedCode(g int) reg.VecVirtual {
	w := k.field(0, g, k.bits[0], 0)
	if k.bits[0] == 8 {
		k.VPXORD(k.loaded["signs8"], w, w)
	}
	if k.bits[1] > 0 {
		k.VPORD(k.field(1, g, k.bits[1], k.bits[0]), w, w)
	}
	if k.table != "" {
		k.VPSHUFB(w, k.loaded[k.unsignedTable()], w)
	}
	return w
}

// field extracts the bits of group g from a code plane and moves them up to
// bit `to`.
func (k *zKernel) field(plane, g, bits, to int) reg.VecVirtual {
	w := k.ZMM()
	u, shift := place(bits, g)
	k.VMOVDQU32(operand.Mem{Base: k.plane[plane], Disp: u * unit}, w)
	switch move := to - shift; {
	case move > 0:
		k.VPSLLW(operand.Imm(uint64(move)), w, w)
	case move < 0:
		k.VPSRLW(operand.Imm(uint64(-move)), w, w)
	}
	if bits == 8 {
		return w
	}
	mask := map[int]string{2: "mask03", 4: "mask0f"}[bits]
	if to > 0 {
		mask = highMask(k.bits)
	}
	k.VPANDD(k.loaded[mask], w, w)
	return w
}

func (k *zKernel) wideCode(g int) reg.VecVirtual {
	w := k.ZMM()
	k.VMOVDQU32(operand.Mem{Base: k.slice, Disp: sliceCodes + g*unit}, w)
	return w
}

func (k *zKernel) wideScales() (scale, low operand.Op) {
	scale = operand.Mem{Base: k.slice, Disp: sliceScale}
	if k.class == classMin || k.class == classSubMin {
		low = operand.Mem{Base: k.slice, Disp: sliceMin}
	}
	return scale, low
}

// packedScales gives scale and minimum of the block as floats.
func (k *zKernel) packedScales() (scale, low operand.Op) {
	src := operand.Mem{Base: k.plane[2]}
	switch k.scale {
	case scaleF16:
		return k.halfFloats(src), nil
	case scaleMin:
		return k.halfFloats(src), k.halfFloats(src.Offset(32))
	case scaleE8M0:
		t, zero := k.ZMM(), k.zero()
		k.VPMOVZXBD(src, t)
		k.VPSUBD(k.mem("one32"), t, t)
		k.VPSLLD(operand.Imm(23), t, t)
		k.VPMAXSD(zero, t, t)
		return t, nil
	case scaleI8:
		return k.bytesTimes(k.VPMOVSXBD, src, k.super[0]), nil
	case scaleU8Min:
		return k.bytesTimes(k.VPMOVZXBD, src, k.super[0]), k.bytesTimes(k.VPMOVZXBD, src.Offset(16), k.super[1])
	case scaleNibble:
		return k.super[0], k.super[1]
	}
	return k.super[0], nil
}

func (k *zKernel) halfFloats(src operand.Mem) reg.VecVirtual {
	t := k.ZMM()
	k.VCVTPH2PS(src, t)
	return t
}

func (k *zKernel) bytesTimes(widen func(...operand.Op), src operand.Mem, d reg.VecVirtual) reg.VecVirtual {
	t := k.ZMM()
	widen(src, t)
	k.VCVTDQ2PS(t, t)
	k.VMULPS(d, t, t)
	return t
}

// halfScales gives the scales of both halves as floats.
func (k *zKernel) halfScales() (s [2]operand.Op) {
	for half := range 2 {
		if k.wide {
			s[half] = operand.Mem{Base: k.slice, Disp: sliceSub + 64*half}
			continue
		}
		t := k.ZMM()
		src := operand.Mem{Base: k.plane[2], Disp: 16 * half}
		if k.scale == scaleHalves {
			k.VPMOVSXBD(src, t)
		} else {
			k.VPMOVZXBD(src, t)
			k.VPANDD(k.mem("nibbles32"), t, t)
		}
		k.VPERMD(t, k.loaded["halfOrder"], t)
		k.VCVTDQ2PS(t, t)
		s[half] = t
	}
	return s
}

// halfMins gives the minima of both halves side by side as words.
func (k *zKernel) halfMins() reg.VecVirtual {
	t, high := k.ZMM(), k.ZMM()
	if k.wide {
		k.VMOVDQU32(operand.Mem{Base: k.slice, Disp: sliceSubMin}, t)
		return t
	}
	k.VPMOVZXBD(operand.Mem{Base: k.plane[2]}, t)
	k.VPMOVZXBD(operand.Mem{Base: k.plane[2], Disp: 16}, high)
	k.VPSRLD(operand.Imm(4), t, t)
	k.VPSRLD(operand.Imm(4), high, high)
	k.VPSLLD(operand.Imm(16), high, high)
	k.VPORD(high, t, t)
	k.VPERMD(t, k.loaded["halfOrder"], t)
	return t
}

// toOffset128 names the constant that raises the offset of codes to 128.
func (k *zKernel) toOffset128() string {
	if k.offset == 0 || k.offset == 128 {
		return ""
	}
	return fmt.Sprintf("bytes%d", 128-k.offset)
}

// emitUnpack writes the kernel that unpacks n blocks of a panel to the slice.
// Scales of halves are floats there.
func (k *zKernel) emitUnpack(name string) {
	args := k.begin(name)
	k.zero() // before any loop
	k.holdConstants()
	k.loadPlanes(args)
	k.slice = k.pointer(args, argSlice)
	k.eachBlock(args, func() {
		k.prefetch()
		for g := range 8 {
			w := k.packedCode(g)
			if shift := k.toOffset128(); shift != "" {
				k.VPADDB(k.mem(shift), w, w)
			}
			k.VMOVDQU32(w, operand.Mem{Base: k.slice, Disp: sliceCodes + g*unit})
		}
		scale, low := k.packedScales()
		k.VMOVUPS(scale, operand.Mem{Base: k.slice, Disp: sliceScale})
		if low != nil {
			if k.scale == scaleU8Min {
				k.VPXORD(k.mem("sign32"), low, low)
			}
			k.VMOVUPS(low, operand.Mem{Base: k.slice, Disp: sliceMin})
		}
		if k.class >= classSub {
			for half, s := range k.halfScales() {
				k.VMOVUPS(s, operand.Mem{Base: k.slice, Disp: sliceSub + 64*half})
			}
		}
		if k.class == classSubMin {
			k.VMOVDQU32(k.halfMins(), operand.Mem{Base: k.slice, Disp: sliceSubMin})
		}
		k.advancePlanes()
		k.advance(k.slice, sliceBytes)
	})
	k.end()
}
