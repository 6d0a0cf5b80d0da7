package sample

import "math/bits"

// philox is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011): a bijection of a 128-bit counter under a 64-bit key. It
// has no state, so a draw can be made for any position in any order.
func philox(ctr [4]uint32, key [2]uint32) [4]uint32 {
	const (
		mul0, mul1   = 0xD2511F53, 0xCD9E8D57
		weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
	)
	for range 10 {
		hi0, lo0 := bits.Mul32(mul0, ctr[0])
		hi1, lo1 := bits.Mul32(mul1, ctr[2])
		ctr = [4]uint32{hi1 ^ ctr[1] ^ key[0], lo1, hi0 ^ ctr[3] ^ key[1], lo0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return ctr
}

// Uniform returns a number in [0, 1), a multiple of 2^-53, that depends on
// nothing but its arguments: the key of the generator is the seed, the counter
// is (position, choice). So a token drawn at a position is the same whatever
// else is in the batch, in whatever order positions are visited, and a draft is
// accepted if and only if it equals the token drawn here. position is the index
// in the sequence (prompt and answer) of the token being chosen, choice the
// index of the answer among the n of one request.
func Uniform(seed uint64, choice, position int) float64 {
	u, _ := uniforms(seed, choice, position)
	return u
}

// uniforms returns two such numbers that do not depend on each other, the first
// of which is Uniform's.
func uniforms(seed uint64, choice, position int) (u, v float64) {
	ctr := [4]uint32{uint32(position), uint32(uint64(position) >> 32), uint32(choice), uint32(uint64(choice) >> 32)}
	r := philox(ctr, [2]uint32{uint32(seed), uint32(seed >> 32)})
	unit := func(lo, hi uint32) float64 { return float64((uint64(lo)|uint64(hi)<<32)>>11) * 0x1p-53 }
	return unit(r[0], r[1]), unit(r[2], r[3])
}
