package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vecr is a vector register of 8 float32.
type vecr = reg.VecVirtual

// gen emits functions, with a pool of constants that are stored 8 times over, so
// that an instruction can take them from memory.
type gen struct {
	*build.Context
	pool map[uint32]operand.Mem
}

func newGen() *gen { return &gen{Context: build.NewContext(), pool: map[uint32]operand.Mem{}} }

// f is the constant f in all 8 lanes.
func (g *gen) f(f float64) operand.Mem { return g.u(math.Float32bits(float32(f))) }

// u is the constant of these bits in all 8 lanes.
func (g *gen) u(bits uint32) operand.Mem {
	m, ok := g.pool[bits]
	if !ok {
		m = g.table(fmt.Sprintf("c%08x", bits), bits, bits, bits, bits, bits, bits, bits, bits)
		g.pool[bits] = m
	}
	return m
}

// table stores 32-bit words as read-only data and gives their place.
func (g *gen) table(name string, words ...uint32) operand.Mem {
	m := g.StaticGlobal(name)
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, w := range words {
		g.AddDatum(4*i, operand.U32(w))
	}
	return m
}

// begin starts a function.
func (g *gen) begin(name, signature, doc string) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr(signature)
	g.Pragma("noescape")
	g.Doc(doc)
}

func (g *gen) load(m operand.Op) vecr {
	v := g.YMM()
	g.VMOVUPS(m, v)
	return v
}

// param loads a pointer or an int.
func (g *gen) param(name string) reg.GPVirtual {
	return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual)
}

// elem is the type of stored keys or values.
type elem struct {
	name, goType string
	size         int
}

var (
	f32  = elem{"F32", "float32", 4}
	f16  = elem{"F16", "uint16", 2}
	bf16 = elem{"BF16", "uint16", 2}
)

// widen loads 8 elements as float32; m's displacement counts bytes.
func (g *gen) widen(e elem, m operand.Mem, v vecr) {
	switch e {
	case f16:
		g.VCVTPH2PS(m, v)
	case bf16:
		g.VPMOVZXWD(m, v)
		g.VPSLLD(operand.U8(16), v, v)
	default:
		g.VMOVUPS(m, v)
	}
}

// rowsOf are the addresses of up to 6 rows that lie stride bytes apart.
type rowsOf struct {
	low, high, stride reg.GPVirtual // high is low + 3·stride, where there are more than 3 rows
	n                 int
}

func (g *gen) rows(base, stride reg.GPVirtual, n int) rowsOf {
	r := rowsOf{low: g.GP64(), stride: stride, n: n}
	g.MOVQ(base, r.low)
	if n > 3 {
		r.high = g.GP64()
		g.LEAQ(operand.Mem{Base: base, Index: stride, Scale: 2}, r.high)
		g.ADDQ(stride, r.high)
	}
	return r
}

func (r rowsOf) at(row, disp int) operand.Mem {
	m := operand.Mem{Base: r.low, Disp: disp}
	if row >= 3 {
		m.Base = r.high
		row -= 3
	}
	if row > 0 {
		m.Index, m.Scale = r.stride, uint8(row)
	}
	return m
}

func (g *gen) advance(r rowsOf, bytes int) {
	g.ADDQ(operand.I32(int32(bytes)), r.low)
	if r.n > 3 {
		g.ADDQ(operand.I32(int32(bytes)), r.high)
	}
}

// blocks emits the walk over all rows in blocks of 6, 4, 3, 2 and 1: 7 and 8 rows go
// as 4 and the rest, which keeps more sums in flight than 6 and 1 would. What a block
// computes for a row is the same in each.
func (g *gen) blocks(rows reg.GPVirtual, block func(n int)) {
	ref := func(s string) operand.LabelRef { return operand.LabelRef(s) }
	g.Label("next")
	g.CMPQ(rows, operand.I32(6))
	g.JE(ref("rows6"))
	g.CMPQ(rows, operand.I32(8))
	g.JG(ref("rows6"))
	g.CMPQ(rows, operand.I32(4))
	g.JGE(ref("rows4"))
	g.CMPQ(rows, operand.I32(3))
	g.JE(ref("rows3"))
	g.CMPQ(rows, operand.I32(2))
	g.JE(ref("rows2"))
	g.CMPQ(rows, operand.I32(1))
	g.JE(ref("rows1"))
	g.VZEROUPPER()
	g.RET()
	for _, n := range []int{6, 4, 3, 2, 1} {
		g.Label(fmt.Sprintf("rows%d", n))
		block(n)
		g.SUBQ(operand.I32(int32(n)), rows)
		g.JMP(ref("next"))
	}
}

// repeat emits body for as many times as the parameter count says, four at a time and
// then one by one. body gets the number of the repetition within the step; step moves
// the pointers on.
func (g *gen) repeat(label, count string, body func(i int), step func(n int)) {
	ref := func(s string) operand.LabelRef { return operand.LabelRef(label + s) }
	left := g.param(count)
	g.JMP(ref("test4"))
	g.Label(label + "loop4")
	for i := range 4 {
		body(i)
	}
	step(4)
	g.Label(label + "test4")
	g.SUBQ(operand.I32(4), left)
	g.JGE(ref("loop4"))
	g.ADDQ(operand.I32(4), left)
	g.JZ(ref("done"))
	g.Label(label + "loop1")
	body(0)
	step(1)
	g.SUBQ(operand.I32(1), left)
	g.JNZ(ref("loop1"))
	g.Label(label + "done")
}
