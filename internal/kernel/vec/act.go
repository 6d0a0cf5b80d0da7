package vec

// Exp computes dst = eˣ; below -104 it is 0, above 88.73 +Inf, as in float32.
func Exp(dst, x []float32) {
	if x = x[:len(dst)]; len(x) == 0 {
		return
	}
	if useAVX2 {
		expAVX2(&dst[0], &x[0], len(x))
		return
	}
	for i, v := range x {
		dst[i] = exp(v)
	}
}

// Sigmoid computes dst = 1 / (1 + e⁻ˣ).
func Sigmoid(dst, x []float32) {
	if x = x[:len(dst)]; len(x) == 0 {
		return
	}
	if useAVX2 {
		sigmoidAVX2(&dst[0], &x[0], len(x))
		return
	}
	for i, v := range x {
		dst[i] = sigmoid(v)
	}
}

// SigmoidMul computes dst = sigmoid(gate) · x, an output gate.
func SigmoidMul(dst, gate, x []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	gate, x = gate[:n], x[:n]
	if useAVX2 {
		sigmoidMulAVX2(&dst[0], &gate[0], &x[0], n)
		return
	}
	for i, v := range gate {
		dst[i] = sigmoid(v) * x[i]
	}
}

// Tanh computes dst = tanh(x).
func Tanh(dst, x []float32) { Softcap(dst, x, 1) }

// Softcap computes dst = limit · tanh(x / limit).
func Softcap(dst, x []float32, limit float32) {
	if x = x[:len(dst)]; len(x) == 0 {
		return
	}
	inv := 1 / limit
	if useAVX2 {
		softcapAVX2(&dst[0], &x[0], inv, limit, len(x))
		return
	}
	for i, v := range x {
		dst[i] = limit * tanh(v*inv)
	}
}

// SiLU computes dst = x · sigmoid(x) (Elfwing et al. 2017).
func SiLU(dst, x []float32) {
	if x = x[:len(dst)]; len(x) == 0 {
		return
	}
	if useAVX2 {
		siluAVX2(&dst[0], &x[0], len(x))
		return
	}
	for i, v := range x {
		dst[i] = silu(v, 1)
	}
}

// SiLUMul computes dst = silu(gate) · up, the gate of SwiGLU (Shazeer 2020).
func SiLUMul(dst, gate, up []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	gate, up = gate[:n], up[:n]
	if useAVX2 {
		siluMulAVX2(&dst[0], &gate[0], &up[0], n)
		return
	}
	for i, v := range gate {
		dst[i] = silu(v, 1) * up[i]
	}
}

// GELUTanh computes the tanh form of GELU, x/2 · (1 + tanh(√(2/π)(x + 0.044715x³)))
// (Hendrycks and Gimpel 2016), as x · sigmoid of twice the argument, which is equal
// and does not cancel.
func GELUTanh(dst, x []float32) {
	if x = x[:len(dst)]; len(x) == 0 {
		return
	}
	if useAVX2 {
		geluTanhAVX2(&dst[0], &x[0], len(x))
		return
	}
	for i, v := range x {
		dst[i] = geluTanh(v)
	}
}

// GELUTanhMul computes dst = GELUTanh(gate) · up.
func GELUTanhMul(dst, gate, up []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	gate, up = gate[:n], up[:n]
	if useAVX2 {
		geluTanhMulAVX2(&dst[0], &gate[0], &up[0], n)
		return
	}
	for i, v := range gate {
		dst[i] = geluTanh(v) * up[i]
	}
}

// GELUQuick computes x · sigmoid(1.702x) (Hendrycks and Gimpel 2016, section 2).
func GELUQuick(dst, x []float32) {
	if x = x[:len(dst)]; len(x) == 0 {
		return
	}
	if useAVX2 {
		geluQuickAVX2(&dst[0], &x[0], len(x))
		return
	}
	for i, v := range x {
		dst[i] = silu(v, 1.702)
	}
}

// GELUErf computes GELU itself, x/2 · (1 + erf(x/√2)).
func GELUErf(dst, x []float32) {
	x = x[:len(dst)]
	if n := len(x) / 16 * 16; useAVX512 && n > 0 {
		geluErfAVX512(&dst[0], &x[0], n)
		dst, x = dst[n:], x[n:]
	}
	if len(x) == 0 {
		return
	}
	if useAVX2 {
		geluErfAVX2(&dst[0], &x[0], len(x))
		return
	}
	for i, v := range x {
		dst[i] = geluErf(v)
	}
}

// GELUErfAdd computes dst = gelu(a + b), the exact form.
func GELUErfAdd(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	if n := len(dst) / 16 * 16; useAVX512 && n > 0 {
		geluErfAddAVX512(&dst[0], &a[0], &b[0], n)
		dst, a, b = dst[n:], a[n:], b[n:]
	}
	n := len(dst)
	if n == 0 {
		return
	}
	if useAVX2 {
		geluErfAddAVX2(&dst[0], &a[0], &b[0], n)
		return
	}
	for i, v := range a {
		dst[i] = geluErf(v + b[i])
	}
}

// GELUErfMul computes dst = GELUErf(gate) · up.
func GELUErfMul(dst, gate, up []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	gate, up = gate[:n], up[:n]
	if useAVX2 {
		geluErfMulAVX2(&dst[0], &gate[0], &up[0], n)
		return
	}
	for i, v := range gate {
		dst[i] = geluErf(v) * up[i]
	}
}

// ClampedSwiGLU computes g·sigmoid(alpha·g) · (u + 1) with g = min(gate, limit) and
// u = up clamped to ±limit.
func ClampedSwiGLU(dst, gate, up []float32, alpha, limit float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	gate, up = gate[:n], up[:n]
	if useAVX2 {
		clampedSwiGLUAVX2(&dst[0], &gate[0], &up[0], alpha, limit, n)
		return
	}
	for i := range dst {
		g, u := atMost(gate[i], limit), atMost(up[i], limit)
		if u < -limit {
			u = -limit
		}
		dst[i] = silu(g, alpha) * (u + 1)
	}
}

// ReLU computes dst = max(x, 0); a NaN stays one.
func ReLU(dst, x []float32) {
	if x = x[:len(dst)]; len(x) == 0 {
		return
	}
	if useAVX2 {
		reluAVX2(&dst[0], &x[0], len(x))
		return
	}
	for i, v := range x {
		dst[i] = relu(v)
	}
}

// ReLU2 computes dst = max(x, 0)² (So et al. 2021).
func ReLU2(dst, x []float32) {
	if x = x[:len(dst)]; len(x) == 0 {
		return
	}
	if useAVX2 {
		relu2AVX2(&dst[0], &x[0], len(x))
		return
	}
	for i, v := range x {
		v = relu(v)
		dst[i] = v * v
	}
}
