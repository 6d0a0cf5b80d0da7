package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// This file reads weights for AVX2 kernels: codes and scales of a block, from
// packed planes or from the unpacked slice.

// code field in a plane: the unit, and how far right it must move.
func place(bits, g int) (u, shift int) {
	switch bits {
	case 8:
		return g, 0
	case 4:
		return g % 4, g / 4 * 4
	case 2:
		return g / 4, g % 4 * 2
	}
	return 0, g
}

// packedCode unpacks group g of half h. abs holds magnitudes of signed codes.
func (k *intKernel) packedCode(g, h int) (w, abs reg.VecVirtual) {
	w = k.lowCode(g, h)
	if k.bits[1] > 0 {
		k.VPOR(k.highCode(g, h), w, w)
	}
	if k.table != "" {
		k.VPSHUFB(w, k.loaded[k.table], w)
	}
	if k.signed() {
		abs = k.YMM()
		k.VPABSB(w, abs)
	}
	return w, abs
}

func (k *intKernel) lowCode(g, h int) reg.VecVirtual {
	w := k.YMM()
	u, shift := place(k.bits[0], g)
	src := operand.Mem{Base: k.plane[0], Disp: u*unit + 32*h}
	mask := map[int]string{2: "mask03", 4: "mask0f"}[k.bits[0]]
	switch {
	case k.bits[0] == 8:
		k.VMOVDQU(src, w)
	case shift == 0:
		if m, ok := k.loaded[mask]; ok {
			k.VPAND(src, m, w)
			break
		}
		k.VMOVDQU(src, w)
		k.VPAND(k.constant(mask), w, w)
	default:
		k.VMOVDQU(src, w)
		k.VPSRLW(operand.Imm(uint64(shift)), w, w)
		k.VPAND(k.constant(mask), w, w)
	}
	return w
}

// highCode is the high bits of a code, already in their place above the low ones.
func (k *intKernel) highCode(g, h int) reg.VecVirtual {
	w := k.YMM()
	u, shift := place(k.bits[1], g)
	k.VMOVDQU(operand.Mem{Base: k.plane[1], Disp: u*unit + 32*h}, w)
	switch move := k.bits[0] - shift; {
	case move > 0:
		k.VPSLLW(operand.Imm(uint64(move)), w, w)
	case move < 0:
		k.VPSRLW(operand.Imm(uint64(-move)), w, w)
	}
	k.VPAND(k.constant(highMask(k.bits)), w, w)
	return w
}

// highMask is the constant that selects high bits in their place.
func highMask(bits [2]int) string {
	return map[[2]int]string{{4, 1}: "mask10", {4, 2}: "mask30", {2, 1}: "mask04"}[bits]
}

func (k *intKernel) wideCode(g, h int) (w, abs reg.VecVirtual) {
	w = k.YMM()
	k.VMOVDQU(operand.Mem{Base: k.slice, Disp: sliceCodes + g*unit + 32*h}, w)
	if k.signed() {
		abs = k.YMM()
		k.VMOVDQU(operand.Mem{Base: k.slice, Disp: sliceAbs + g*unit + 32*h}, abs)
	}
	return w, abs
}

func (k *intKernel) wideScales() (scale, low [2]operand.Op) {
	for h := range 2 {
		scale[h] = operand.Mem{Base: k.slice, Disp: sliceScale + 32*h}
		low[h] = operand.Mem{Base: k.slice, Disp: sliceMin + 32*h}
	}
	return scale, low
}

// loadSuper converts the super-scales of the next 8 blocks and keeps them in work.
func (k *intKernel) loadSuper() {
	k.fetch(k.plane[3], k.super, prefetchAhead/4, true)
	for i := range k.super / 16 {
		t := k.YMM()
		k.VCVTPH2PS(operand.Mem{Base: k.plane[3], Disp: 16 * i}, t)
		k.VMOVUPS(t, operand.Mem{Base: k.work, Disp: workSuper + 32*i})
	}
	k.advance(k.plane[3], k.super)
}

