package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// model builds the model of a SentencePiece file; its ids are those of the file. What the text may say is in lookup.
func (p *pieceFile) newModel() (model, error) {
	lookup := make(map[string]int32, len(p.texts))
	for i, text := range p.texts {
		if _, ok := lookup[text]; ok && p.spoken(i) {
			return nil, fmt.Errorf("%w: piece %d (%.40q) is there twice", ErrInvalid, i, text)
		}
		if p.spoken(i) {
			lookup[text] = int32(i)
		}
	}
	fallback := [256]int32{}
	if p.fallback {
		fallback, _ = byteTokens(p.texts, func(i int) bool { return p.types[i] == pieceByte })
	}
	switch p.model {
	case pieceUnigram:
		return p.unigram(fallback), nil
	case pieceBPE:
		return p.bpe(lookup, fallback), nil
	}
	return &wholePieces{lookup: lookup, user: p.userTrie(), unk: p.unknown(), words: p.model == pieceWord, bytes: fallback, fallback: p.fallback}, nil
}

// userTrie holds the user-defined pieces, nil if there are none.
func (p *pieceFile) userTrie() *trie {
	var t *trie
	for i, kind := range p.types {
		if kind == pieceUser {
			if t == nil {
				t = newTrie(0)
			}
			t.insert(p.texts[i], int32(i))
		}
	}
	return t
}

func (p *pieceFile) bpe(lookup map[string]int32, fallback [256]int32) model {
	m := &bpe{lookup: lookup, unk: p.unknown(), fuseUnk: true, fallback: p.fallback, bytes: fallback, user: p.userTrie(), known: make([]uint32, len(p.texts)/16+1)}
	m.ranks = scoreRanks(p.scores, func(i int) bool { return p.types[i] == pieceNormal || p.types[i] == pieceUnused })
	for i, kind := range p.types {
		if kind == pieceUnused {
			if m.unused == nil {
				m.unused = make([]bool, len(p.texts))
			}
			m.unused[i] = true
		}
	}
	m.cutFurther()
	return m
}

func (p *pieceFile) unigram(fallback [256]int32) model {
	m := &unigram{pieces: newTrie(len(p.texts)), lookup: map[string]int32{}, scores: make([]float64, len(p.texts)), unk: p.unknown(), bytes: fallback,
		fallback: p.fallback, single: true}
	lowest := math.Inf(1)
	for i, kind := range p.types {
		score := float64(p.scores[i])
		m.scores[i] = score
		switch kind {
		case pieceNormal:
			lowest = math.Min(lowest, score)
		case pieceUser:
			if m.user == nil {
				m.user = make([]bool, len(p.texts))
			}
			m.user[i] = true
		}
		if kind == pieceNormal || kind == pieceUser {
			m.pieces.insert(p.texts[i], int32(i))
		}
	}
	if math.IsInf(lowest, 0) {
		lowest = 0
	}
	m.unkScore = float64(float32(lowest) - unkPenalty)
	return m
}

// wholePieces knows whole words (cut at space marks) or single characters only: SentencePiece's word and char models.
type wholePieces struct {
	lookup   map[string]int32
	user     *trie // nil: none
	unk      int32
	words    bool
	bytes    [256]int32
	fallback bool
}

func (m *wholePieces) encode(text string, sc *scratch, out []int32) []int32 {
	unknown := false
	for text != "" {
		size := m.size(text, sc)
		part := text[:size]
		text = text[size:]
		if id, ok := m.lookup[part]; ok {
			out = append(out, id)
			unknown = false
			continue
		}
		if m.fallback {
			for i := range len(part) {
				out = append(out, m.bytes[part[i]])
			}
		} else if !unknown {
			out = append(out, m.unk)
		}
		unknown = true
	}
	return out
}

// size is the size of the word or character that text begins with.
func (m *wholePieces) size(text string, sc *scratch) int {
	if !m.words {
		if m.user != nil && !sc.strict {
			if _, size := m.user.longest(text, nil); size > 0 {
				return size
			}
		}
		_, size := utf8.DecodeRuneInString(text)
		return size
	}
	for i := 0; i < len(text); {
		_, w := utf8.DecodeRuneInString(text[i:])
		if i > 0 && text[i:i+w] == spaceMark {
			return i
		}
		i += w
	}
	return len(text)
}

// mappedModel gives the ids of another model other numbers.
type mappedModel struct {
	model
	ids []int32
}

func (m *mappedModel) encode(word string, sc *scratch, out []int32) []int32 {
	n := len(out)
	out = m.model.encode(word, sc, out)
	for i, id := range out[n:] {
		out[n+i] = m.ids[id]
	}
	return out
}
