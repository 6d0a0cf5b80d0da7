package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// segment is the length of a chain of float sums along K; see package gemm.
const segment = 384

// floatType is a float weight type: bytes of a value, and values of a row that
// lie together.
type floatType struct {
	name  string
	bytes int
	group int
}

var floatTypes = []floatType{{"F32", 4, 1}, {"F16", 2, 1}, {"BF16", 2, 2}}

// floatKernel emits AVX2 kernels of float weights: M rows times a packed panel.
// Fewer rows work on more segments at once, so that enough chains are under way;
// the sums of the segments are added in their order.
type floatKernel struct {
	*asm
	floatType
	m, parts int // rows and segments at once
	w        reg.GPVirtual
	rows     rowPointers
	acc      [4][4][2]reg.VecVirtual // [part][row][half]
	total    [4][2]reg.VecVirtual
	work     reg.GPVirtual // totals of 4 rows
}

func (k *floatKernel) emit(name string) {
	args := k.begin(name)
	k.work = k.pointer(args, argWork)
	k.panels(args, func(panel, dst reg.GPVirtual) {
		k.w = k.pointer(args, argPlane)
		k.ADDQ(panel, k.w)
		k.rows = k.loadRows(args, argActs, argActStride, k.m)
		k.eachSum(func(m, h int) {
			k.total[m][h] = k.YMM()
			k.VXORPS(k.total[m][h], k.total[m][h], k.total[m][h])
			k.putTotal(m, h)
		})
		k.wholeRow(k.pointer(args, argN))
		out := k.loadRows(args, argDst, argDstStride, k.m)
		k.ADDQ(dst, out.base)
		k.eachSum(func(m, h int) { k.VMOVUPS(k.getTotal(m, h), out.at(m, 32*h)) })
	})
	k.end()
}

// wholeRow adds up n values of a row: many segments at once, one, what is left.
func (k *floatKernel) wholeRow(n reg.GPVirtual) {
	if k.parts > 1 {
		k.whileAtLeast(n, k.parts*segment, func() {
			k.segments(k.parts, k.count(segment))
			k.advance(k.w, (k.parts-1)*k.segmentBytes())
			k.advance(k.rows.base, (k.parts-1)*segment*4)
		})
	}
	k.whileAtLeast(n, segment, func() { k.segments(1, k.count(segment)) })
	k.TESTQ(n, n)
	k.skip(k.JZ, func() { k.rest(n) })
}

func (k *floatKernel) segmentBytes() int { return segment * 16 * k.bytes }

func (k *floatKernel) eachSum(f func(m, h int)) {
	for m := range k.m {
		for h := range 2 {
			f(m, h)
		}
	}
}

// putTotal and getTotal keep the totals of 4 rows in memory.
func (k *floatKernel) putTotal(m, h int) {
	if k.m > 2 {
		k.VMOVUPS(k.total[m][h], operand.Mem{Base: k.work, Disp: workAcc + 64*m + 32*h})
	}
}

func (k *floatKernel) getTotal(m, h int) reg.VecVirtual {
	if k.m > 2 {
		k.total[m][h] = k.YMM()
		k.VMOVUPS(operand.Mem{Base: k.work, Disp: workAcc + 64*m + 32*h}, k.total[m][h])
	}
	return k.total[m][h]
}

// count makes a loop counter for so many values of a row.
func (k *floatKernel) count(values int) reg.GPVirtual {
	n := k.GP64()
	k.MOVQ(operand.U32(uint32(values/k.group)), n)
	return n
}

// segments runs so many segments of n groups at once and adds their sums up.
func (k *floatKernel) segments(parts int, n reg.GPVirtual) {
	k.clear(parts)
	k.loop(n, func() {
		k.prefetch(parts)
		for i := range k.group {
			k.step(parts, i)
		}
		k.next()
	})
	k.addSums(parts)
}

