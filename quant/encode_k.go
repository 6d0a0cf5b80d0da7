package quant

import "math"

// Encoders of the super-blocks of 256: each group of 16 or 32 values gets the
// scale (and minimum) of least weighted squared error by a search over nearby
// scales, then the groups' scales are rounded to their few bits and the codes
// are chosen anew against the rounded ones. Source: the *_ref quantisers of
// ggml-quants.c.

// nearest rounds to the nearest integer, ties to even, and clamps to [lo, hi].
func nearest(f float32, lo, hi int) int {
	return min(max(int(math.RoundToEven(float64(f))), lo), hi)
}

// affineSearch describes value = scale × q − low with 0 ≤ q ≤ top: the search
// tries (top + from + step × i) / (max − min) for i = 0 … steps.
type affineSearch struct {
	top        int
	from, step float32
	steps      int
	absolute   bool // weigh the magnitude of errors instead of their square
}

// fit returns scale and low (both ≥ 0) of least error weighted by w. As in
// ggml the search goes on from the best minimum so far, so that it wanders
// towards better ones.
func (s affineSearch) fit(x, w []float32) (scale, low float32) {
	lo, hi := bounds(x)
	lo = min(lo, 0)
	if hi == lo {
		return 0, -lo
	}
	inv := float32(s.top) / (hi - lo)
	scale = 1 / inv
	best := s.cost(x, w, inv, lo, scale, lo)
	for i := range s.steps + 1 {
		inv = (s.from + float32(s.step*float32(i)) + float32(s.top)) / (hi - lo)
		sc, mn, ok := s.try(x, w, inv, lo).solve()
		if !ok {
			continue
		}
		if e := s.cost(x, w, inv, lo, sc, mn); e < best {
			scale, lo, best = sc, mn, e
		}
	}
	return scale, -lo
}

// moments are the weighted sums of a linear regression of values on codes.
type moments struct{ w, x, q, qq, xq float64 }

// try chooses the codes for the inverse scale inv and sums their moments.
func (s affineSearch) try(x, w []float32, inv, lo float32) (m moments) {
	for i, v := range x {
		q, wi, xi := float64(nearest(inv*(v-lo), 0, s.top)), float64(w[i]), float64(v)
		m.w += wi
		m.x += float64(wi * xi)
		m.q += float64(wi * q)
		m.qq += float64(wi * q * q)
		m.xq += float64(wi * xi * q)
	}
	return m
}

// solve gives the best scale and minimum (never above 0) for fixed codes.
func (m moments) solve() (scale, low float32, ok bool) {
	det := float64(m.w*m.qq) - float64(m.q*m.q)
	if det <= 0 {
		return 0, 0, false
	}
	scale = float32((float64(m.w*m.xq) - float64(m.x*m.q)) / det)
	low = float32((float64(m.qq*m.x) - float64(m.q*m.xq)) / det)
	if low > 0 {
		return float32(m.xq / m.qq), 0, true
	}
	return scale, low, true
}

// cost is the weighted error when the codes that inv chooses mean scale × q + m.
func (s affineSearch) cost(x, w []float32, inv, lo, scale, m float32) (sum float64) {
	for i, v := range x {
		q := nearest(inv*(v-lo), 0, s.top)
		e := float64(scale*float32(q)) + float64(m) - float64(v)
		if s.absolute {
			sum += float64(float64(w[i]) * math.Abs(e))
		} else {
			sum += float64(float64(w[i]) * e * e)
		}
	}
	return sum
}

// symmetricScale returns the scale of value = scale × q, −n ≤ q < n, of least
// squared error weighted by the squares of the values.
func symmetricScale(x []float32, n int) (scale float32) {
	top := extreme(x)
	if abs(top) < 1e-15 {
		return 0
	}
	best := 0.0
	for is := -9; is <= 9; is++ {
		inv := -(float32(n) + 0.1*float32(is)) / top
		var xq, qq float64
		for _, v := range x {
			q, w := float64(nearest(inv*v, -n, n-1)), float64(v)*float64(v)
			xq += float64(w * float64(v) * q)
			qq += float64(w * q * q)
		}
		if qq > 0 && xq*xq > best*qq {
			best, scale = xq*xq/qq, float32(xq/qq)
		}
	}
	return scale
}

