package tokenizer

import (
	"fmt"
	"math"
	"strings"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

// unigram reads a SentencePiece unigram vocabulary.
func (r *ggufReader) unigram(t *Tokenizer, v *vocabulary) error {
	if v.scores == nil {
		return fmt.Errorf("tokenizer: %w: key %sscores is missing, which this model needs", ErrInvalid, ggml)
	}
	plain := v.spoken
	t.lookup, t.others = v.byText(asWritten, plain)
	spDefaults(t, map[string]int32{"eos": 1, "unk": 2, "pad": 0})
	m := &unigram{pieces: newTrie(len(v.texts)), lookup: t.lookup, scores: make([]float64, len(v.texts)), unk: -1, single: true}
	if id, ok := t.named["unk"]; ok {
		m.unk = id
	}
	lowest := math.Inf(1)
	user := newTrie(0)
	for i, text := range v.texts {
		m.scores[i] = float64(v.scores[i])
		switch {
		case v.user[i]:
			m.scores[i] = 0
			user.insert(text, int32(i))
		case v.kinds[i] == kindNormal:
			lowest = math.Min(lowest, m.scores[i])
		}
		if plain(i) {
			m.pieces.insert(text, int32(i))
		}
	}
	m.unkScore = lowest - unkPenalty
	m.bytes, m.fallback = byteTokens(v.texts, func(i int) bool { return v.kinds[i]&kindByte != 0 })
	t.model = m
	chars, err := r.charsmap()
	if err != nil {
		return err
	}
	norm := &pieceNormalizer{chars: chars, user: user, prefix: r.flag(ggml+"add_space_prefix", false), merge: r.flag(ggml+"remove_extra_whitespaces", false)}
	t.norm = norm
	t.stages = []stageSpec{{kind: stageReplace, from: spaceMark, to: " "}, {kind: stageByteFallback}}
	if norm.prefix || norm.merge {
		t.stages = append(t.stages, stageSpec{kind: stageStripAll, from: " ", start: 1})
	}
	r.around(t, false, true)
	return nil
}

func (r *ggufReader) charsmap() (*charsmap, error) {
	const key = ggml + "precompiled_charsmap"
	if !r.meta.Has(key) {
		return nil, nil
	}
	values, err := r.meta.Ints(key)
	if err != nil {
		r.keep(err)
		return nil, r.err
	}
	blob := make([]byte, len(values))
	for i, x := range values {
		blob[i] = byte(x)
	}
	return parseCharsmap(blob)
}

// wordPiece reads a WordPiece vocabulary. GGUF writes the pieces that begin a word with a space mark, and those that go on without their ##.
func (r *ggufReader) wordPiece(t *Tokenizer, v *vocabulary) error {
	spDefaults(t, map[string]int32{"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103})
	if id, ok := t.named["cls"]; ok {
		t.named["bos"] = id
	}
	plain := func(i int) bool { return v.kinds[i]&kindControl == 0 }
	t.lookup, t.others = v.byText(asWritten, plain)
	m := newWordPiece(len(v.texts), -1, 0)
	if id, ok := t.named["unk"]; ok {
		m.unk = id
	}
	for i, text := range v.texts {
		if !plain(i) {
			continue
		}
		if rest, ok := strings.CutPrefix(text, spaceMark); ok {
			m.starts.insert(rest, int32(i))
		} else {
			m.rest.insert(text, int32(i))
		}
	}
	t.model = m
	lower := r.flag(ggml+"normalizer.lowercase", true)
	t.norm = cleanNormalizer{clean: true, cjk: true, lower: lower, accents: r.flag(ggml+"normalizer.strip_accents", lower)}
	t.pre = cleanWords()
	t.stages = []stageSpec{{kind: stageReplace, from: spaceMark, to: " "}, {kind: stageStripAll, from: " ", start: 1}}
	if id, ok := t.named["bos"]; ok && r.flag(ggml+"add_bos_token", true) {
		t.prefix = []int32{id}
	}
	if id, ok := t.named["sep"]; ok && r.flag(ggml+"add_sep_token", true) {
		t.suffix = []int32{id}
	} else if id, ok := t.named["eos"]; ok && r.flag(ggml+"add_eos_token", false) { // as newer converters say the same
		t.suffix = []int32{id}
	}
	return nil
}

// cleanWords cuts at white space and around punctuation.
func cleanWords() preTokenizer {
	return preTokenizers{
		&splitter{find: runeFinder(pattern.IsSpace), behavior: behaveRemoved},
		&splitter{find: runeFinder(isPunct), behavior: behaveIsolated},
	}
}

// longest reads a vocabulary for longest match: byte strings written with escapes.
func (r *ggufReader) longest(t *Tokenizer, v *vocabulary) error {
	m := &longestMatch{pieces: newTrie(len(v.texts)), unk: -1}
	if id, ok := t.named["unk"]; ok {
		m.unk = id
	}
	t.lookup, t.others = map[string]int32{}, map[string]int32{}
	for i, text := range v.texts {
		if v.kinds[i]&kindControl != 0 {
			t.others[text] = int32(i)
			continue
		}
		raw := unescape(text)
		m.pieces.insert(raw, int32(i))
		t.texts[i] = raw
		t.lookup[raw] = int32(i)
	}
	t.model = m
	r.around(t, false, false)
	return nil
}

// unescape reads \t, \n, \r, \xHH and \c for any other c.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'x':
			if i+2 < len(s) {
				hi, _ := hexDigit(s[i+1])
				lo, _ := hexDigit(s[i+2])
				b.WriteByte(hi<<4 | lo)
				i += 2
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
