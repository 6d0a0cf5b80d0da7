package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// prepareInt8 emits the conversion of blocks of 32 floats to records; see
// prepareBlockGo in package gemm for what it computes.
func (c *asm) prepareInt8(name string) {
	c.Function(name)
	c.Pragma("noescape")
	c.Attributes(attr.NOSPLIT)
	c.SignatureExpr("func(dst *byte, src *float32, blocks int)")
	dst, src, n := c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("dst"), dst)
	c.Load(c.Param("src"), src)
	c.Load(c.Param("blocks"), n)
	c.loaded = nil
	c.loop(n, func() {
		var x [4]reg.VecVirtual
		for i := range x {
			x[i] = c.YMM()
			c.VMOVUPS(operand.Mem{Base: src, Disp: 32 * i}, x[i])
		}
		c.prepareBlock(x, dst)
		c.advance(src, 128)
		c.advance(dst, recordBytes)
	})
	c.end()
}

func (c *asm) prepareBlock(x [4]reg.VecVirtual, dst reg.GPVirtual) {
	top := c.topMagnitude(x)
	// scale = top/127, inv = 127/top but 0 below leastTop; wild is all ones if
	// a value is not finite.
	scale, inv, wild, small := c.XMM(), c.XMM(), c.XMM(), c.XMM()
	c.VDIVSS(c.mem("f127"), top, scale)
	c.VMOVSS(c.mem("f127"), inv)
	c.VDIVSS(top, inv, inv)
	c.VMOVSS(c.mem("leastTop"), small)
	c.VCMPSS(operand.Imm(2), top, small, small) // small ≤ top
	c.VANDPS(small, inv, inv)
	c.VPCMPGTD(c.mem("belowInf"), top, wild)
	c.VORPS(wild, scale, scale)
	codes := c.quantise(x, inv, wild)
	c.VMOVDQU(codes, operand.Mem{Base: dst})
	c.VMOVSS(scale, operand.Mem{Base: dst, Disp: recScale})
	c.recordSums(codes, scale, dst)
}

// topMagnitude is max|x| as bits, in every element of the low half.
func (c *asm) topMagnitude(x [4]reg.VecVirtual) reg.VecVirtual {
	var m [4]reg.VecVirtual
	for i := range m {
		m[i] = c.YMM()
		c.VPAND(c.mem("abs"), x[i], m[i])
	}
	c.VPMAXUD(m[0], m[1], m[0])
	c.VPMAXUD(m[2], m[3], m[2])
	c.VPMAXUD(m[0], m[2], m[0])
	top, t := c.XMM(), c.XMM()
	c.VEXTRACTI128(operand.Imm(1), m[0], top)
	c.VPMAXUD(m[0].AsX(), top, top)
	c.VPSHUFD(operand.Imm(0x4e), top, t)
	c.VPMAXUD(t, top, top)
	c.VPSHUFD(operand.Imm(0xb1), top, t)
	c.VPMAXUD(t, top, top)
	return top
}

// quantise rounds x·inv to 32 bytes in order, all zero where wild says so.
func (c *asm) quantise(x [4]reg.VecVirtual, inv, wild reg.VecVirtual) reg.VecVirtual {
	f, mask := c.YMM(), c.YMM()
	c.VBROADCASTSS(inv, f)
	c.VPBROADCASTD(wild, mask)
	for i := range x {
		c.VMULPS(x[i], f, x[i])
		c.VCVTPS2DQ(x[i], x[i])
		c.VPANDN(x[i], mask, x[i])
	}
	c.VPACKSSDW(x[1], x[0], x[0])
	c.VPACKSSDW(x[3], x[2], x[2])
	c.VPACKSSWB(x[2], x[0], x[0])
	order := c.YMM()
	c.VMOVDQU(c.mem("packed"), order)
	c.VPERMD(x[0], order, x[0])
	return x[0]
}

// recordSums stores scale·Σcode and the sums of the record.
func (c *asm) recordSums(codes, scale reg.VecVirtual, dst reg.GPVirtual) {
	put := func(x reg.Register, at int) { c.VMOVD(x, operand.Mem{Base: dst, Disp: at}) }
	s, t := c.YMM(), c.YMM()
	c.VMOVDQU(c.mem("ones8"), s)
	c.VPMADDUBSW(codes, s, s)
	c.VPSHUFD(operand.Imm(0x4e), s, t)
	c.VPADDW(t, s, s)
	c.VPSHUFD(operand.Imm(0xb1), s, t)
	c.VPADDW(t, s, s) // every dword: the pair sums of its lane's half
	high := c.XMM()
	c.VEXTRACTI128(operand.Imm(1), s, high)
	put(s.AsX(), recHalf)
	put(high, recHalf+4)
	b0, b1, total := c.XMM(), c.XMM(), c.XMM()
	c.VPMADDWD(c.mem("minus128"), s.AsX(), b0)
	c.VPMADDWD(c.mem("minus128"), high, b1)
	c.VPADDD(b0, b1, total)
	put(total, recBias)
	put(b0, recBias+4)
	put(b1, recBias+8)
	c.VPMADDWD(c.mem("ones16"), s.AsX(), s.AsX())
	c.VPMADDWD(c.mem("ones16"), high, high)
	c.VPADDD(s.AsX(), high, total)
	c.VPSLLD(operand.Imm(16), high, high)
	c.VPBLENDW(operand.Imm(0xaa), high, s.AsX(), high)
	put(high, recPair)
	c.VCVTDQ2PS(total, total)
	c.VMULSS(scale, total, total)
	c.VMOVSS(total, operand.Mem{Base: dst, Disp: recSum})
}
