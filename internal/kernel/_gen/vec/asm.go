package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vecr is a vector register of float32.
type vecr = reg.VecVirtual

// gen emits functions, with a pool of constants that are stored once a lane, so
// that an instruction can take them from memory.
type gen struct {
	*build.Context
	pool  map[uint32]operand.Mem
	mask  *operand.Mem
	lanes int // of a vector: 8, or 16 with AVX-512
}

func newGen(lanes int) *gen {
	return &gen{Context: build.NewContext(), pool: map[uint32]operand.Mem{}, lanes: lanes}
}

// vec is a new register of a vector.
func (g *gen) vec() vecr {
	if g.lanes == 16 {
		return g.ZMM()
	}
	return g.YMM()
}

// f is the constant f in all lanes.
func (g *gen) f(f float64) operand.Mem { return g.u(math.Float32bits(float32(f))) }

// u is the constant of these bits in all lanes.
func (g *gen) u(bits uint32) operand.Mem {
	m, ok := g.pool[bits]
	if !ok {
		m = g.table(fmt.Sprintf("c%08x", bits), slices.Repeat([]uint32{bits}, g.lanes)...)
		g.pool[bits] = m
	}
	return m
}

// load puts a constant, or elements, into a new register.
func (g *gen) load(m operand.Op) vecr {
	v := g.vec()
	g.VMOVUPS(m, v)
	return v
}

// scalar loads a float32 parameter into all lanes, straight from memory: a
// MOVSS after the first broadcast would meet dirty upper halves, which costs
// hundreds of cycles.
func (g *gen) scalar(name string) vecr {
	v := g.YMM()
	p, err := g.Param(name).Resolve()
	if err != nil {
		panic(err) // no such parameter in the signature above it
	}
	g.VBROADCASTSS(p.Addr, v)
	return v
}

func (g *gen) pointer(name string) reg.GPVirtual {
	return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual)
}

// tailMask loads the mask whose first n lanes are set, n from 0 to 8.
func (g *gen) tailMask(n reg.GPVirtual) vecr {
	if g.mask == nil {
		const on = 0xffffffff
		m := g.table("tailMask", on, on, on, on, on, on, on, on, 0, 0, 0, 0, 0, 0, 0, 0)
		g.mask = &m
	}
	base, at := g.GP64(), g.GP64()
	g.LEAQ(*g.mask, base)
	g.MOVQ(operand.U32(8), at)
	g.SUBQ(n, at)
	return g.load(operand.Mem{Base: base, Index: at, Scale: 4})
}

// ptrs are the pointers of a loop, which walks them together.
type ptrs []reg.GPVirtual

func (g *gen) pointers(names []string) ptrs {
	var p ptrs
	for _, name := range names {
		p = append(p, g.pointer(name))
	}
	return p
}

func (g *gen) advance(p ptrs, bytes int) {
	for _, r := range p {
		g.ADDQ(operand.I32(int32(bytes)), r)
	}
}

// each emits a function that walks vectors of equal length, 8 elements at a time and
// the rest under a mask: dst = body(inputs). The first name is dst.
func (g *gen) each(name, doc, signature string, names []string, scalars []string, body func(s, in []vecr) vecr) {
	g.begin(name, signature, doc)
	p := g.pointers(names)
	n := g.pointer("n")
	var s []vecr
	for _, x := range scalars {
		s = append(s, g.scalar(x))
	}
	g.Label("loop")
	g.CMPQ(n, operand.I32(8))
	g.JL(operand.LabelRef("tail"))
	var in []vecr
	for _, r := range p[1:] {
		in = append(in, g.load(operand.Mem{Base: r}))
	}
	g.VMOVUPS(body(s, in), operand.Mem{Base: p[0]})
	g.advance(p, 32)
	g.SUBQ(operand.I32(8), n)
	g.JMP(operand.LabelRef("loop"))
	g.Label("tail")
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef("done"))
	mask := g.tailMask(n)
	in = nil
	for _, r := range p[1:] {
		v := g.YMM()
		g.VMASKMOVPS(operand.Mem{Base: r}, mask, v)
		in = append(in, v)
	}
	g.VMASKMOVPS(body(s, in), mask, operand.Mem{Base: p[0]})
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}

