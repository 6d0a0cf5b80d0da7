package vec

// DecayDot computes dst = a · s + b · u and returns Σ dst · c in the package's
// fixed order: one row of a recurrent state takes a step and is read.
func DecayDot(dst, s, u, c []float32, a, b float32) float32 {
	n := len(dst)
	if n == 0 {
		return 0
	}
	s, u, c = s[:n], u[:n], c[:n]
	if useAVX2 {
		return decayDotAVX2(&dst[0], &s[0], &u[0], &c[0], a, b, n)
	}
	var p [lanes]float32
	for i, v := range s {
		x := float32(a*v) + float32(b*u[i])
		dst[i] = x
		p[i%lanes] += float32(x * c[i])
	}
	return tree(&p)
}
