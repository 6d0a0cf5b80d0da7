package tokenizer

import (
	"math"
	"unicode/utf8"
)

// unigram chooses the pieces whose log probabilities add up to the most (Kudo 2018, arXiv:1804.10959), with Viterbi's algorithm over the bytes of a word.
type unigram struct {
	pieces   *trie // values are ids
	lookup   map[string]int32
	scores   []float64
	unk      int32 // -1: none
	unkScore float64
	bytes    [256]int32
	fallback bool

	single bool   // scores add up in single precision, as in SentencePiece; tokenizers adds in double
	user   []bool // by id: pieces that are always taken (SentencePiece's user-defined ones); nil: none
}

// unkPenalty is how far below the least likely piece an unknown character stands, as in SentencePiece.
const unkPenalty = 10

// lattice is the best way to a byte of the word.
type lattice struct {
	score float64
	start int32 // where its last piece begins; -1: no way yet
	id    int32 // of that piece
}

func (m *unigram) encode(word string, sc *scratch, out []int32) []int32 {
	best := sc.lattice[:0]
	for range len(word) + 1 {
		best = append(best, lattice{start: -1})
	}
	sc.lattice = best
	best[0].start = 0
	frontier := 0
	for i := 0; i < len(word); {
		if m.single && math.Abs(best[i].score) > scoreReset {
			m.reset(best[i : frontier+1])
		}
		_, w := utf8.DecodeRuneInString(word[i:])
		frontier = max(frontier, m.extend(word, i, w, sc.strict, best))
		i += w
	}
	return m.trace(word, best, out)
}

// scoreReset is where SentencePiece counts anew, lest single precision run out over a long text.
const scoreReset = 100000

// reset takes the score of the first way from all, which are those that go on from there.
func (m *unigram) reset(best []lattice) {
	offset := best[0].score
	for i := range best {
		if i == 0 || best[i].start >= 0 {
			best[i].score = m.round(best[i].score - offset)
		}
	}
}

// extend offers every piece that begins at i, and the unknown character of w bytes if no piece is just that. It returns the last place that it reached.
func (m *unigram) extend(word string, i, w int, strict bool, best []lattice) (frontier int) {
	base := best[i].score
	whole := false
	node := uint32(0)
	for j := i; j < len(word); j++ {
		if node = m.pieces.child(node, word[j]); node == 0 {
			break
		}
		id := m.pieces.values[node]
		if id < 0 {
			continue
		}
		end := j + 1
		score := m.scores[id]
		if m.user != nil && m.user[id] {
			if strict {
				continue
			}
			score = float64(float32(0.1 * float64(end-i-1)))
		}
		whole = whole || end == i+w
		frontier = end
		if s := m.round(base + score); best[end].start < 0 || s > best[end].score {
			best[end] = lattice{score: s, start: int32(i), id: id}
		}
	}
	if s := m.round(base + m.unkScore); !whole && (best[i+w].start < 0 || s > best[i+w].score) {
		best[i+w] = lattice{score: s, start: int32(i), id: -1}
	}
	if !whole {
		frontier = max(frontier, i+w)
	}
	return frontier
}

func (m *unigram) round(score float64) float64 {
	if m.single {
		return float64(float32(score))
	}
	return score
}

// trace follows the best way back and appends its ids. Neighbouring unknown characters are one.
func (m *unigram) trace(word string, best []lattice, out []int32) []int32 {
	from := len(out)
	for end := len(word); end > 0; {
		start := int(best[end].start)
		id := best[end].id
		if id >= 0 && id != m.unk {
			out = append(out, id)
			end = start
			continue
		}
		for start > 0 && (best[start].id < 0 || best[start].id == m.unk) {
			start = int(best[start].start)
		}
		out = m.unknownReversed(word[start:end], out)
		end = start
	}
	for i, j := from, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// unknownReversed appends what stands for text that no pieces spell, last id first.
func (m *unigram) unknownReversed(text string, out []int32) []int32 {
	if id, ok := m.lookup[text]; ok {
		return append(out, id)
	}
	if m.fallback {
		n := len(out)
		for i := len(text) - 1; i >= 0; i-- {
			id := m.bytes[text[i]]
			if id < 0 {
				out = out[:n]
				break
			}
			out = append(out, id)
		}
		if len(out) > n {
			return out
		}
	}
	if m.unk >= 0 {
		out = append(out, m.unk)
	}
	return out
}
