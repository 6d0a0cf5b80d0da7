package tokenizer

import (
	"fmt"
	"path"
	"strings"
)

// MatchOptions say how a vocabulary is read that texts are matched against longest first.
type MatchOptions struct {
	ByteAlphabet bool  // the tokens are written in the byte alphabet of byte-level vocabularies
	BOS, EOS     int32 // ids, -1: none
	Unknown      int32 // what a character that begins no token becomes, -1: nothing

	// Roles are the texts of further tokens with a role (bos, eos, unk, pad, cls, sep, mask); they go before the ids. Those that the vocabulary
	// lacks are passed over.
	Roles map[string]string
}

// OpenLongestMatch reads a vocabulary for forward maximum matching (fmm): at each place of a text the longest token that stands there is taken, with no
// pre-tokenizer and no merges. The file is a tokenizer.json or a flat {"token": id} (.json), a token a line (.txt), or a SentencePiece model (any other
// name). Tokens of a vocabulary that writes spaces as U+2581 match spaces. Tokens with a role are found only where special tokens are parsed, and no tokens
// stand around a text. Errors wrap ErrInvalid or ErrNoTokenizer.
func OpenLongestMatch(files Files, name string, o MatchOptions) (*Tokenizer, error) {
	data, err := read(files, name)
	if err == nil && data == nil {
		err = fmt.Errorf("%w: no %s", ErrNoTokenizer, name)
	}
	var list []pieceJSON
	if err == nil {
		list, err = matchList(name, data)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", name, err)
	}
	t, err := newLongestMatch(list, o)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", name, err)
	}
	return t, nil
}

// matchList lists the tokens of a file.
func matchList(name string, data []byte) ([]pieceJSON, error) {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt":
		list, _, err := scanLines(data)
		return list, err
	case ".json":
		return matchJSON(string(data))
	}
	p, err := parsePieces(data)
	if err != nil {
		return nil, err
	}
	list := make([]pieceJSON, len(p.texts))
	for i, text := range p.texts {
		list[i] = pieceJSON{text: text, id: int32(i)}
	}
	return list, nil
}

// matchJSON reads the vocabulary of a tokenizer.json, or a file that is one.
func matchJSON(data string) ([]pieceJSON, error) {
	raw := data
	if err := members(data, func(name, value string) {
		if name == "model" && strings.HasPrefix(value, "{") {
			raw = value
		}
	}); err != nil {
		return nil, err
	}
	if raw == data {
		return scanVocab(data)
	}
	m, err := parseModel(raw)
	if err != nil {
		return nil, err
	}
	return scanVocab(m.vocab)
}

func newLongestMatch(list []pieceJSON, o MatchOptions) (*Tokenizer, error) {
	top := int32(0)
	for _, p := range list {
		switch {
		case int(p.id) >= 2*len(list)+1<<16:
			return nil, fmt.Errorf("%w: %d tokens with ids up to %d", ErrInvalid, len(list), p.id)
		case len(p.text) > maxPiece:
			return nil, fmt.Errorf("%w: token %d has %d bytes, want at most %d", ErrInvalid, p.id, len(p.text), maxPiece)
		}
		top = max(top, p.id)
	}
	m := &longestMatch{pieces: newTrie(len(list)), runes: true}
	t := &Tokenizer{texts: make([]string, top+1), kinds: make([]kind, top+1), lookup: map[string]int32{}, others: map[string]int32{}, named: map[string]int32{}, model: m}
	marks := false
	for _, p := range list {
		text := p.text
		if o.ByteAlphabet {
			if raw, ok := fromByteLevel(nil, text); ok {
				text = string(raw)
			}
		}
		marks = marks || strings.HasPrefix(text, spaceMark)
		t.texts[p.id] = text
		if _, ok := t.lookup[text]; !ok {
			t.lookup[text] = p.id
		}
		if _, ok := byteToken(text); ok {
			t.kinds[p.id] = kindByte
		}
	}
	if marks {
		t.norm = replaceNormalizer{from: " ", to: spaceMark}
		t.stages = []stageSpec{{kind: stageReplace, from: spaceMark, to: " "}, {kind: stageByteFallback}}
	}
	if err := t.matchRoles(o); err != nil {
		return nil, err
	}
	m.unk = -1
	if id, ok := t.named["unk"]; ok {
		m.unk = id
	}
	for text, id := range t.lookup {
		if t.kinds[id]&kindControl == 0 {
			m.pieces.insert(text, id)
		}
	}
	t.ends = endTokens(t)
	return t, nil
}

// matchRoles names the tokens with a role and makes them added tokens.
func (t *Tokenizer) matchRoles(o MatchOptions) error {
	for role, id := range map[string]int32{"bos": o.BOS, "eos": o.EOS, "unk": o.Unknown} {
		if int(id) >= len(t.texts) {
			return fmt.Errorf("%w: the id of %s is %d of %d", ErrInvalid, role, id, len(t.texts))
		}
		if id >= 0 {
			t.named[role] = id
		}
	}
	for role, text := range o.Roles {
		if id, ok := t.lookup[text]; ok {
			t.named[role] = id
		}
	}
	var list []addedToken
	for _, id := range t.named {
		if t.kinds[id]&kindControl != 0 {
			continue
		}
		t.kinds[id] |= kindControl | kindAdded
		t.others[t.texts[id]] = id
		list = append(list, addedToken{id: id, text: t.texts[id], special: true})
	}
	var err error
	t.added, err = newAddedTokens(list, t.norm)
	return err
}