// descentScale returns the same scale as symmetricScale seeks, found by
// changing one code at a time as long as that helps: for few levels it is the
// better search.
func descentScale(x []float32, n int) (scale float32) {
	top := extreme(x)
	if abs(top) < 1e-15 {
		return 0
	}
	var codes [16]float64
	var xq, qq float64
	add := func(i int, q float64) (float64, float64) {
		v := float64(x[i])
		return float64(v * v * v * q), float64(v * v * q * q)
	}
	for i, v := range x {
		codes[i] = float64(nearest(-float32(n)/top*v, -n, n-1))
		a, b := add(i, codes[i])
		xq, qq = xq+a, qq+b
	}
	for changed, round := true, 0; changed && round < 5; round++ {
		changed = false
		for i, v := range x {
			a, b := add(i, codes[i])
			lx, lq := xq-a, qq-b
			if lx <= 0 {
				continue
			}
			q := float64(nearest(float32(float64(v)*lq/lx), -n, n-1))
			a, b = add(i, q)
			lx, lq = lx+a, lq+b
			if q != codes[i] && lq > 0 && lx*lx*qq > xq*xq*lq {
				codes[i], xq, qq, changed = q, lx, lq, true
			}
		}
	}
	if qq <= 0 {
		return 0
	}
	return float32(xq / qq)
}

// weights fills w with rms + |x| of the group, so that large values count more.
func weights(w, x []float32) {
	sum := 0.0
	for _, v := range x {
		sum += float64(float64(v) * float64(v))
	}
	rms := float32(math.Sqrt(sum / float64(len(x))))
	for i, v := range x {
		w[i] = rms + abs(v)
	}
}

// affineGroups holds the rounded scales of a super-block with minima and its
// 256 codes.
type affineGroups struct {
	d, dmin    float32 // as a half stores them
	scale, low [16]byte
	q          [256]byte
}

// fit encodes 256 values in groups of size values whose scales take 0 … limit.
func (g *affineGroups) fit(x []float32, size, limit int, s affineSearch) {
	var w [32]float32
	var scales, lows [16]float32
	n := 256 / size
	for j := range n {
		part := x[j*size : (j+1)*size]
		if weights(w[:size], part); s.absolute {
			for i, v := range part {
				w[i] = abs(v)
			}
		}
		scales[j], lows[j] = s.fit(part, w[:size])
	}
	_, maxScale := bounds(scales[:n])
	_, maxLow := bounds(lows[:n])
	g.d, g.dmin = roundHalf(maxScale/float32(limit)), roundHalf(maxLow/float32(limit))
	for j := range n {
		g.scale[j] = byte(nearest(scales[j]*inverse(maxScale/float32(limit)), 0, limit))
		g.low[j] = byte(nearest(lows[j]*inverse(maxLow/float32(limit)), 0, limit))
		d, m := g.d*float32(g.scale[j]), g.dmin*float32(g.low[j])
		for i := j * size; i < (j+1)*size; i++ {
			g.q[i] = 0
			if d != 0 {
				g.q[i] = byte(nearest((x[i]+m)/d, 0, s.top))
			}
		}
	}
}

func roundHalf(f float32) float32 { return FromF16(ToF16(f)) }

// packScaleMin is the inverse of scaleMinK.
func packScaleMin(dst []byte, scale, low *[16]byte) {
	for j := range 4 {
		dst[j] = scale[j] | scale[j+4]>>4<<6
		dst[j+4] = low[j] | low[j+4]>>4<<6
		dst[j+8] = scale[j+4]&15 | low[j+4]<<4
	}
}

func encodeQ2_K(dst []byte, src []float32) {
	var g affineGroups
	for ; len(src) > 0; dst, src = dst[84:], src[256:] {
		g.fit(src[:256], 16, 15, affineSearch{top: 3, from: -0.5, step: 0.1, steps: 15, absolute: true})
		for j := range 16 {
			dst[j] = g.scale[j] | g.low[j]<<4
		}
		packPairs(dst[16:80], &g.q)
		putHalf(dst[80:], g.d)
		putHalf(dst[82:], g.dmin)
	}
}

