package tokenizer

import (
	"unicode/utf8"
)

// neighbours tells which two characters stand side by side in some piece of a vocabulary. Where two do in none, no merge ever crosses the place between
// them, so a text may be cut there and each part encoded by itself: a vocabulary without a pre-tokenizer then works on words after all. It is a table of
// bits by hash; a collision costs a cut, never a wrong one.
type neighbours struct {
	bits [1 << 14]uint64
}

func newNeighbours(pieces map[string]int32) *neighbours {
	n := &neighbours{}
	for piece := range pieces {
		last := rune(-1)
		for _, r := range piece {
			if last >= 0 {
				h := n.hash(last, r)
				n.bits[h>>6] |= 1 << (h & 63)
			}
			last = r
		}
	}
	return n
}

func (n *neighbours) hash(a, b rune) uint64 {
	return (uint64(a)<<21 | uint64(b)) * 0x9e3779b97f4a7c15 >> 44
}

// has reports whether a stands before b in some piece. Invalid bytes never part, for they read alike.
func (n *neighbours) has(a, b rune) bool {
	if a == utf8.RuneError || b == utf8.RuneError {
		return true
	}
	h := n.hash(a, b)
	return n.bits[h>>6]>>(h&63)&1 != 0
}

// cutFurther lets words be cut between characters that are neighbours in no piece, where nothing but merges depends on the whole word.
func (m *bpe) cutFurther() {
	if m.byteLevel || m.prefix != "" || m.suffix != "" || m.ignore {
		return
	}
	if m.fuseUnk && m.unk >= 0 && !(m.fallback && m.allBytes()) { // unknown neighbours would no longer become one
		return
	}
	m.inside = newNeighbours(m.lookup)
}

// allBytes says that every character is spelled by the vocabulary: by itself, or in bytes. A byte that is a character of the vocabulary is never asked for.
func (m *bpe) allBytes() bool {
	for b, id := range m.bytes {
		if id >= 0 {
			continue
		}
		if _, own := m.lookup[string(rune(b))]; b >= utf8.RuneSelf || !own {
			return false
		}
	}
	return true
}
