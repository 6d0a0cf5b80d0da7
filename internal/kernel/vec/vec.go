// Package vec holds float32 kernels over one vector: norms, activations, softmax,
// rotary embedding, conversions. Sums run in an order that depends on the length
// alone, so that a result never depends on where a vector lies or who else is
// computed. Plain Go defines the meaning; the AVX2 forms agree to a few units in the
// last place. It must never import devices, programs or anything that allocates by
// request. Read RMSNorm first.
//
// All functions work on slices of equal length n = len(dst) (or as each says); the
// others must be at least that long. dst may be the same slice as an input, but may
// not overlap one partly. None allocates, none keeps a slice.
package vec

import "math"

// RMSNorm computes dst = x / sqrt(mean(x²) + eps) · (offset + weight) (Zhang and
// Sennrich 2019; offset is 1 for weights stored around zero, else 0). A nil weight
// stands for ones with offset 0.
func RMSNorm(dst, x, weight []float32, eps, offset float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	scale := float32(1 / math.Sqrt(float64(sumSquares(x, 0)/float32(n)+eps)))
	if weight == nil {
		Scale(dst, x, scale)
		return
	}
	weight = weight[:n]
	if useAVX2 {
		scaleWeightAVX2(&dst[0], &x[0], &weight[0], scale, offset, n)
		return
	}
	for i, v := range x {
		dst[i] = float32(v*scale) * float32(offset+weight[i])
	}
}

// LayerNorm computes dst = (x - mean) / sqrt(var + eps) · w + b with the biased
// variance, in two passes (Ba, Kiros, Hinton 2016). w and b may each be nil.
func LayerNorm(dst, x, w, b []float32, eps float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	mean := sum(x) / float32(n)
	scale := float32(1 / math.Sqrt(float64(sumSquares(x, mean)/float32(n)+eps)))
	if useAVX2 && w != nil && b != nil {
		w, b = w[:n], b[:n]
		layerAVX2(&dst[0], &x[0], &w[0], &b[0], mean, scale, n)
		return
	}
	if useAVX2 {
		shiftScaleAVX2(&dst[0], &x[0], mean, scale, n)
	} else {
		for i, v := range x {
			dst[i] = float32(v-mean) * scale
		}
	}
	if w != nil {
		Mul(dst, dst, w)
	}
	if b != nil {
		Add(dst, dst, b)
	}
}

// lanes is the number of partial sums of a reduction in plain Go: element i goes to
// partial sum i mod lanes, and these are added as a tree.
const lanes = 32

func tree(p *[lanes]float32) float32 {
	for h := lanes / 2; h > 0; h /= 2 {
		for i := range h {
			p[i] += p[i+h]
		}
	}
	return p[0]
}

// sum is Σx in the package's fixed order.
func sum(x []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	if useAVX2 {
		return sumAVX2(&x[0], len(x))
	}
	var p [lanes]float32
	for i, v := range x {
		p[i%lanes] += v
	}
	return tree(&p)
}

// sumSquares is Σ(x-mean)² in the package's fixed order.
func sumSquares(x []float32, mean float32) float32 {
	if len(x) == 0 {
		return 0
	}
	if useAVX2 {
		return sumSquaresAVX2(&x[0], mean, len(x))
	}
	var p [lanes]float32
	for i, v := range x {
		d := v - mean
		p[i%lanes] += float32(d * d)
	}
	return tree(&p)
}

// Sum is Σx in the package's fixed order.
func Sum(x []float32) float32 { return sum(x) }

// SumSquares is Σx² in the package's fixed order.
func SumSquares(x []float32) float32 { return sumSquares(x, 0) }

// Dot is Σ x·y over len(x) elements in the package's fixed order.
func Dot(x, y []float32) float32 {
	n := len(x)
	if n == 0 {
		return 0
	}
	y = y[:n]
	if useAVX2 {
		return dotAVX2(&x[0], &y[0], n)
	}
	var p [lanes]float32
	for i, v := range x {
		p[i%lanes] += float32(v * y[i])
	}
	return tree(&p)
}

// AddAdd computes dst = (a + b) + c.
func AddAdd(dst, a, b, c []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	a, b, c = a[:n], b[:n], c[:n]
	if useAVX2 {
		addAddAVX2(&dst[0], &a[0], &b[0], &c[0], n)
		return
	}
	for i, v := range a {
		dst[i] = v + b[i] + c[i]
	}
}

// Add computes dst = a + b.
func Add(dst, a, b []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	a, b = a[:n], b[:n]
	if useAVX2 {
		addAVX2(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// Sub computes dst = a - b.
func Sub(dst, a, b []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	a, b = a[:n], b[:n]
	if useAVX2 {
		subAVX2(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

// Mul computes dst = a · b, element by element.
func Mul(dst, a, b []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	a, b = a[:n], b[:n]
	if useAVX2 {
		mulAVX2(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// Div computes dst = a / b, element by element.
func Div(dst, a, b []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	a, b = a[:n], b[:n]
	if useAVX2 {
		divAVX2(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// Scale computes dst = s · x.
func Scale(dst, x []float32, s float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	if useAVX2 {
		scaleAVX2(&dst[0], &x[0], s, n)
		return
	}
	for i, v := range x {
		dst[i] = s * v
	}
}

// AXPY computes dst += a · x.
func AXPY(dst []float32, a float32, x []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	if useAVX2 {
		axpyAVX2(&dst[0], &dst[0], &x[0], a, n)
		return
	}
	for i, v := range x {
		dst[i] += float32(a * v)
	}
}
