package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// modelJSON is the model of tokenizer.json: the union of the fields of all kinds, without the two large ones.
type modelJSON struct {
	Type            string  `json:"type"`
	UnkToken        *string `json:"unk_token"`
	UnkID           *int64  `json:"unk_id"`
	Prefix          *string `json:"continuing_subword_prefix"`
	Suffix          *string `json:"end_of_word_suffix"`
	FuseUnk         bool    `json:"fuse_unk"`
	ByteFallback    bool    `json:"byte_fallback"`
	IgnoreMerges    bool    `json:"ignore_merges"`
	MaxCharsPerWord *int    `json:"max_input_chars_per_word"`

	vocab, merges string

	pieces []pieceJSON // instead of vocab
	lines  string      // instead of merges: the text of a merges.txt
	ranks  bool        // instead of merges: a pair merges to its concatenation, ranked by its id (tiktoken)
}

// parseModel reads all but vocab and merges, which it cuts out.
func parseModel(raw string) (*modelJSON, error) {
	m := &modelJSON{}
	small := []string{}
	err := members(raw, func(name, value string) {
		switch name {
		case "vocab":
			m.vocab = value
		case "merges":
			m.merges = value
		default:
			quoted, _ := json.Marshal(name)
			small = append(small, string(quoted)+":"+value)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte("{"+strings.Join(small, ",")+"}"), m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if isNull(m.vocab) {
		return nil, fmt.Errorf("%w: there is no vocab", ErrInvalid)
	}
	return m, nil
}

func (r *jsonReader) model(m *modelJSON) error {
	kind := m.Type
	if kind == "" { // files before the type was written
		switch {
		case !isNull(m.merges):
			kind = "BPE"
		case m.vocab[0] == '[':
			kind = "Unigram"
		case m.MaxCharsPerWord != nil:
			kind = "WordPiece"
		default:
			kind = "WordLevel"
		}
	}
	pieces := m.pieces
	if pieces == nil {
		var err error
		if pieces, err = scanVocab(m.vocab); err != nil {
			return err
		}
	}
	r.t.byteLevel = kind == "BPE" && r.alpha
	if !r.t.byteLevel && r.alpha {
		r.mapWords()
	}
	if err := r.vocabulary(pieces); err != nil {
		return err
	}
	switch kind {
	case "BPE":
		return r.bpe(m)
	case "Unigram":
		return r.unigram(m, pieces)
	case "WordPiece":
		return r.wordPiece(m, pieces)
	case "WordLevel":
		r.t.model = &wordLevel{lookup: r.t.lookup, unk: r.unk(m)}
		return nil
	}
	return fmt.Errorf("%w: model %.40q (known: BPE, Unigram, WordPiece, WordLevel)", ErrUnsupported, m.Type)
}

// mapWords makes words reach a model that is not byte-level in the byte alphabet.
func (r *jsonReader) mapWords() {
	list, _ := r.t.pre.(preTokenizers)
	if n := len(list); n > 0 {
		if m, ok := list[n-1].(byteMapper); ok && m.undo {
			r.t.pre = list[:n-1]
			return
		}
	}
	r.t.pre = append(list, byteMapper{})
}

// unk finds the id of the unknown token, -1 if there is none.
func (r *jsonReader) unk(m *modelJSON) int32 {
	if m.UnkToken == nil {
		return -1
	}
	id, ok := r.t.ID(*m.UnkToken)
	if !ok {
		return -1
	}
	r.t.named["unk"] = id
	return id
}

// wordUnk is unk for a model whose words are unknown as a whole: without the token that the file names they would vanish. It may be an added one.
func (r *jsonReader) wordUnk(m *modelJSON) (int32, error) {
	id := r.unk(m)
	if id >= 0 || m.UnkToken == nil {
		return id, nil
	}
	for _, a := range r.added {
		if a.Content == *m.UnkToken {
			r.t.named["unk"] = int32(a.ID)
			return int32(a.ID), nil
		}
	}
	return -1, fmt.Errorf("%w: unk_token is %.40q, which is not in the vocabulary", ErrInvalid, *m.UnkToken)
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func (r *jsonReader) bpe(j *modelJSON) error {
	t := r.t
	m := &bpe{lookup: t.lookup, byteLevel: t.byteLevel, unk: r.unk(j), fuseUnk: j.FuseUnk, prefix: text(j.Prefix), suffix: text(j.Suffix),
		ignore: j.IgnoreMerges, known: make([]uint32, len(t.texts)/16+1)}
	if t.byteLevel {
		m.bytes = singleBytes(t.lookup)
	} else {
		m.bytes, _ = byteTokens(t.texts, func(int) bool { return true })
		m.fallback = j.ByteFallback
	}
	m.merges = newPairTable(len(t.lookup))
	if j.ranks {
		r.rankedPairs(m)
		t.model = m
		return nil
	}
	var left, right []byte
	err := j.eachMerge(func(n int, l, rt string) error {
		if t.byteLevel {
			var ok1, ok2 bool
			left, ok1 = fromByteLevel(left[:0], l)
			right, ok2 = fromByteLevel(right[:0], rt)
			if !ok1 || !ok2 { // words never hold what is not in the alphabet
				return nil
			}
			return r.mergeBytes(m, n, left, right)
		}
		return r.merge(m, n, l, rt)
	})
	if err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	m.cutFurther()
	t.model = m
	return nil
}

// eachMerge yields the merges in order.
func (j *modelJSON) eachMerge(yield func(n int, left, right string) error) error {
	if j.lines == "" {
		return scanMerges(j.merges, yield)
	}
	return scanMergeLines(j.lines, yield)
}

// rankedPairs makes every two tokens that are a third when put together a merge, whose rank is the id of the third. Merging then does what tiktoken does.
func (r *jsonReader) rankedPairs(m *bpe) {
	for text, id := range m.lookup {
		for cut := 1; cut < len(text); cut++ {
			li, ok := m.lookup[text[:cut]]
			if !ok {
				continue
			}
			if ri, ok := m.lookup[text[cut:]]; ok {
				m.merges.set(li, ri, pairRank{rank: id, id: id})
			}
		}
	}
}

// mergeBytes stores a merge of raw bytes.
func (r *jsonReader) mergeBytes(m *bpe, n int, left, right []byte) error {
	li, ok1 := m.lookup[string(left)]
	ri, ok2 := m.lookup[string(right)]
	whole := append(left, bytes.TrimPrefix(right, []byte(m.prefix))...)
	id, ok3 := m.lookup[string(whole)]
	if !ok1 || !ok2 || !ok3 {
		return lostMerge(n, string(left), string(right), ok1, ok2)
	}
	r.setMerge(m, n, li, ri, id)
	return nil
}

// merge stores a merge.
func (r *jsonReader) merge(m *bpe, n int, left, right string) error {
	li, ok1 := m.lookup[left]
	ri, ok2 := m.lookup[right]
	id, ok3 := m.lookup[left+strings.TrimPrefix(right, m.prefix)]
	if !ok1 || !ok2 || !ok3 {
		return lostMerge(n, left, right, ok1, ok2)
	}
	r.setMerge(m, n, li, ri, id)
	return nil
}

// setMerge stores a merge unless it makes a special token: text must not become one.
func (r *jsonReader) setMerge(m *bpe, n int, left, right, id int32) {
	if !r.control(id) {
		m.merges.set(left, right, pairRank{rank: int32(n), id: id})
	}
}

func lostMerge(n int, left, right string, hasLeft, hasRight bool) error {
	what := "the whole is no token"
	switch {
	case !hasLeft:
		what = "the left part is no token"
	case !hasRight:
		what = "the right part is no token"
	}
	return fmt.Errorf("%w: entry %d (%.40q, %.40q): %s", ErrInvalid, n, left, right, what)
}

func (r *jsonReader) unigram(j *modelJSON, pieces []pieceJSON) error {
	t := r.t
	m := &unigram{pieces: newTrie(len(pieces)), lookup: t.lookup, scores: make([]float64, len(t.texts)), unk: -1, fallback: j.ByteFallback}
	if j.UnkID != nil {
		if *j.UnkID < 0 || *j.UnkID >= int64(len(pieces)) {
			return fmt.Errorf("%w: unk_id %d of %d pieces", ErrInvalid, *j.UnkID, len(pieces))
		}
		m.unk = int32(*j.UnkID)
		t.named["unk"] = m.unk
	}
	lowest := math.Inf(1)
	for _, p := range pieces {
		m.scores[p.id] = p.score
		lowest = math.Min(lowest, p.score)
		if !r.control(p.id) && p.id != m.unk {
			m.pieces.insert(p.text, p.id)
		}
	}
	m.unkScore = lowest - unkPenalty
	m.bytes, _ = byteTokens(t.texts, func(int) bool { return true })
	t.model = m
	return nil
}

func (r *jsonReader) wordPiece(j *modelJSON, pieces []pieceJSON) error {
	longest := 100
	if j.MaxCharsPerWord != nil {
		if longest = *j.MaxCharsPerWord; longest < 0 {
			return fmt.Errorf("%w: max_input_chars_per_word is %d", ErrInvalid, longest)
		}
	}
	unk, err := r.wordUnk(j)
	if err != nil {
		return err
	}
	prefix := "##"
	if j.Prefix != nil {
		prefix = *j.Prefix
	}
	m := newWordPiece(len(pieces), unk, longest)
	for _, p := range pieces {
		if r.control(p.id) {
			continue
		}
		m.starts.insert(p.text, p.id)
		if rest, ok := strings.CutPrefix(p.text, prefix); ok {
			m.rest.insert(rest, p.id)
		}
	}
	r.t.model = m
	return nil
}
