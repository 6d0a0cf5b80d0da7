package tokenizer

import (
	"unicode/utf8"
)

// wordPiece takes the longest piece again and again from the left; a word that cannot be spelled so is unknown as a whole (Wu et al. 2016, arXiv:1609.08144).
type wordPiece struct {
	starts  *trie // pieces that begin a word
	rest    *trie // pieces that go on in one, without their mark
	unk     int32 // -1: none
	longest int   // characters; longer words are unknown
}

func newWordPiece(n int, unk int32, longest int) *wordPiece {
	return &wordPiece{starts: newTrie(n), rest: newTrie(n), unk: unk, longest: longest}
}

func (m *wordPiece) encode(word string, _ *scratch, out []int32) []int32 {
	n := len(out)
	t := m.starts
	long := m.longest > 0 && len(word) > m.longest && utf8.RuneCountInString(word) > m.longest
	for rest := word; rest != ""; t = m.rest {
		id, size := int32(0), 0
		if !long {
			id, size = t.longest(rest, nil)
		}
		if size == 0 {
			if out = out[:n]; m.unk >= 0 {
				out = append(out, m.unk)
			}
			break
		}
		out = append(out, id)
		rest = rest[size:]
	}
	return out
}

// wordLevel knows whole words only.
type wordLevel struct {
	lookup map[string]int32
	unk    int32 // -1: none
}

func (m *wordLevel) encode(word string, _ *scratch, out []int32) []int32 {
	if id, ok := m.lookup[word]; ok {
		return append(out, id)
	}
	if m.unk >= 0 {
		out = append(out, m.unk)
	}
	return out
}

// longestMatch takes the longest token at each place, byte by byte.
type longestMatch struct {
	pieces *trie
	unk    int32 // -1: none
	runes  bool  // what is unknown is a character, not a byte
}

func (m *longestMatch) encode(word string, _ *scratch, out []int32) []int32 {
	for word != "" {
		id, size := m.pieces.longest(word, nil)
		if size == 0 {
			if id, size = m.unk, 1; m.runes {
				_, size = utf8.DecodeRuneInString(word)
			}
		}
		if id >= 0 {
			out = append(out, id)
		}
		word = word[size:]
	}
	return out
}
