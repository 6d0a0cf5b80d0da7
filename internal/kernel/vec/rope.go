package vec

// RopeHalf turns the pairs (x[i], x[i+h]), h = len(cos), by the angles whose cosines
// and sines are given, in place (Su et al. 2021, in the layout of two halves). x has
// at least 2h elements; those beyond stay.
func RopeHalf(x, cos, sin []float32) {
	h := len(cos)
	if h == 0 {
		return
	}
	a, b, sin := x[:h], x[h:2*h], sin[:h]
	if useAVX2 {
		ropeHalfAVX2(&a[0], &b[0], &cos[0], &sin[0], h)
		return
	}
	for i, c := range cos {
		u, v, s := a[i], b[i], sin[i]
		a[i] = float32(u*c) - float32(v*s)
		b[i] = float32(v*c) + float32(u*s)
	}
}

// RopeInterleaved is RopeHalf for the pairs (x[2i], x[2i+1]).
func RopeInterleaved(x, cos, sin []float32) {
	h := len(cos)
	if h == 0 {
		return
	}
	x, sin = x[:2*h], sin[:h]
	if useAVX2 {
		ropePairsAVX2(&x[0], &cos[0], &sin[0], h)
		return
	}
	for i, c := range cos {
		u, v, s := x[2*i], x[2*i+1], sin[i]
		x[2*i] = float32(u*c) - float32(v*s)
		x[2*i+1] = float32(v*c) + float32(u*s)
	}
}
