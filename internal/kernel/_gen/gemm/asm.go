package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// asm adds to avo's context what all kernels need: constants, loops, arguments.
type asm struct {
	*build.Context
	data   map[string]operand.Mem
	loaded map[string]reg.VecVirtual // constants held in registers by the current function
	labels int
	ahead  reg.GPVirtual // bytes to what is read next after this panel, in functions that know
}

func newAsm(c *build.Context) *asm {
	return &asm{Context: c, data: map[string]operand.Mem{}}
}

// begin starts a function of one pointer to args and returns that pointer.
func (c *asm) begin(name string) reg.Register {
	c.Function(name)
	c.Pragma("noescape")
	c.Attributes(attr.NOSPLIT)
	c.SignatureExpr("func(args *byte)")
	c.loaded = map[string]reg.VecVirtual{}
	args := c.GP64()
	c.Load(c.Param("args"), args)
	return args
}

// end returns to Go.
func (c *asm) end() {
	c.VZEROUPPER()
	c.RET()
}

// pointer reads a quadword of args to a new register.
func (c *asm) pointer(args reg.Register, at int) reg.GPVirtual {
	r := c.GP64()
	c.MOVQ(operand.Mem{Base: args, Disp: at}, r)
	return r
}

// loop repeats body n > 0 times; n is consumed.
func (c *asm) loop(n reg.GPVirtual, body func()) {
	c.labels++
	top := label("loop", c.labels)
	c.Label(top)
	body()
	c.DECQ(n)
	c.JNZ(operand.LabelRef(top))
}

// skip jumps over body when the jump given takes the flags as true.
func (c *asm) skip(jump func(operand.Op), body func()) {
	c.labels++
	after := label("skip", c.labels)
	jump(operand.LabelRef(after))
	body()
	c.Label(after)
}

func label(name string, n int) string { return fmt.Sprint(name, n) }

// value gives the 32-bit pattern of a named constant that repeats; tables are
// apart.
var patterns = map[string]uint32{
	"ones16": 0x00010001, "ones8": 0x01010101, "signs8": 0x80808080,
	"mask0f": 0x0f0f0f0f, "mask10": 0x10101010, "mask30": 0x30303030, "mask03": 0x03030303, "mask04": 0x04040404,
	"nibbleWords": 0x000f000f, "nibbles32": 0x0000000f, "high16": 0xffff0000, "one32": 1,
	"words12": 12 | 12<<16,
	"bytes96": 0x60606060, "bytes112": 0x70707070, "bytes116": 0x74747474, "bytes120": 0x78787878, "bytes124": 0x7c7c7c7c,
	"minus4": 0xfffcfffc, "minus8": 0xfff8fff8, "minus12": 0xfff4fff4, "minus16": 0xfff0fff0,
	"minus32": 0xffe0ffe0, "minus128": 0xff80ff80,
	"sign32": 0x80000000, "abs": 0x7fffffff, "belowInf": 0x7f7fffff, "f127": 0x42fe0000, "leastTop": 0x03aa2425,
}

// tables are constants of 16 bytes that repeat.
var tables = map[string]func(i int) byte{
	"iq4":         func(i int) byte { return byte(iq4Values[i]) },
	"iq4Unsigned": func(i int) byte { return byte(iq4Values[i] + 128) },
	"mxfp4":       func(i int) byte { return byte(mxfp4Values[i] + 12) },
}

// mem is a named constant in memory, 64 bytes of it.
func (c *asm) mem(name string) operand.Mem {
	if m, ok := c.data[name]; ok {
		return m
	}
	m := c.StaticGlobal("const" + name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		v, ok := patterns[name]
		if t := tables[name]; t != nil {
			v, ok = 0, true
			for j := range 4 {
				v |= uint32(t(i%4*4+j)) << (8 * j)
			}
		}
		if p := permutations[name]; p != nil {
			v, ok = p[i%len(p)], true
		}
		if !ok {
			panic("gemm: unknown constant " + name)
		}
		c.AddDatum(4*i, operand.U32(v))
	}
	c.data[name] = m
	return m
}

// permutations are constants of 8 or 16 dwords.
var permutations = map[string][]uint32{
	"packed":    {0, 4, 1, 5, 2, 6, 3, 7},
	"halfOrder": {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15},
}

// constant is a named constant: its register if the function holds it in one,
// or memory.
func (c *asm) constant(name string) operand.Op {
	if r, ok := c.loaded[name]; ok {
		return r
	}
	return c.mem(name)
}

// hold loads a constant to a register for the rest of the function.
func (c *asm) hold(names ...string) {
	for _, n := range names {
		r := c.YMM()
		c.VMOVDQU(c.mem(n), r)
		c.loaded[n] = r
	}
}

// advance adds a constant to a pointer.
func (c *asm) advance(p reg.GPVirtual, bytes int) { c.ADDQ(operand.U32(uint32(bytes)), p) }

// panels repeats body for so many panels as args say; body gets the distances
// in bytes from the first panel and the first result.
func (c *asm) panels(args reg.Register, body func(panel, dst reg.GPVirtual)) {
	panel, dst, n := c.GP64(), c.GP64(), c.pointer(args, argTiles)
	c.XORQ(panel, panel)
	c.XORQ(dst, dst)
	c.loop(n, func() {
		c.ahead = c.pointer(args, argPanel)
		c.CMPQ(n, operand.U32(1))
		c.CMOVQEQ(operand.Mem{Base: args, Disp: argAhead}, c.ahead)
		body(panel, dst)
		c.ahead = nil
		c.ADDQ(operand.Mem{Base: args, Disp: argPanel}, panel)
		c.advance(dst, 64)
	})
}

// prefetchAhead is the distance in bytes at which planes are fetched: it reaches
// over page borders, where the hardware stops.
const prefetchAhead = 2048

// fetch prefetches what a block takes of a plane: soon needed bytes of the same
// plane, and the same place of the next panel, because a plane's end says
// nothing of where that begins.
func (c *asm) fetch(plane reg.Register, bytes, distance int, next bool) {
	for line := 0; line < bytes; line += 64 {
		c.PREFETCHT0(operand.Mem{Base: plane, Disp: distance + line})
		if next && c.ahead != nil {
			c.PREFETCHT1(operand.Mem{Base: plane, Index: c.ahead, Scale: 1, Disp: line})
		}
	}
}

// fetchBlock prefetches for all planes of a block. Codes of 8 bits are so nearly
// all of a panel that its start matters little, and were slower with it.
func (c *asm) fetchBlock(f form, plane [4]reg.GPVirtual) {
	for i, bits := range f.bits {
		if bits > 0 {
			c.fetch(plane[i], bits*unit, prefetchAhead, bits < 8)
		}
	}
	c.fetch(plane[2], scaleBytes[f.scale], prefetchAhead/4, true)
}

// fetchStart prefetches the start of each plane of the first panel, which
// nothing ran ahead of.
func (c *asm) fetchStart(f form, plane [4]reg.GPVirtual) {
	for i, bytes := range [4]int{prefetchAhead, prefetchAhead, prefetchAhead / 4, f.super} {
		if plane[i] == nil {
			continue
		}
		if i == 1 {
			bytes = bytes * f.bits[1] / f.bits[0]
		}
		for line := 0; line < bytes; line += 64 {
			c.PREFETCHT0(operand.Mem{Base: plane[i], Disp: line})
		}
	}
}
