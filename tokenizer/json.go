package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

type addedJSON struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// configJSON is the part of tokenizer_config.json that concerns ids.
type configJSON struct {
	AddBOS *bool                `json:"add_bos_token"`
	AddEOS *bool                `json:"add_eos_token"`
	BOS    tokenJSON            `json:"bos_token"`
	EOS    tokenJSON            `json:"eos_token"`
	UNK    tokenJSON            `json:"unk_token"`
	SEP    tokenJSON            `json:"sep_token"`
	PAD    tokenJSON            `json:"pad_token"`
	CLS    tokenJSON            `json:"cls_token"`
	Mask   tokenJSON            `json:"mask_token"`
	Added  map[string]addedJSON `json:"added_tokens_decoder"`
}

// tokenJSON is a token named as a string or as an object with content.
type tokenJSON string

// UnmarshalJSON reads either form; null and false are no token.
func (t *tokenJSON) UnmarshalJSON(data []byte) error {
	if s := string(data); s == "null" || s == "false" {
		return nil
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = tokenJSON(s)
		return nil
	}
	var object struct {
		Content *string `json:"content"`
	}
	if json.Unmarshal(data, &object) != nil || object.Content == nil {
		return fmt.Errorf("%.40s is no token: want its text, or an object with content", data)
	}
	*t = tokenJSON(*object.Content)
	return nil
}

// unmarshalConfig reads tokenizer_config.json; an error of a token names its key.
func unmarshalConfig(config []byte, conf *configJSON) error {
	err := json.Unmarshal(config, conf)
	var parts map[string]json.RawMessage
	if err == nil || json.Unmarshal(config, &parts) != nil {
		return err
	}
	for _, role := range []string{"bos", "eos", "unk", "sep", "pad", "cls", "mask"} {
		var t tokenJSON
		if raw, ok := parts[role+"_token"]; ok && t.UnmarshalJSON(raw) != nil {
			return fmt.Errorf("%s_token: %w", role, err)
		}
	}
	return err
}

// jsonReader builds a tokenizer from tokenizer.json.
type jsonReader struct {
	t       *Tokenizer
	added   []addedJSON
	byID    map[int32]string // ids that are taken
	special map[string]bool  // texts of special tokens
	alpha   bool             // words reach the model in the byte alphabet or as the bytes it stands for
}

// FromJSON builds the tokenizer that tokenizer.json describes. config is tokenizer_config.json or nil: it names the ids with a role, may add tokens, and
// its add_bos_token and add_eos_token, where they are written out, say whether the post-processor's BOS and EOS are added. Truncation and padding are
// not read. Errors wrap ErrInvalid or ErrUnsupported and name the part.
func FromJSON(tokenizerJSON, config []byte) (_ *Tokenizer, err error) {
	defer func() { err = brief(err) }()
	parts := map[string]string{}
	if err := members(string(tokenizerJSON), func(name, raw string) { parts[name] = raw }); err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	if isNull(parts["model"]) {
		return nil, fmt.Errorf("tokenizer: %w: tokenizer.json has no model", ErrNoTokenizer)
	}
	var conf configJSON
	if len(config) > 0 {
		if err := unmarshalConfig(config, &conf); err != nil {
			return nil, fmt.Errorf("tokenizer: %w: tokenizer_config.json: %w", ErrInvalid, err)
		}
	}
	var added []addedJSON
	if raw := parts["added_tokens"]; !isNull(raw) {
		if err := json.Unmarshal([]byte(raw), &added); err != nil {
			return nil, fmt.Errorf("tokenizer: %w: tokenizer.json: added_tokens: %w", ErrInvalid, err)
		}
	}
	t, err := fromParts(parts, nil, added, &conf)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	return t, nil
}

