package main

import (
	"math"
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
)

// The polynomials, as in scalar.go of the package.
var (
	expPoly  = []float64{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}
	erfcPoly = []float64{0.28208640217781067, 0.2823753356933594, 0.24310365319252014, 0.20268723368644714,
		-0.02662636525928974, 0.2780679166316986, -0.4872002899646759, 0.2845750153064728, -0.059068940579891205}
	tanhPoly = []float64{1.0, -0.33333131670951843, 0.13328415155410767, -0.05352601408958435, 0.020024459809064865, -0.005088332574814558}
)

const (
	signBit = 1 << 31
	geluA   = 1.5957691216057308
	geluB   = 0.07135481627159886
)

// horner evaluates the polynomial, highest power first, at x.
func (g *gen) horner(x vecr, c []float64) vecr {
	p := g.load(g.f(c[0]))
	for _, k := range c[1:] {
		g.VFMADD213PS(g.f(k), x, p) // p = p·x + k
	}
	return p
}

func reversed(c []float64) []float64 {
	var r []float64
	for i := len(c) - 1; i >= 0; i-- {
		r = append(r, c[i])
	}
	return r
}

// exp is eˣ as in scalar.go; x is kept.
func (g *gen) exp(x vecr) vecr {
	c, lim := g.YMM(), g.YMM()
	// The second source, x, is what comes out where it is NaN.
	g.VMOVUPS(g.f(-104), lim)
	g.VMAXPS(x, lim, c)
	g.VMOVUPS(g.f(89), lim)
	g.VMINPS(c, lim, c)
	n, r := g.YMM(), g.YMM()
	g.VMULPS(g.f(math.Log2E), c, n)
	g.VROUNDPS(operand.U8(0), n, n)
	g.VMOVAPS(c, r)
	g.VFNMADD231PS(g.f(0.693359375), n, r)
	g.VFNMADD231PS(g.f(-2.12194440e-4), n, r)
	p := g.horner(r, expPoly)
	r2 := g.YMM()
	g.VMULPS(r, r, r2)
	g.VFMADD213PS(r, r2, p) // p·r² + r
	g.VADDPS(g.f(1), p, p)
	// Two factors, for 2ⁿ alone may be below or above what float32 can hold.
	h := g.YMM()
	g.VCVTPS2DQ(n, n)
	g.VPSRAD(operand.U8(1), n, h)
	g.VPSUBD(h, n, n)
	for _, k := range []vecr{h, n} {
		g.VPADDD(g.u(127), k, k)
		g.VPSLLD(operand.U8(23), k, k)
		g.VMULPS(k, p, p)
	}
	return p
}

func (g *gen) negate(x vecr) vecr {
	y := g.YMM()
	g.VXORPS(g.u(signBit), x, y)
	return y
}

func (g *gen) abs(x vecr) vecr {
	y := g.YMM()
	g.VANDPS(g.u(signBit-1), x, y)
	return y
}

// logistic is num / (1 + e⁻ᵘ).
func (g *gen) logistic(num, u vecr) vecr {
	e := g.exp(g.negate(u))
	g.VADDPS(g.f(1), e, e)
	g.VDIVPS(e, num, e)
	return e
}

func (g *gen) sigmoid(x vecr) vecr { return g.logistic(g.load(g.f(1)), x) }

func (g *gen) geluTanh(x vecr) vecr {
	u := g.YMM()
	g.VMULPS(x, x, u)
	b := g.load(g.f(geluB))
	g.VFMADD213PS(g.f(geluA), b, u) // u = x²·b + a
	g.VMULPS(x, u, u)
	return g.logistic(x, u)
}

func (g *gen) geluQuick(x vecr) vecr {
	u := g.YMM()
	g.VMULPS(g.f(1.702), x, u)
	return g.logistic(x, u)
}

// lot is a few vectors that go through the same operations side by side, so that
// each constant is loaded once for them.
type lot []vecr

// lotOf makes as many new registers as x has, each by f.
func lotOf(x lot, f func(i int) vecr) lot {
	out := make(lot, len(x))
	for i := range x {
		out[i] = f(i)
	}
	return out
}

// lot loads a constant for as many vectors as x has.
func (g *gen) lot(x lot, c operand.Mem) lot {
	first := g.load(c)
	return lotOf(x, func(i int) vecr {
		if i == 0 {
			return first
		}
		v := g.vec()
		g.VMOVAPS(first, v)
		return v
	})
}

// with runs f for each vector's index with a constant as an operand: in memory for one
// vector, in a register for more.
func (g *gen) with(x lot, c operand.Mem, f func(i int, c operand.Op)) {
	var op operand.Op = c
	if len(x) > 1 {
		op = g.load(c)
	}
	for i := range x {
		f(i, op)
	}
}

// multiply is x[i] = x[i]·y[i].
func (g *gen) multiply(x, y lot) {
	for i := range x {
		g.VMULPS(y[i], x[i], x[i])
	}
}

