package main

import (
	"math"

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

// geluErf is x·Φ(x) as in scalar.go. Its polynomials are added up in pairs: the
// chain of one vector is then short enough for the processor to overlap several.
func (g *gen) geluErf(x vecr) vecr {
	z := g.abs(x)
	g.VMULPS(g.f(1/math.Sqrt2), z, z)
	t, d := g.load(g.f(1)), g.load(g.f(0.5))
	g.VFMADD213PS(g.f(1), z, d)
	g.VDIVPS(d, t, t)
	g.VMULPS(z, z, z)
	e := g.expNegative(z)
	g.VMULPS(t, e, e)
	var half []float64
	for _, c := range erfcPoly {
		half = append(half, c/2)
	}
	g.VMULPS(g.estrin(t, half), e, e)
	other := g.load(g.f(1))
	g.VSUBPS(e, other, other)
	g.VBLENDVPS(x, e, other, e) // e where x is negative
	g.VMULPS(x, e, e)
	return e
}

// estrin evaluates the polynomial, lowest power first, at x: neighbours are
// joined to the coefficients of a polynomial in x² until one is left.
func (g *gen) estrin(x vecr, c []float64) vecr {
	var p []vecr
	for i := 0; i < len(c); i += 2 {
		if i+1 == len(c) {
			p = append(p, g.load(g.f(c[i])))
			continue
		}
		v := g.load(g.f(c[i+1]))
		g.VFMADD213PS(g.f(c[i]), x, v) // v = v·x + c
		p = append(p, v)
	}
	for len(p) > 1 {
		square := g.YMM()
		g.VMULPS(x, x, square)
		x = square
		for i := 0; i+1 < len(p); i += 2 {
			g.VFMADD213PS(p[i], x, p[i+1])
			p[i/2] = p[i+1]
		}
		if len(p)%2 == 1 {
			p[len(p)/2] = p[len(p)-1]
		}
		p = p[:(len(p)+1)/2]
	}
	return p[0]
}

// expNegative is e⁻ᶻ for z ≥ 0, not below the least normal number.
func (g *gen) expNegative(z vecr) vecr {
	c, n := g.YMM(), g.YMM()
	g.VMOVUPS(g.f(87), c)
	g.VMINPS(z, c, c) // the second source, z, is what comes out where it is NaN
	g.VMULPS(g.f(-math.Log2E), c, n)
	g.VROUNDPS(operand.U8(0), n, n)
	g.VXORPS(g.u(signBit), c, c)
	g.VFNMADD231PS(g.f(0.693359375), n, c)
	g.VFNMADD231PS(g.f(-2.12194440e-4), n, c)
	p := g.estrin(c, append([]float64{1, 1}, reversed(expPoly)...))
	g.VCVTPS2DQ(n, n)
	g.VPADDD(g.u(127), n, n)
	g.VPSLLD(operand.U8(23), n, n)
	g.VMULPS(n, p, p)
	return p
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
