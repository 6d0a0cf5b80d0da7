package tokenizer

import (
	"sync/atomic"
	"unicode/utf8"
)

// bpe is byte-pair encoding: a word starts as its bytes or characters, and the pair of neighbours with the lowest rank merges, the leftmost of equals
// first, until none does (Sennrich et al. 2016, arXiv:1508.07909; over bytes: Radford et al. 2019).
type bpe struct {
	lookup map[string]int32 // piece → id; pieces of a byte-level vocabulary as raw bytes
	merges *pairTable       // by pair of ids; nil: a pair merges to its concatenation, ranked by ranks
	ranks  []int32          // by id of the concatenation; noPair for what never arises by merging

	bytes     [256]int32 // ids of single bytes (byte level) or of byte tokens (fallback); -1 where missing
	byteLevel bool       // words start as bytes
	fallback  bool       // a character that the vocabulary lacks is spelled with byte tokens, if all of them exist
	unk       int32      // -1: none
	fuseUnk   bool       // neighbours that are unknown become one
	prefix    string     // of a character that does not begin its word (continuing_subword_prefix)
	suffix    string     // of the last character of a word (end_of_word_suffix)
	ignore    bool       // a word that is a token is taken whole, whatever the merges say (ignore_merges)

	inside   *neighbours // characters that are neighbours in some piece; nil: words are not cut further
	known    []uint32    // two bits an id: whether a word that equals the token encodes to it alone (1 yes, 2 no); atomic
	newlines bool        // a word of newlines alone that is a token is taken whole

	user   *trie  // pieces that are taken whole wherever they stand and never merge (SentencePiece's user-defined ones); nil: none
	unused []bool // by id: pieces that fall apart into what they were merged from; nil: none
}

// symbol is a stretch of a word during merging; merged-away symbols have size 0.
type symbol struct {
	id         int32
	start, end int32
	prev, next int32
	frozen     bool // never merges
}

// spaceMark stands for a space in SentencePiece vocabularies.
const spaceMark = "\u2581"

// directMerge is the longest word, in symbols, that is merged by looking over all pairs; longer ones use a heap.
const directMerge = 24

func (m *bpe) encode(word string, sc *scratch, out []int32) []int32 {
	if m.inside == nil {
		return m.encodeWord(word, sc, out)
	}
	start := 0
	last := rune(-1)
	for i, r := range word {
		if last >= 0 && !m.inside.has(last, r) {
			out = m.encodeWord(word[start:i], sc, out)
			start = i
		}
		last = r
	}
	if start == len(word) {
		return out
	}
	return m.encodeWord(word[start:], sc, out)
}

func (m *bpe) encodeWord(word string, sc *scratch, out []int32) []int32 {
	if id, ok := m.lookup[word]; ok && m.suffix == "" && (m.ranks == nil || m.ranks[id] != noPair) && m.wholeWord(word, id, sc) {
		return append(out, id)
	}
	return m.merge(word, sc, out)
}

// wholeWord reports whether word, which is the text of id, encodes to id alone. The answer is worked out once a token.
func (m *bpe) wholeWord(word string, id int32, sc *scratch) bool {
	if m.ignore || m.newlines && allNewlines(word) {
		return true
	}
	at, shift := &m.known[id>>4], uint(id&15)*2
	switch atomic.LoadUint32(at) >> shift & 3 {
	case 1:
		return true
	case 2:
		return false
	}
	ids := m.merge(word, sc, nil)
	if len(ids) == 1 && ids[0] == id {
		atomic.OrUint32(at, 1<<shift)
		return true
	}
	atomic.OrUint32(at, 2<<shift)
	return false
}

func allNewlines(word string) bool {
	for i := range len(word) {
		if word[i] != '\n' {
			return false
		}
	}
	return word != ""
}

// merge encodes a word by its merges alone.
func (m *bpe) merge(word string, sc *scratch, out []int32) []int32 {
	if m.merges == nil {
		return m.mergeTexts(word, sc, out)
	}
	ids := m.start(word, sc)
	if len(ids) <= directMerge {
		return append(out, m.mergeDirect(ids, sc)...)
	}
	return m.mergeHeap(ids, sc, out)
}

// start returns the ids that a word begins with, in sc.ids.
func (m *bpe) start(word string, sc *scratch) []int32 {
	ids := sc.ids[:0]
	if m.byteLevel {
		marked := m.prefix != "" || m.suffix != ""
		for i := range len(word) {
			id := m.bytes[word[i]]
			if marked {
				id = -1
				if got, ok := m.charID(word, i, i+1); ok {
					id = got
				}
			}
			if id >= 0 {
				ids = append(ids, id)
			} else if m.unk >= 0 {
				ids = m.appendUnk(ids)
			}
		}
		sc.ids = ids
		return ids
	}
	unknown := false // the last symbol was unknown, for fuseUnk
	for i := 0; i < len(word); {
		_, w := utf8.DecodeRuneInString(word[i:])
		id, ok := m.charID(word, i, i+w)
		switch {
		case ok:
			ids = append(ids, id)
			unknown = false
		case m.fallback && m.hasBytes(word[i:i+w]):
			for _, b := range []byte(word[i : i+w]) {
				ids = append(ids, m.bytes[b])
			}
			unknown = false
		case m.unk >= 0 && !(m.fuseUnk && unknown):
			ids = append(ids, m.unk)
			unknown = true
		}
		i += w
	}
	sc.ids = ids
	return ids
}

func (m *bpe) appendUnk(ids []int32) []int32 {
	if n := len(ids); m.fuseUnk && n > 0 && ids[n-1] == m.unk {
		return ids
	}
	return append(ids, m.unk)
}

// charID looks up the character word[i:j] with the marks that its place in the word asks for.
func (m *bpe) charID(word string, i, j int) (int32, bool) {
	piece := word[i:j]
	if m.prefix != "" && i > 0 {
		piece = m.prefix + piece
	}
	if m.suffix != "" && j == len(word) {
		piece += m.suffix
	}
	id, ok := m.lookup[piece]
	return id, ok
}

func (m *bpe) hasBytes(s string) bool {
	for i := range len(s) {
		if m.bytes[s[i]] < 0 {
			return false
		}
	}
	return true
}

// mergeDirect merges in place by looking for the lowest rank again and again: the obvious way, and the fastest for short words.
func (m *bpe) mergeDirect(ids []int32, sc *scratch) []int32 {
	pairs := sc.pairs[:0]
	for i := 1; i < len(ids); i++ {
		pairs = append(pairs, m.merges.get(ids[i-1], ids[i]))
	}
	for len(pairs) > 0 {
		best, rank := 0, noPair
		for i := range pairs {
			if pairs[i].rank < rank {
				best, rank = i, pairs[i].rank
			}
		}
		if rank == noPair {
			break
		}
		ids[best] = pairs[best].id
		ids = append(ids[:best+1], ids[best+2:]...)
		pairs = append(pairs[:best], pairs[best+1:]...)
		if best > 0 {
			pairs[best-1] = m.merges.get(ids[best-1], ids[best])
		}
		if best < len(pairs) {
			pairs[best] = m.merges.get(ids[best], ids[best+1])
		}
	}
	sc.pairs = pairs[:0]
	return ids
}
