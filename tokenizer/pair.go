package tokenizer

import (
	"errors"
	"fmt"
)

// ErrNoPair says that the files do not tell how two texts stand together.
var ErrNoPair = errors.New("the tokenizer has no form for two texts")

// pairPart is a part of the form of two texts: special tokens, or text 1 or 2.
type pairPart struct {
	ids  []int32
	text int   // 1 or 2; 0: ids
	kind int32 // token type of all its ids
}

// pairOf is the form of the two older post-processors: CLS A SEP B SEP with
// types 0 and 1, or CLS A SEP SEP B SEP with type 0 throughout.
func pairOf(cls, sep int32, doubled bool) []pairPart {
	if doubled {
		return []pairPart{{ids: []int32{cls}}, {text: 1}, {ids: []int32{sep, sep}}, {text: 2}, {ids: []int32{sep}}}
	}
	return []pairPart{{ids: []int32{cls}}, {text: 1}, {ids: []int32{sep}}, {text: 2, kind: 1}, {ids: []int32{sep}, kind: 1}}
}

// pairTemplate reads "pair" of a TemplateProcessing. A form that does not hold
// each text once is passed over: only pairs need it.
func (r *jsonReader) pairTemplate(p *processorJSON) error {
	var out []pairPart
	var seen [3]int
	made := 0 // parts and their ids
	for i, part := range p.Pair {
		if made++; len(out) == maxAround { // such pairs are not read
			return nil
		}
		switch {
		case part.Sequence != nil:
			n := map[string]int{"A": 1, "B": 2}[part.Sequence.ID]
			seen[n]++
			out = append(out, pairPart{text: n, kind: part.Sequence.Type})
		case part.Special != nil:
			token, ok := p.SpecialTokens[part.Special.ID]
			if !ok {
				return fmt.Errorf("%w: the template of pairs names %.40q, which special_tokens lacks", ErrInvalid, part.Special.ID)
			}
			if made += len(token.IDs); made > 4*maxAround { // around two texts, and between them
				return nil
			}
			ids := make([]int32, 0, len(token.IDs))
			for _, id := range token.IDs {
				if id < 0 || id >= int64(len(r.t.texts)) {
					return fmt.Errorf("%w: special_tokens.%.40s has id %d, want 0 to %d", ErrInvalid, part.Special.ID, id, len(r.t.texts)-1)
				}
				ids = append(ids, int32(id))
			}
			out = append(out, pairPart{ids: ids, kind: part.Special.Type})
		default:
			return fmt.Errorf("%w: part %d of the template of pairs is neither a token nor a text", ErrInvalid, i)
		}
	}
	if seen == [3]int{0, 1, 1} {
		r.t.pair = out
	}
	return nil
}

// EncodePair returns the ids of two texts as the post-processor joins them, and
// the token type of each. most > 0 bounds the ids: the longer text loses its
// last tokens first, and cut says how many went. ErrNoPair where the files do
// not say how pairs look, else the errors of TryEncode.
func (t *Tokenizer) EncodePair(a, b string, most int) (ids, types []int32, cut int, err error) {
	if t.pair == nil {
		return nil, nil, 0, fmt.Errorf("tokenizer: %w", ErrNoPair)
	}
	o := Options{ParseSpecial: true} // as the reference does
	var texts [3][]int32
	for i, text := range []string{a, b} {
		if texts[i+1], err = t.TryEncode(text, o); err != nil {
			return nil, nil, 0, err
		}
	}
	n := len(texts[1]) + len(texts[2])
	for _, p := range t.pair {
		n += len(p.ids)
	}
	if most > 0 && n > most {
		cut = min(n-most, len(texts[1])+len(texts[2]))
		for range cut {
			longer := 2
			if len(texts[1]) > len(texts[2]) {
				longer = 1
			}
			texts[longer] = texts[longer][:len(texts[longer])-1]
		}
	}
	for _, p := range t.pair {
		part := p.ids
		if p.text > 0 {
			part = texts[p.text]
		}
		ids = append(ids, part...)
		for range part {
			types = append(types, p.kind)
		}
	}
	return ids, types, cut, nil
}