// geluErf is x·Φ(x) as in scalar.go. Its polynomials are added up in pairs: the
// chain of one vector is then short enough for the processor to overlap several.
// again gives x once more, which need not stay in registers all the while.
func (g *gen) geluErf(x lot, again func() lot) lot {
	z := lotOf(x, func(i int) vecr { return g.vec() })
	g.with(x, g.u(^uint32(signBit)), func(i int, c operand.Op) { g.VANDPS(c, x[i], z[i]) })
	g.with(x, g.f(1/math.Sqrt2), func(i int, c operand.Op) { g.VMULPS(c, z[i], z[i]) })
	d := g.lot(x, g.f(0.5))
	g.with(x, g.f(1), func(i int, c operand.Op) { g.VFMADD213PS(c, z[i], d[i]) })
	t := g.lot(x, g.f(1))
	for i := range x {
		g.VDIVPS(d[i], t[i], t[i])
	}
	g.multiply(z, z)
	e := g.expNegative(z)
	g.multiply(e, t)
	var half []float64
	for _, c := range erfcPoly {
		half = append(half, c/2)
	}
	g.multiply(e, g.estrin(t, half))
	x = again()
	other := g.lot(x, g.f(1))
	for i := range x {
		g.VSUBPS(e[i], other[i], other[i])
		g.negativeOf(x[i], e[i], other[i])
		g.VMULPS(x[i], e[i], e[i])
	}
	return e
}

// estrin evaluates the polynomial, lowest power first, at x: neighbours are
// joined to the coefficients of a polynomial in x² until one is left. One half is
// done before the other begins, which takes fewer registers.
func (g *gen) estrin(x lot, c []float64) lot {
	powers := []lot{x} // of 1, 2, 4, …
	var join func(c []float64) lot
	join = func(c []float64) lot {
		if len(c) == 1 {
			return g.lot(x, g.f(c[0]))
		}
		k := bits.Len(uint(len(c)-1)) - 1 // 2ᵏ coefficients in the lower half
		if len(c) == 2 {
			high := g.lot(x, g.f(c[1]))
			g.with(x, g.f(c[0]), func(i int, low operand.Op) { g.VFMADD213PS(low, x[i], high[i]) })
			return high
		}
		low, high := join(c[:1<<k]), join(c[1<<k:])
		for len(powers) <= k {
			last := powers[len(powers)-1]
			square := lotOf(x, func(i int) vecr { v := g.vec(); g.VMULPS(last[i], last[i], v); return v })
			powers = append(powers, square)
		}
		for i := range x {
			g.VFMADD213PS(low[i], powers[k][i], high[i]) // high·x² + low
		}
		return high
	}
	return join(c)
}

// expNegative is e⁻ᶻ for z ≥ 0, not below the least normal number: 2ⁿ·e⁻ʳ, where the
// polynomial takes r and has every other sign changed.
func (g *gen) expNegative(z lot) lot {
	r := g.lot(z, g.f(87))
	n := lotOf(z, func(i int) vecr { return g.vec() })
	for i := range z {
		g.VMINPS(z[i], r[i], r[i]) // the second source, z, is what comes out where it is NaN
	}
	g.with(z, g.f(-math.Log2E), func(i int, k operand.Op) { g.VMULPS(k, r[i], n[i]) })
	for i := range z {
		g.round(n[i])
	}
	g.with(z, g.f(0.693359375), func(i int, k operand.Op) { g.VFMADD231PS(k, n[i], r[i]) })
	g.with(z, g.f(-2.12194440e-4), func(i int, k operand.Op) { g.VFMADD231PS(k, n[i], r[i]) })
	c := append([]float64{1, 1}, reversed(expPoly)...)
	for i := 1; i < len(c); i += 2 {
		c[i] = -c[i]
	}
	p := g.estrin(r, c)
	for i := range z { // the sum of exponents is a product with 2ⁿ
		g.VCVTPS2DQ(n[i], n[i])
		g.VPSLLD(operand.U8(23), n[i], n[i])
		g.VPADDD(n[i], p[i], p[i])
	}
	return p
}

// round makes whole numbers of x, the even one of two as near.
func (g *gen) round(x vecr) {
	if g.lanes == 16 {
		g.VRNDSCALEPS(operand.U8(0), x, x)
		return
	}
	g.VROUNDPS(operand.U8(0), x, x)
}

// negativeOf leaves y where x has the sign bit, and puts z elsewhere.
func (g *gen) negativeOf(x, y, z vecr) {
	if g.lanes == 16 {
		k := g.K()
		g.VPMOVD2M(x, k)
		g.VBLENDMPS(y, z, k, y)
		return
	}
	g.VBLENDVPS(x, y, z, y)
}

func (g *gen) tanh(x vecr) vecr {
	a := g.abs(x)
	u := g.YMM()
	g.VMULPS(x, x, u)
	small := g.horner(u, reversed(tanhPoly))
	g.VMULPS(x, small, small)
	twice := g.YMM()
	g.VADDPS(a, a, twice)
	e := g.exp(twice)
	g.VADDPS(g.f(1), e, e)
	y := g.load(g.f(2))
	g.VDIVPS(e, y, y)
	one := g.load(g.f(1))
	g.VSUBPS(y, one, y)
	sign := g.YMM()
	g.VANDPS(g.u(signBit), x, sign)
	g.VORPS(sign, y, y)
	isSmall := g.YMM()
	g.VCMPPS(operand.U8(1), g.f(0.7), a, isSmall) // a < 0.7
	g.VBLENDVPS(isSmall, small, y, y)
	return y
}

// relu is max(x, 0), NaN where x is: the second source comes out then.
func (g *gen) relu(x vecr) vecr {
	y := g.YMM()
	g.VXORPS(y, y, y)
	g.VMAXPS(x, y, y)
	return y
}