// packPairs stores the low 2 bits of 256 codes: byte i of half h holds the
// codes i, i+32, i+64 and i+96 of that half.
func packPairs(dst []byte, q *[256]byte) {
	for i := range 64 {
		at := i/32*128 + i%32
		dst[i] = q[at]&3 | q[at+32]&3<<2 | q[at+64]&3<<4 | q[at+96]&3<<6
	}
}

func encodeQ4_K(dst []byte, src []float32) {
	var g affineGroups
	for ; len(src) > 0; dst, src = dst[144:], src[256:] {
		g.fit(src[:256], 32, 63, affineSearch{top: 15, from: -1, step: 0.1, steps: 20})
		putHalf(dst, g.d)
		putHalf(dst[2:], g.dmin)
		packScaleMin(dst[4:16], &g.scale, &g.low)
		for i := range 128 {
			at := i/32*64 + i%32
			dst[16+i] = g.q[at] | g.q[at+32]<<4
		}
	}
}

func encodeQ5_K(dst []byte, src []float32) {
	var g affineGroups
	for ; len(src) > 0; dst, src = dst[176:], src[256:] {
		g.fit(src[:256], 32, 63, affineSearch{top: 31, from: -0.5, step: 0.1, steps: 15})
		putHalf(dst, g.d)
		putHalf(dst[2:], g.dmin)
		packScaleMin(dst[4:16], &g.scale, &g.low)
		clear(dst[16:48])
		for i, q := range g.q {
			dst[16+i%32] |= q >> 4 << (i / 32)
		}
		for i := range 128 {
			at := i/32*64 + i%32
			dst[48+i] = g.q[at]&15 | g.q[at+32]<<4
		}
	}
}

// symmetricGroups fits 16 groups of 16 to value = d·s × (q − n) with signed
// scales of −limit … limit−1 that search finds, and returns d as a half stores it.
func symmetricGroups(x []float32, n, limit int, search func([]float32, int) float32, scale *[16]int, q *[256]byte) (d float32) {
	var scales [16]float32
	for j := range scales {
		scales[j] = search(x[16*j:16*j+16], n)
	}
	unit := extreme(scales[:]) / -float32(limit)
	d = roundHalf(unit)
	for j, s := range scales {
		scale[j] = nearest(s*inverse(unit), -limit, limit-1)
		dl := d * float32(scale[j])
		for i := 16 * j; i < 16*j+16; i++ {
			q[i] = byte(n)
			if dl != 0 {
				q[i] = byte(nearest(x[i]/dl, -n, n-1) + n)
			}
		}
	}
	return d
}

func encodeQ3_K(dst []byte, src []float32) {
	var scale [16]int
	var q [256]byte
	for ; len(src) > 0; dst, src = dst[110:], src[256:] {
		d := symmetricGroups(src[:256], 4, 32, descentScale, &scale, &q)
		clear(dst[:32])
		for i, v := range q {
			dst[i%32] |= v >> 2 << (i / 32)
		}
		packPairs(dst[32:96], &q)
		clear(dst[96:108])
		for g, s := range scale {
			dst[96+g%8] |= byte(s+32) & 15 << (g / 8 * 4)
			dst[104+g%4] |= byte(s+32) >> 4 << (g / 4 * 2)
		}
		putHalf(dst[108:], d)
	}
}

func encodeQ6_K(dst []byte, src []float32) {
	var scale [16]int
	var q [256]byte
	for ; len(src) > 0; dst, src = dst[210:], src[256:] {
		d := symmetricGroups(src[:256], 32, 128, symmetricScale, &scale, &q)
		for i := range 128 {
			at := i/64*128 + i%64
			dst[i] = q[at]&15 | q[at+64]<<4
		}
		for i := range 64 {
			at := i/32*128 + i%32
			dst[128+i] = q[at]>>4 | q[at+32]>>4<<2 | q[at+64]>>4<<4 | q[at+96]>>4<<6
		}
		for g, s := range scale {
			dst[192+g] = byte(int8(s))
		}
		putHalf(dst[208:], d)
	}
}