// packedScales gives scale and minimum of both halves as floats.
func (k *intKernel) packedScales() (scale, low [2]operand.Op) {
	for h := range 2 {
		d := operand.Mem{Base: k.work, Disp: workSuper + 32*h}
		dmin := d.Offset(64)
		switch k.scale {
		case scaleF16, scaleMin:
			scale[h] = k.halfFloats(16 * h)
			if k.scale == scaleMin {
				low[h] = k.halfFloats(32 + 16*h)
			}
		case scaleE8M0:
			scale[h] = k.powers(8 * h)
		case scaleI8:
			scale[h] = k.bytesTimes(k.VPMOVSXBD, 8*h, d)
		case scaleU8Min:
			scale[h] = k.bytesTimes(k.VPMOVZXBD, 8*h, d)
			low[h] = k.bytesTimes(k.VPMOVZXBD, 16+8*h, dmin)
		case scaleHalves, scaleNibble:
			scale[h], low[h] = d, dmin
		}
	}
	return scale, low
}

// halfFloats converts 8 float16 of the scale plane.
func (k *intKernel) halfFloats(at int) reg.VecVirtual {
	t := k.YMM()
	k.VCVTPH2PS(operand.Mem{Base: k.plane[2], Disp: at}, t)
	return t
}

// powers makes 2^(e−128) of 8 exponent bytes, zero for e < 2.
func (k *intKernel) powers(at int) reg.VecVirtual {
	t, zero := k.YMM(), k.YMM()
	k.VPMOVZXBD(operand.Mem{Base: k.plane[2], Disp: at}, t)
	k.VPSUBD(k.mem("one32"), t, t)
	k.VPSLLD(operand.Imm(23), t, t)
	k.VPXOR(zero, zero, zero)
	k.VPMAXSD(zero, t, t)
	return t
}

// bytesTimes widens 8 bytes of the scale plane to floats, times d.
func (k *intKernel) bytesTimes(widen func(...operand.Op), at int, d operand.Mem) reg.VecVirtual {
	t := k.YMM()
	widen(operand.Mem{Base: k.plane[2], Disp: at}, t)
	k.VCVTDQ2PS(t, t)
	k.VMULPS(d, t, t)
	return t
}

// halfScales gives the integer scales of a half as pairs of words, 8 rows each.
func (k *intKernel) halfScales(half int) (s [2]operand.Op) {
	if k.wide {
		at := operand.Mem{Base: k.slice, Disp: sliceSub + 64*half}
		return [2]operand.Op{at, at.Offset(32)}
	}
	words := k.YMM()
	at := operand.Mem{Base: k.plane[2], Disp: 16 * half}
	if k.scale == scaleHalves {
		k.VPMOVSXBW(at, words)
	} else {
		k.VPMOVZXBW(at, words)
		k.VPAND(k.constant("nibbleWords"), words, words)
	}
	return k.pairs(words)
}

// pairs doubles 16 words whose order is that of the scale planes.
func (k *intKernel) pairs(words reg.VecVirtual) [2]operand.Op {
	lo, hi := k.YMM(), k.YMM()
	k.VPUNPCKLWD(words, words, lo)
	k.VPUNPCKHWD(words, words, hi)
	return [2]operand.Op{lo, hi}
}

// halfMins gives the minima of both halves side by side as words, 8 rows each.
func (k *intKernel) halfMins() [2]reg.VecVirtual {
	lo, hi := k.YMM(), k.YMM()
	if k.wide {
		k.VMOVDQU(operand.Mem{Base: k.slice, Disp: sliceSubMin}, lo)
		k.VMOVDQU(operand.Mem{Base: k.slice, Disp: sliceSubMin + 32}, hi)
		return [2]reg.VecVirtual{lo, hi}
	}
	var words [2]reg.VecVirtual
	for half := range words {
		words[half] = k.YMM()
		k.VPMOVZXBW(operand.Mem{Base: k.plane[2], Disp: 16 * half}, words[half])
		k.VPSRLW(operand.Imm(4), words[half], words[half])
	}
	k.VPUNPCKLWD(words[1], words[0], lo)
	k.VPUNPCKHWD(words[1], words[0], hi)
	return [2]reg.VecVirtual{lo, hi}
}