// pairs is each for long bodies: two vectors at a time go through the body side by
// side, then one, then the rest under a mask; functions of AVX-512 have no rest. load
// gives the inputs, as often as asked.
func (g *gen) pairs(name, doc, signature string, names []string, body func(load func() [][]vecr) lot) {
	g.begin(name, signature, doc)
	p := g.pointers(names)
	n := g.pointer("n")
	plain := func(k int) func() [][]vecr {
		return func() (in [][]vecr) {
			for _, r := range p[1:] {
				var v []vecr
				for i := range k {
					v = append(v, g.load(operand.Mem{Base: r, Disp: 4 * g.lanes * i}))
				}
				in = append(in, v)
			}
			return in
		}
	}
	for k := 2; k > 0; k-- {
		loop, next := fmt.Sprintf("loop%d", k), fmt.Sprintf("after%d", k)
		g.Label(loop)
		g.CMPQ(n, operand.I32(int32(g.lanes*k)))
		g.JL(operand.LabelRef(next))
		for i, y := range body(plain(k)) {
			g.VMOVUPS(y, operand.Mem{Base: p[0], Disp: 4 * g.lanes * i})
		}
		g.advance(p, 4*g.lanes*k)
		g.SUBQ(operand.I32(int32(g.lanes*k)), n)
		g.JMP(operand.LabelRef(loop))
		g.Label(next)
	}
	if g.lanes == 8 {
		g.masked(p, n, body)
	}
	g.VZEROUPPER()
	g.RET()
}

// masked emits the end of pairs, n elements under a mask.
func (g *gen) masked(p ptrs, n reg.GPVirtual, body func(load func() [][]vecr) lot) {
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef("done"))
	mask := g.tailMask(n)
	y := body(func() (in [][]vecr) {
		for _, r := range p[1:] {
			v := g.YMM()
			g.VMASKMOVPS(operand.Mem{Base: r}, mask, v)
			in = append(in, []vecr{v})
		}
		return in
	})
	g.VMASKMOVPS(y[0], mask, operand.Mem{Base: p[0]})
	g.Label("done")
}

// reduction is a function that folds vectors into four partial results of 8 lanes:
// elements 32i+8j+l go to lane l of partial j; what is left over when fewer than 32
// elements remain goes to partial 0, the last masked ones to partial 1. begin gives a
// partial's start, step folds inputs into one, finish ends.
type reduction struct {
	name, doc, signature string
	names, scalars       []string
	dst                  string // where step's result is stored; "" for nowhere
	begin                func() vecr
	step                 func(s, in []vecr, mask *vecr, acc vecr) vecr
	finish               func(acc []vecr)
}

// reduce emits r.
func (g *gen) reduce(r reduction) {
	g.begin(r.name, r.signature, r.doc)
	p := g.pointers(r.names)
	inputs := p
	var dst reg.GPVirtual
	if r.dst != "" {
		dst = g.pointer(r.dst)
		p = append(p, dst)
	}
	n := g.pointer("n")
	var s, acc []vecr
	for _, x := range r.scalars {
		s = append(s, g.scalar(x))
	}
	for range 4 {
		acc = append(acc, r.begin())
	}
	loads := func(off int) (in []vecr) {
		for _, q := range inputs {
			in = append(in, g.load(operand.Mem{Base: q, Disp: off}))
		}
		return in
	}
	full := func(off int, acc vecr) {
		if out := r.step(s, loads(off), nil, acc); r.dst != "" {
			g.VMOVUPS(out, operand.Mem{Base: dst, Disp: off})
		}
	}
	g.Label("loop4")
	g.CMPQ(n, operand.I32(32))
	g.JL(operand.LabelRef("loop1"))
	for j := range 4 {
		full(32*j, acc[j])
	}
	g.advance(p, 128)
	g.SUBQ(operand.I32(32), n)
	g.JMP(operand.LabelRef("loop4"))
	g.Label("loop1")
	g.CMPQ(n, operand.I32(8))
	g.JL(operand.LabelRef("tail"))
	full(0, acc[0])
	g.advance(p, 32)
	g.SUBQ(operand.I32(8), n)
	g.JMP(operand.LabelRef("loop1"))
	g.Label("tail")
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef("done"))
	mask := g.tailMask(n)
	var in []vecr
	for _, q := range inputs {
		v := g.YMM()
		g.VMASKMOVPS(operand.Mem{Base: q}, mask, v)
		in = append(in, v)
	}
	if out := r.step(s, in, &mask, acc[1]); r.dst != "" {
		g.VMASKMOVPS(out, mask, operand.Mem{Base: dst})
	}
	g.Label("done")
	r.finish(acc)
}

// fold reduces four registers to the lowest lane of the first, as a tree.
func (g *gen) fold(acc []vecr, op func(a, b, dst operand.Op)) reg.Register {
	op(acc[1], acc[0], acc[0])
	op(acc[3], acc[2], acc[2])
	op(acc[2], acc[0], acc[0])
	x, t := acc[0].AsX(), g.XMM()
	g.VEXTRACTF128(operand.U8(1), acc[0], t)
	op(t, x, x)
	g.VMOVHLPS(x, x, t)
	op(t, x, x)
	g.VMOVSHDUP(x, t)
	op(t, x, x)
	return x
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
