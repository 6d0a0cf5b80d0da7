package main

// arithmetic emits the simple maps.
func arithmetic(g *gen) {
	ab := []string{"dst", "a", "b"}
	g.each("addAVX2", "addAVX2 computes dst = a + b.", "func(dst, a, b *float32, n int)", ab, nil,
		func(_, in []vecr) vecr { g.VADDPS(in[1], in[0], in[0]); return in[0] })
	g.each("addAddAVX2", "addAddAVX2 computes dst = a + b + c.", "func(dst, a, b, c *float32, n int)", []string{"dst", "a", "b", "c"}, nil,
		func(_, in []vecr) vecr {
			g.VADDPS(in[1], in[0], in[0])
			g.VADDPS(in[2], in[0], in[0])
			return in[0]
		})
	g.each("subAVX2", "subAVX2 computes dst = a - b.", "func(dst, a, b *float32, n int)", ab, nil,
		func(_, in []vecr) vecr { g.VSUBPS(in[1], in[0], in[0]); return in[0] })
	g.each("mulAVX2", "mulAVX2 computes dst = a · b.", "func(dst, a, b *float32, n int)", ab, nil,
		func(_, in []vecr) vecr { g.VMULPS(in[1], in[0], in[0]); return in[0] })
	g.each("divAVX2", "divAVX2 computes dst = a / b.", "func(dst, a, b *float32, n int)", ab, nil,
		func(_, in []vecr) vecr { g.VDIVPS(in[1], in[0], in[0]); return in[0] })
	g.each("scaleAVX2", "scaleAVX2 computes dst = s · x.", "func(dst, x *float32, s float32, n int)",
		[]string{"dst", "x"}, []string{"s"},
		func(s, in []vecr) vecr { g.VMULPS(s[0], in[0], in[0]); return in[0] })
	g.each("shiftScaleAVX2", "shiftScaleAVX2 computes dst = (x - mean) · scale.",
		"func(dst, x *float32, mean, scale float32, n int)", []string{"dst", "x"}, []string{"mean", "scale"},
		func(s, in []vecr) vecr {
			g.VSUBPS(s[0], in[0], in[0])
			g.VMULPS(s[1], in[0], in[0])
			return in[0]
		})
	g.each("layerAVX2", "layerAVX2 computes dst = (x - mean) · scale · w + b.",
		"func(dst, x, w, b *float32, mean, scale float32, n int)", []string{"dst", "x", "w", "b"}, []string{"mean", "scale"},
		func(s, in []vecr) vecr {
			g.VSUBPS(s[0], in[0], in[0])
			g.VMULPS(s[1], in[0], in[0])
			g.VMULPS(in[1], in[0], in[0])
			g.VADDPS(in[2], in[0], in[0])
			return in[0]
		})
	g.each("scaleWeightAVX2", "scaleWeightAVX2 computes dst = x · scale · (offset + w).",
		"func(dst, x, w *float32, scale, offset float32, n int)", []string{"dst", "x", "w"}, []string{"scale", "offset"},
		func(s, in []vecr) vecr {
			g.VMULPS(s[0], in[0], in[0])
			g.VADDPS(s[1], in[1], in[1])
			g.VMULPS(in[1], in[0], in[0])
			return in[0]
		})
	g.accumulate()
}

// activations emits the maps with an exponential inside, and the rectifiers.
func activations(g *gen) {
	for _, f := range []struct {
		name string
		body func(x vecr) vecr
	}{
		{"exp", g.exp}, {"sigmoid", g.sigmoid}, {"silu", func(x vecr) vecr { return g.logistic(x, x) }},
		{"geluTanh", g.geluTanh}, {"geluQuick", g.geluQuick}, {"relu", g.relu},
		{"relu2", func(x vecr) vecr { y := g.relu(x); g.VMULPS(y, y, y); return y }},
	} {
		g.each(f.name+"AVX2", f.name+"AVX2 computes dst = "+f.name+"(x).", "func(dst, x *float32, n int)",
			[]string{"dst", "x"}, nil, func(_, in []vecr) vecr { return f.body(in[0]) })
	}
	for _, f := range []struct {
		name string
		body func(x vecr) vecr
	}{
		{"silu", func(x vecr) vecr { return g.logistic(x, x) }}, {"geluTanh", g.geluTanh}, {"geluErf", g.oneGELUErf},
		{"sigmoid", g.sigmoid},
	} {
		g.each(f.name+"MulAVX2", f.name+"MulAVX2 computes dst = "+f.name+"(gate) · up.",
			"func(dst, gate, up *float32, n int)", []string{"dst", "gate", "up"}, nil,
			func(_, in []vecr) vecr {
				y := f.body(in[0])
				g.VMULPS(in[1], y, y)
				return y
			})
	}
	g.geluErfs("AVX2")
	g.each("softcapAVX2", "softcapAVX2 computes dst = limit · tanh(inv · x).",
		"func(dst, x *float32, inv, limit float32, n int)", []string{"dst", "x"}, []string{"inv", "limit"},
		func(s, in []vecr) vecr {
			g.VMULPS(s[0], in[0], in[0])
			y := g.tanh(in[0])
			g.VMULPS(s[1], y, y)
			return y
		})
	g.each("clampedSwiGLUAVX2", "clampedSwiGLUAVX2 computes the gate of ClampedSwiGLU.",
		"func(dst, gate, up *float32, alpha, limit float32, n int)", []string{"dst", "gate", "up"}, []string{"alpha", "limit"},
		func(s, in []vecr) vecr {
			// NaN must survive: it is the second source throughout.
			g.VMINPS(in[0], s[1], in[0])
			g.VMINPS(in[1], s[1], in[1])
			g.VMAXPS(in[1], g.negate(s[1]), in[1])
			u := g.YMM()
			g.VMULPS(s[0], in[0], u)
			y := g.logistic(in[0], u)
			g.VADDPS(g.f(1), in[1], in[1])
			g.VMULPS(in[1], y, y)
			return y
		})
}

// geluErfs emits the exact GELU, also of a sum.
func (g *gen) geluErfs(tier string) {
	whole := ""
	if g.lanes == 16 {
		whole = " n is a multiple of 16."
	}
	g.pairs("geluErf"+tier, "geluErf"+tier+" computes dst = geluErf(x)."+whole, "func(dst, x *float32, n int)", []string{"dst", "x"},
		func(load func() [][]vecr) lot {
			return g.geluErf(load()[0], func() lot { return load()[0] })
		})
	g.pairs("geluErfAdd"+tier, "geluErfAdd"+tier+" computes dst = geluErf(a + b)."+whole, "func(dst, a, b *float32, n int)", []string{"dst", "a", "b"},
		func(load func() [][]vecr) lot {
			sum := func() lot {
				in := load()
				for i, b := range in[1] {
					g.VADDPS(b, in[0][i], in[0][i])
				}
				return in[0]
			}
			return g.geluErf(sum(), sum)
		})
}

func (g *gen) oneGELUErf(x vecr) vecr {
	return g.geluErf(lot{x}, func() lot { return lot{x} })[0]
}

// accumulate emits axpy, which reads dst.
func (g *gen) accumulate() {
	g.each("axpyAVX2", "axpyAVX2 computes dst = old + a · x, where old is dst.", "func(dst, old, x *float32, a float32, n int)",
		[]string{"dst", "old", "x"}, []string{"a"},
		func(s, in []vecr) vecr { g.VFMADD231PS(s[0], in[1], in[0]); return in[0] })
}
