package sample

// Mask is a set of allowed token ids, a bit each: id i is bit i%64 of word
// i/64. A nil Mask allows every token. A grammar makes one for each position.
type Mask []uint64

// NewMask returns an empty set for a vocabulary of the given size.
func NewMask(vocab int) Mask { return make(Mask, (vocab+63)/64) }

// Allow adds id, which must be below the size given to NewMask.
func (m Mask) Allow(id int32) { m[id>>6] |= 1 << (id & 63) }

// Allowed reports whether id, within the vocabulary, is in the set.
func (m Mask) Allowed(id int32) bool {
	return m == nil || m[id>>6]>>(id&63)&1 != 0
}
