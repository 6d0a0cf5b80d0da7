package sample

import "math"

// tailFree returns how many of the likeliest candidates tail-free sampling
// keeps: those before the place where the second differences of the sorted
// probabilities, taken without their signs, sum to more than z of their whole.
// At least one is kept, and all where the tail is never reached. It follows
// llama.cpp's tfs_z; the C++ Inferflow begins to sum one place too late.
func (sc *Scratch) tailFree(c []cand, logits []float32, z float64) int {
	if len(c) < 3 {
		return len(c)
	}
	total := weigh(c, logits, largest(c, logits), 1)
	s := sc.sort(c)
	bend := func(i int) float64 {
		return math.Abs((s[i].w-s[i+1].w)-(s[i+1].w-s[i+2].w)) / total
	}
	n, whole := len(s)-2, 0.0
	for i := range n {
		whole += bend(i)
	}
	sum := 0.0
	for i := range n {
		if whole > leastBend {
			sum += bend(i) / whole
		} else {
			sum += 1 / float64(n) // a line: every place bends alike
		}
		if sum > z && i > 0 {
			return i
		}
	}
	return len(c)
}

// leastBend is the sum of bends below which the probabilities lie on a line.
const leastBend = 1e-6

// sort returns a copy of the candidates by rank, ties by the order that they
// have. It is a radix sort: linear in time, and in memory that is kept.
func (sc *Scratch) sort(c []cand) []cand {
	if cap(sc.sorted) < 2*len(c) {
		sc.sorted = make([]cand, 2*len(c))
	}
	from, to := sc.sorted[:len(c):len(c)], sc.sorted[len(c):2*len(c)]
	copy(from, c)
	var at [1 << 11]int32
	for shift := uint(0); shift < 32; shift += 11 {
		clear(at[:])
		for i := range from {
			at[from[i].key>>shift&(1<<11-1)]++
		}
		sum := int32(0)
		for d := range at {
			at[d], sum = sum, sum+at[d]
		}
		for _, x := range from {
			d := x.key >> shift & (1<<11 - 1)
			to[at[d]] = x
			at[d]++
		}
		from, to = to, from
	}
	return from
}