// rest is the incomplete last segment of n values.
func (k *floatKernel) rest(n reg.GPVirtual) {
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

func (k *floatKernel) clear(parts int) {
	for p := range parts {
		k.eachSum(func(m, h int) {
			a := k.YMM()
			k.VXORPS(a, a, a)
			k.acc[p][m][h] = a
		})
	}
}

// step multiplies value i of the current group in each part.
func (k *floatKernel) step(parts, i int) {
	for p := range parts {
		w := [2]reg.VecVirtual{k.weight(p, i, 0), k.weight(p, i, 1)}
		for m := range k.m {
			x := k.YMM()
			k.VBROADCASTSS(k.rows.at(m, p*segment*4+4*i), x)
			for h := range 2 {
				k.VFMADD231PS(w[h], x, k.acc[p][m][h])
			}
		}
	}
}

// weight reads value i of a group for 8 rows as floats.
func (k *floatKernel) weight(part, i, h int) reg.VecVirtual {
	w := k.YMM()
	src := operand.Mem{Base: k.w, Disp: part * k.segmentBytes()}
	switch k.name {
	case "F32":
		k.VMOVUPS(src.Offset(32*h), w)
	case "F16":
		k.VCVTPH2PS(src.Offset(16*h), w)
	case "BF16":
		k.VMOVUPS(src.Offset(32*h), w)
		if i == 0 {
			k.VPSLLD(operand.Imm(16), w, w)
		} else {
			k.VPAND(k.mem("high16"), w, w)
		}
	}
	return w
}

func (k *floatKernel) next() {
	k.advance(k.w, 16*k.bytes*k.group)
	k.advance(k.rows.base, 4*k.group)
}

// prefetch fetches what the parts read next, of one part alone 192 values ahead: a
// whole segment and the rows would not stay in the first cache together.
func (k *floatKernel) prefetch(parts int) {
	if parts == 1 {
		k.PREFETCHT0(operand.Mem{Base: k.w, Disp: k.segmentBytes() / 2})
		return
	}
	for p := range parts {
		k.PREFETCHT0(operand.Mem{Base: k.w, Disp: (p + parts) * k.segmentBytes()})
	}
}

func (k *floatKernel) addSums(parts int) {
	k.eachSum(func(m, h int) {
		t := k.getTotal(m, h)
		for p := range parts {
			k.VADDPS(k.acc[p][m][h], t, t)
		}
		k.putTotal(m, h)
	})
}

// whileAtLeast repeats body while n ≥ size, and takes size off n each time.
func (c *asm) whileAtLeast(n reg.GPVirtual, size int, body func()) {
	c.labels++
	top, done := label("while", c.labels), label("done", c.labels)
	c.Label(top)
	c.CMPQ(n, operand.U32(uint32(size)))
	c.JLT(operand.LabelRef(done))
	body()
	c.SUBQ(operand.U32(uint32(size)), n)
	c.JMP(operand.LabelRef(top))
	c.Label(done)
}

// floatTile is the number of rows of a tile of the wide float kernel.
const floatTile = 6

// floatUnroll is the number of values along K between two jumps: the end of a
// segment is then foreseen.
const floatUnroll = 8

// wideEnd says what becomes of the sums of a segment in a wide kernel.
type wideEnd int

const (
	wideSet    wideEnd = iota // they are the results
	wideAdd                   // they are added to the results
	wideFinish                // the results, the sums, a bias and a residual make the output
	wideOnly                  // the sums, a bias and a residual make the output
)

// wideEnds are the ends of the names of the kernels.
var wideEnds = []string{wideSet: "Set", wideAdd: "", wideFinish: "Finish", wideOnly: "Only"}

func (e wideEnd) adds() bool     { return e == wideAdd || e == wideFinish }
func (e wideEnd) finishes() bool { return e == wideFinish || e == wideOnly }

// wideFloats emits the kernels that multiply one segment of float weights
// [n][16] with tiles of 6 rows.
func (c *asm) wideFloats(name string) {
	for end, suffix := range wideEnds {
		c.wideFloat(name+suffix, wideEnd(end))
	}
}

func (c *asm) wideFloat(name string, end wideEnd) {
	args := c.begin(name)
	tiles := c.pointer(args, argTiles)
	x := c.loadRows(args, argActs, argActStride, 4)
	dst := c.loadRows(args, argDst, argDstStride, 4)
	five := c.GP64() // 5·stride of activations, then of results
	next := c.pointer(args, argNext)
	if end.finishes() {
		c.copyFinish(args)
	}
	c.loop(tiles, func() {
		w, n := c.pointer(args, argSlice), c.pointer(args, argN)
		c.LEAQ(operand.Mem{Base: x.stride, Index: x.stride, Scale: 4}, five)
		var acc wideSums
		for m := range acc {
			for h := range 2 {
				acc[m][h] = c.YMM()
				c.VXORPS(acc[m][h], acc[m][h], acc[m][h])
			}
		}
		if end.finishes() {
			c.fetchFinish(args, floatTile, 1)
		}
		c.wideSegment(&acc, x, w, n, five, next)
		c.LEAQ(operand.Mem{Base: dst.stride, Index: dst.stride, Scale: 4}, five)
		if end.adds() {
			c.addRows(&acc, dst, five)
		}
		if end.finishes() {
			c.finishRows(&acc, args)
		} else {
			c.storeRows(&acc, dst, five)
		}
		done := c.pointer(args, argN)
		c.SHLQ(operand.U8(2), done)
		c.SUBQ(done, x.base)
		c.LEAQ(operand.Mem{Base: x.base, Index: x.triple, Scale: 2}, x.base)
		c.LEAQ(operand.Mem{Base: dst.base, Index: dst.triple, Scale: 2}, dst.base)
	})
	c.end()
}

// wideSums are the sums of a tile, in two registers a row.
type wideSums [floatTile][2]reg.VecVirtual

// wideSegment adds n products a sum; w, n and the base of x are moved on. Meanwhile
// it fetches what next points to for the second-level cache, a line a jump: 8 tiles
// fetch the whole panel that comes next.
func (c *asm) wideSegment(acc *wideSums, x rowPointers, w, n, five, next reg.GPVirtual) {
	step := func(i int) {
		w0, w1 := c.YMM(), c.YMM()
		c.VMOVUPS(operand.Mem{Base: w, Disp: 64 * i}, w0)
		c.VMOVUPS(operand.Mem{Base: w, Disp: 64*i + 32}, w1)
		for m := range acc {
			v := c.YMM()
			c.VBROADCASTSS(x.six(m, 4*i, five), v)
			c.VFMADD231PS(w0, v, acc[m][0])
			c.VFMADD231PS(w1, v, acc[m][1])
		}
	}
	c.whileAtLeast(n, floatUnroll, func() {
		for i := range floatUnroll {
			step(i)
		}
		c.PREFETCHT1(operand.Mem{Base: next})
		c.advance(next, 64)
		c.advance(w, 64*floatUnroll)
		c.advance(x.base, 4*floatUnroll)
	})
	c.TESTQ(n, n)
	c.skip(c.JZ, func() { c.loop(n, func() { step(0); c.advance(w, 64); c.advance(x.base, 4) }) })
}

func (c *asm) addRows(acc *wideSums, from rowPointers, five reg.GPVirtual) {
	for m := range acc {
		for h := range 2 {
			c.VADDPS(from.six(m, 32*h, five), acc[m][h], acc[m][h])
		}
	}
}

func (c *asm) storeRows(acc *wideSums, to rowPointers, five reg.GPVirtual) {
	for m := range acc {
		for h := range 2 {
			c.VMOVUPS(acc[m][h], to.six(m, 32*h, five))
		}
	}
}

// finishRows adds bias and residual, and writes the output.
func (c *asm) finishRows(acc *wideSums, args reg.Register) {
	bias := c.pointer(args, argBias)
	b0, b1 := c.YMM(), c.YMM()
	c.VMOVUPS(operand.Mem{Base: bias}, b0)
	c.VMOVUPS(operand.Mem{Base: bias, Disp: 32}, b1)
	for m := range acc {
		c.VADDPS(b0, acc[m][0], acc[m][0])
		c.VADDPS(b1, acc[m][1], acc[m][1])
	}
	c.finishPart(args, workRes, argResStride, func(rows rowPointers, five reg.GPVirtual) { c.addRows(acc, rows, five) })
	c.finishPart(args, workOut, argOutStride, func(rows rowPointers, five reg.GPVirtual) { c.storeRows(acc, rows, five) })
}

// finishPart runs f with the rows whose pointer is kept at the given place of
// the working memory, and moves that on to the next tile.
func (c *asm) finishPart(args reg.Register, at, stride int, f func(rows rowPointers, five reg.GPVirtual)) {
	work, five := c.pointer(args, argWork), c.GP64()
	rows := rowPointers{c.pointer(work, at), c.pointer(args, stride), c.GP64()}
	c.LEAQ(operand.Mem{Base: rows.stride, Index: rows.stride, Scale: 2}, rows.triple)
	c.LEAQ(operand.Mem{Base: rows.stride, Index: rows.stride, Scale: 4}, five)
	f(rows, five)
	c.LEAQ(operand.Mem{Base: rows.base, Index: rows.triple, Scale: 2}, rows.base)
	c.MOVQ(rows.base, operand.Mem{Base: work, Disp: at})
}

// fetchFinish prefetches where a tile's output goes and what is added to it, a
// segment before they are needed: no earlier access foretells them.
func (c *asm) fetchFinish(args reg.Register, rows, lines int) {
	work := c.pointer(args, argWork)
	for _, p := range [][2]int{{workOut, argOutStride}, {workRes, argResStride}} {
		at, stride := c.pointer(work, p[0]), c.pointer(args, p[1])
		for range rows {
			for i := range lines {
				c.PREFETCHT0(operand.Mem{Base: at, Disp: 64 * i})
			}
			c.ADDQ(stride, at)
		}
	}
}

// copyFinish puts the pointers that move to working memory, where no garbage
// collector looks: after the last tile they may point behind their rows.
func (c *asm) copyFinish(args reg.Register) {
	work := c.pointer(args, argWork)
	c.MOVQ(c.pointer(args, argOut), operand.Mem{Base: work, Disp: workOut})
	c.MOVQ(c.pointer(args, argRes), operand.Mem{Base: work, Disp: workRes})
}

// six addresses up to 6 rows.
func (r rowPointers) six(m, disp int, five reg.GPVirtual) operand.Mem {
	p := operand.Mem{Base: r.base, Disp: disp}
	switch m {
	case 4:
		return p.Idx(r.stride, 4)
	case 5:
		return p.Idx(five, 1)
	}
	return r.at(m, disp)
}
