package tokenizer

// pairRank is what a pair of neighbouring tokens may become: the lower the rank, the sooner.
type pairRank struct {
	rank int32
	id   int32
}

// noPair is the rank of a pair that does not merge.
const noPair = int32(1<<31 - 1)

// pairTable maps a pair of ids to its merge: a hash table with open addressing, for the lookup is the inner loop of encoding.
type pairTable struct {
	slots []pairSlot
	mask  uint64
	used  int
}

type pairSlot struct {
	key  uint64 // left+1 in the upper half, right in the lower; 0 is free
	pair pairRank
}

func newPairTable(n int) *pairTable {
	size := 16
	for size < n+n/2 {
		size *= 2
	}
	return &pairTable{slots: make([]pairSlot, size), mask: uint64(size - 1)}
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left)+1)<<32 | uint64(uint32(right)) }

func (t *pairTable) slot(key uint64) *pairSlot {
	i := hash(key) & t.mask
	for t.slots[i].key != 0 && t.slots[i].key != key {
		i = (i + 1) & t.mask
	}
	return &t.slots[i]
}

// set stores a merge; of two for the same pair the later one stays, as in the reference.
func (t *pairTable) set(left, right int32, p pairRank) {
	key := pairKey(left, right)
	s := t.slot(key)
	if s.key == 0 {
		if t.used++; t.used > len(t.slots)/4*3 {
			t.grow()
			s = t.slot(key)
		}
	}
	s.key, s.pair = key, p
}

func (t *pairTable) grow() {
	old := t.slots
	t.slots = make([]pairSlot, 2*len(old))
	t.mask = uint64(len(t.slots) - 1)
	for _, s := range old {
		if s.key != 0 {
			*t.slot(s.key) = s
		}
	}
}

// get returns the merge of a pair, with rank noPair if there is none.
func (t *pairTable) get(left, right int32) pairRank {
	s := t.slot(pairKey(left, right))
	if s.key == 0 {
		return pairRank{rank: noPair}
	}
	return s.pair
}
