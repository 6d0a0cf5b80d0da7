package vec

import "math"

// Softmax computes dst = exp(x - max x) / Σ exp(x - max x). Entries of -Inf get
// exactly 0; a row of nothing else gives zeros. A NaN or +Inf makes the row NaN.
func Softmax(dst, x []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	m := Max(x)
	if math.IsInf(float64(m), -1) {
		clear(dst)
		return
	}
	Scale(dst, dst, 1/ExpSum(dst, x, m))
}

// ExpSum computes dst = exp(x - m) and returns its sum in the package's fixed order:
// one part of a softmax that several threads share.
func ExpSum(dst, x []float32, m float32) float32 {
	n := len(dst)
	if n == 0 {
		return 0
	}
	x = x[:n]
	if useAVX2 {
		return expSumAVX2(&dst[0], &x[0], m, n)
	}
	var p [lanes]float32
	for i, v := range x {
		e := exp(v - m)
		dst[i] = e
		p[i%lanes] += e
	}
	return tree(&p)
}

// Max is the largest element, NaN if any is NaN, and -Inf of nothing.
func Max(x []float32) float32 {
	if len(x) == 0 {
		return float32(math.Inf(-1))
	}
	if useAVX2 {
		m, nan := maxAVX2(&x[0], len(x))
		if nan != 0 {
			return float32(math.NaN())
		}
		return m
	}
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v != v {
			return v
		}
		if v > m {
			m = v
		}
	}
	return m
}

// MaxIndex is the lowest index of the largest element. ok is false, and the index 0,
// if an element is NaN or +Inf or all are -Inf: such logits are a fault of the
// computation, not a choice. Single entries of -Inf are tokens that were excluded.
// Of nothing the index is -1.
func MaxIndex(x []float32) (index int, ok bool) {
	if len(x) == 0 {
		return -1, false
	}
	m := Max(x)
	if m != m || math.IsInf(float64(m), 0) {
		return 0, false
	}
	if useAVX2 {
		return findAVX2(&x[0], m, len(x)), true
	}
	for i, v := range x {
		if v == m {
			return i, true
		}
	}
	return 0, false
}