// fromParts builds a tokenizer from the parts of a tokenizer.json; m is its model where that was read already.
func fromParts(parts map[string]string, m *modelJSON, added []addedJSON, conf *configJSON) (*Tokenizer, error) {
	r := &jsonReader{t: &Tokenizer{named: map[string]int32{}}, special: map[string]bool{}}
	if err := r.addedTokens(added, conf.Added); err != nil {
		return nil, err
	}
	steps := []struct {
		name string
		read func(string) error
	}{
		{"normalizer", r.normalizer},
		{"pre_tokenizer", r.preTokenizer},
		{"model", func(raw string) (err error) {
			if m == nil {
				if m, err = parseModel(raw); err != nil {
					return err
				}
			}
			return r.model(m)
		}},
		{"decoder", r.decoder},
		{"post_processor", r.postProcessor},
	}
	for _, s := range steps {
		if err := s.read(parts[s.name]); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := r.finish(conf); err != nil {
		return nil, err
	}
	return r.t, nil
}

// isNull reports whether a part is missing.
func isNull(raw string) bool { return raw == "" || raw == "null" }

// addedTokens collects the added tokens of both files; tokenizer.json has precedence.
func (r *jsonReader) addedTokens(list []addedJSON, more map[string]addedJSON) error {
	seen := map[string]bool{}
	r.byID = map[int32]string{}
	add := func(tok addedJSON) error {
		if tok.ID < 0 || tok.ID >= maxVocab {
			return fmt.Errorf("%w: added token %.40q has id %d, want 0 to %d", ErrInvalid, tok.Content, tok.ID, maxVocab-1)
		}
		if tok.Content == "" || seen[tok.Content] {
			return nil
		}
		seen[tok.Content] = true
		r.added = append(r.added, tok)
		r.special[tok.Content] = r.special[tok.Content] || tok.Special
		if _, ok := r.byID[int32(tok.ID)]; !ok {
			r.byID[int32(tok.ID)] = tok.Content
		}
		return nil
	}
	for _, tok := range list {
		if err := add(tok); err != nil {
			return err
		}
	}
	ids := make([]string, 0, len(more))
	for id := range more {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		tok := more[id]
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 || n >= maxVocab {
			return fmt.Errorf("%w: tokenizer_config.json: added_tokens_decoder has the id %.40q, want 0 to %d", ErrInvalid, id, maxVocab-1)
		}
		tok.ID = n
		if _, taken := r.byID[int32(tok.ID)]; taken {
			continue
		}
		if err := add(tok); err != nil {
			return err
		}
	}
	return nil
}

// vocabulary takes the pieces of the model, in any order, and lays out the ids. It returns the lookup for building the model, control tokens included;
// sealLookup takes those out.
func (r *jsonReader) vocabulary(pieces []pieceJSON) error {
	top := int32(-1)
	for _, p := range pieces {
		if len(p.text) > maxPiece {
			return fmt.Errorf("%w: token %d (%.40q) has %d bytes, want at most %d", ErrInvalid, p.id, p.text, len(p.text), maxPiece)
		}
		top = max(top, p.id)
	}
	for _, a := range r.added {
		top = max(top, int32(a.ID))
	}
	if limit := 2*(len(pieces)+len(r.added)) + 1<<16; int(top) >= limit {
		return fmt.Errorf("%w: %d tokens with ids up to %d", ErrInvalid, len(pieces)+len(r.added), top)
	}
	t := r.t
	t.texts, t.kinds = make([]string, top+1), make([]kind, top+1)
	t.lookup, t.others = make(map[string]int32, len(pieces)), map[string]int32{}
	var buf []byte
	for _, p := range pieces {
		t.texts[p.id] = p.text
		if _, ok := byteToken(p.text); ok {
			t.kinds[p.id] |= kindByte
		}
		if !t.byteLevel {
			t.lookup[p.text] = p.id
			continue
		}
		var ok bool
		if buf, ok = fromByteLevel(buf[:0], p.text); ok {
			t.lookup[string(buf)] = p.id
		} else {
			t.others[p.text] = p.id
		}
	}
	return nil
}

// control reports whether id is the id of a special token of the model's vocabulary.
func (r *jsonReader) control(id int32) bool { return r.special[r.t.texts[id]] }

// finish adds what the parts share.
func (r *jsonReader) finish(conf *configJSON) error {
	t := r.t
	var list []addedToken
	for _, a := range r.added {
		id := int32(a.ID)
		if have, ok := t.ID(a.Content); ok { // the vocabulary's id counts, as in the reference
			id = have
		}
		if old := t.texts[id]; old != a.Content { // the id changed hands: text must not reach it by its old name
			r.forget(old, id)
			delete(t.others, old)
		}
		t.texts[id] = a.Content
		t.kinds[id] |= kindAdded
		if a.Special {
			t.kinds[id] |= kindControl
			r.forget(a.Content, id)
		}
		t.others[a.Content] = id
		list = append(list, addedToken{id: id, text: a.Content, special: a.Special, singleWord: a.SingleWord,
			lstrip: a.Lstrip, rstrip: a.Rstrip, normalized: a.Normalized})
	}
	var err error
	if t.added, err = newAddedTokens(list, t.norm); err != nil {
		return err
	}
	roles := map[string]tokenJSON{"bos": conf.BOS, "eos": conf.EOS, "unk": conf.UNK, "sep": conf.SEP, "pad": conf.PAD, "cls": conf.CLS, "mask": conf.Mask}
	for role, text := range roles {
		if id, ok := t.ID(string(text)); ok && text != "" {
			t.named[role] = id
		}
	}
	if _, ok := t.named["bos"]; !ok && len(t.prefix) == 1 {
		t.named["bos"] = t.prefix[0]
	}
	t.prefix = around(t.prefix, conf.AddBOS, t.named, "bos")
	t.suffix = around(t.suffix, conf.AddEOS, t.named, "eos")
	t.ends = endTokens(t)
	return nil
}

// forget takes a special token out of the model's reach: text that merely spells it must not become it.
func (r *jsonReader) forget(text string, id int32) {
	if r.t.byteLevel {
		if raw, ok := fromByteLevel(nil, text); ok {
			text = string(raw)
		}
	}
	if have, ok := r.t.lookup[text]; ok && have == id {
		delete(r.t.lookup, text)
	}
	if m, ok := r.t.model.(*bpe); ok {
		for b, have := range m.bytes {
			if have == id {
				m.bytes[b] = -1
			}
		}
	}
}

// around applies an explicit add_bos_token or add_eos_token to what the post-processor adds.
func around(ids []int32, explicit *bool, named map[string]int32, role string) []int32 {
	id, ok := named[role]
	switch {
	case explicit == nil || !ok:
	case *explicit && len(ids) == 0:
		return []int32{id}
	case !*explicit && len(ids) == 1 && ids[0] == id:
		return nil
	}
	return ids
}
