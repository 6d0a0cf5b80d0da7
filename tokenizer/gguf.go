package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Meta is the metadata of a GGUF file, as far as a tokenizer needs it. Accessors return an error for a key that is missing or has another type.
type Meta interface {
	Has(key string) bool
	String(key string) (string, error)
	Strings(key string) ([]string, error)
	Ints(key string) ([]int64, error)
	Floats(key string) ([]float64, error)
	Bool(key string) (bool, error)
	Uint(key string) (uint64, error)
}

// Errors that callers branch on.
var (
	ErrNoTokenizer = errors.New("there is no tokenizer")
	ErrUnsupported = errors.New("a kind of tokenizer that is not read")
	ErrInvalid     = errors.New("the tokenizer is not valid")
)

// maxVocab bounds the ids of a vocabulary; the largest in use have some 300,000.
const maxVocab = 1 << 22

// maxPiece bounds the bytes of a piece: looking for pieces takes as long as they are, at every place of a text. The longest in use have some 500.
const maxPiece = 1 << 12

// Token types of tokenizer.ggml.token_type.
const (
	ggufNormal      = 1
	ggufUnknown     = 2
	ggufControl     = 3
	ggufUserDefined = 4
	ggufUnused      = 5
	ggufByte        = 6
)

// ggufReader reads optional keys and keeps the first error.
type ggufReader struct {
	meta Meta
	err  error
}

const ggml = "tokenizer.ggml."

func (r *ggufReader) keep(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("tokenizer: %w: %w", ErrInvalid, err)
	}
}

func (r *ggufReader) str(key string) string {
	if !r.meta.Has(key) {
		return ""
	}
	v, err := r.meta.String(key)
	r.keep(err)
	return v
}

func (r *ggufReader) flag(key string, or bool) bool {
	if !r.meta.Has(key) {
		return or
	}
	v, err := r.meta.Bool(key)
	r.keep(err)
	return v
}

// FromGGUF builds the tokenizer that the metadata of a GGUF file describes: tokenizer.ggml.model, .pre, .tokens, .merges, .scores, .token_type and the
// ids and flags beside them. Errors wrap ErrNoTokenizer, ErrUnsupported or ErrInvalid and name the key. Weights are never looked at, so a vocabulary
// shorter than the embedding is the caller's to judge.
func FromGGUF(meta Meta) (_ *Tokenizer, err error) {
	defer func() { err = brief(err) }()
	r := &ggufReader{meta: meta}
	name := r.str(ggml + "model")
	if name == "" && r.err == nil {
		return nil, fmt.Errorf("tokenizer: %w: key %smodel is missing or empty", ErrNoTokenizer, ggml)
	}
	v := r.vocabulary()
	if r.err != nil {
		return nil, r.err
	}
	t := &Tokenizer{texts: v.texts, kinds: v.kinds, named: r.named(len(v.texts))}
	if r.err != nil {
		return nil, r.err
	}
	all, err := presets()
	if err != nil {
		return nil, err
	}
	m, ok := all.Models[name]
	if !ok {
		return nil, fmt.Errorf("tokenizer: %w: %smodel is %.40q (known: %s)", ErrUnsupported, ggml, name, sortedNames(all.Models))
	}
	readers := map[string]func() error{
		"merges":  func() error { return r.bpe(t, v, m.Pre) },
		"scores":  func() error { return r.scored(t, v) },
		"unigram": func() error { return r.unigram(t, v) },
		"pieces":  func() error { return r.wordPiece(t, v) },
		"longest": func() error { return r.longest(t, v) },
	}
	if err := readers[m.Kind](); err != nil {
		return nil, err
	}
	r.finish(t, v)
	if r.err != nil {
		return nil, r.err
	}
	return t, nil
}

// vocabulary is what a file lists, by id.
type vocabulary struct {
	texts  []string
	kinds  []kind
	scores []float32 // nil: none
	user   []bool    // user-defined tokens
}

func (r *ggufReader) vocabulary() *vocabulary {
	v := &vocabulary{}
	var err error
	if !r.meta.Has(ggml + "tokens") {
		r.err = fmt.Errorf("tokenizer: %w: key %stokens is missing", ErrNoTokenizer, ggml)
		return v
	}
	if v.texts, err = r.meta.Strings(ggml + "tokens"); err != nil {
		r.keep(err)
		return v
	}
	n := len(v.texts)
	if i := slices.IndexFunc(v.texts, func(text string) bool { return len(text) > maxPiece }); i >= 0 {
		r.keep(fmt.Errorf("%stokens[%d] (%.40q) has %d bytes, want at most %d", ggml, i, v.texts[i], len(v.texts[i]), maxPiece))
		return v
	}
	if n == 0 || n > maxVocab {
		r.keep(fmt.Errorf("%stokens has %d entries, want 1 to %d", ggml, n, maxVocab))
		return v
	}
	v.kinds, v.user = make([]kind, n), make([]bool, n)
	if r.meta.Has(ggml + "scores") {
		scores, err := r.meta.Floats(ggml + "scores")
		r.keep(err)
		if err == nil && len(scores) < n {
			r.keep(fmt.Errorf("%sscores has %d entries for %d tokens", ggml, len(scores), n))
			return v
		}
		v.scores = make([]float32, n)
		for i := range min(n, len(scores)) {
			v.scores[i] = float32(scores[i])
		}
	}
	r.tokenTypes(v)
	return v
}

func (r *ggufReader) tokenTypes(v *vocabulary) {
	if !r.meta.Has(ggml + "token_type") {
		return
	}
	types, err := r.meta.Ints(ggml + "token_type")
	r.keep(err)
	if err == nil && len(types) < len(v.texts) {
		r.keep(fmt.Errorf("%stoken_type has %d entries for %d tokens", ggml, len(types), len(v.texts)))
	}
	if r.err != nil {
		return
	}
	for i := range v.kinds {
		switch types[i] {
		case ggufUnknown:
			v.kinds[i] = kindControl | kindAdded | kindUnknown
		case ggufControl:
			v.kinds[i] = kindControl | kindAdded
		case ggufUserDefined:
			v.kinds[i] = kindAdded
			v.user[i] = true
		case ggufUnused:
			v.kinds[i] = kindUnused
		case ggufByte:
			v.kinds[i] = kindByte
		}
	}
}

// badID says what is wrong with an id that a key gives.
func badID(key string, id uint64, size int, err error) error {
	if err != nil {
		return fmt.Errorf("key %s is no id, want 0 to %d: %w", key, size-1, err)
	}
	return fmt.Errorf("key %s is %d, want 0 to %d", key, id, size-1)
}

// named reads the ids with a role.
func (r *ggufReader) named(size int) map[string]int32 {
	keys := map[string][]string{
		"bos": {"bos_token_id"}, "eos": {"eos_token_id"}, "eot": {"eot_token_id"}, "eom": {"eom_token_id"}, "unk": {"unknown_token_id"},
		"sep": {"seperator_token_id", "separator_token_id"}, "pad": {"padding_token_id"}, "cls": {"cls_token_id"}, "mask": {"mask_token_id"},
		"fim_pre": {"prefix_token_id", "fim_pre_token_id"}, "fim_suf": {"suffix_token_id", "fim_suf_token_id"},
		"fim_mid": {"middle_token_id", "fim_mid_token_id"}, "fim_pad": {"fim_pad_token_id"}, "fim_rep": {"fim_rep_token_id"}, "fim_sep": {"fim_sep_token_id"},
	}
	named := map[string]int32{}
	for role, names := range keys {
		for _, key := range names {
			if !r.meta.Has(ggml + key) {
				continue
			}
			id, err := r.meta.Uint(ggml + key)
			if err != nil || id >= uint64(size) {
				r.keep(badID(ggml+key, id, size, err))
				continue
			}
			named[role] = int32(id)
		}
	}
	return named
}

// spoken reports whether the model itself may produce token i, where it does so by the token's text: neither control tokens nor user-defined ones, which
// are cut out before where the text is parsed; but of the latter those of white space, which never match there, for text has spaces and no marks.
func (v *vocabulary) spoken(i int) bool {
	return v.kinds[i]&(kindControl|kindByte|kindUnknown) == 0 && (!v.user[i] || isWhite(v.texts[i]))
}

// byText lists the tokens that the model itself may produce, and the others. Of two with the same text the lower id stays.
func (v *vocabulary) byText(decode func(string) (string, bool), keep func(i int) bool) (lookup, others map[string]int32) {
	lookup, others = make(map[string]int32, len(v.texts)), map[string]int32{}
	for i, text := range v.texts {
		to, key := others, text
		if keep(i) {
			if d, ok := decode(text); ok {
				to, key = lookup, d
			}
		}
		if _, ok := to[key]; !ok && key != "" {
			to[key] = int32(i)
		}
	}
	return lookup, others
}

func asWritten(s string) (string, bool) { return s, true }

// finish sets what all kinds share: added tokens, the ids around a text, the end tokens.
func (r *ggufReader) finish(t *Tokenizer, v *vocabulary) {
	var list []addedToken
	for i, text := range v.texts {
		if v.kinds[i]&kindAdded != 0 && text != "" {
			list = append(list, addedToken{id: int32(i), text: text, special: v.kinds[i]&kindControl != 0})
		}
	}
	pre, _ := presets()
	pre.attributes(list, r.str(ggml+"pre"), strings.ToLower(r.str("general.name")), r.str("general.architecture"))
	if err := checkNormalizer(t.norm); err != nil {
		r.err = fmt.Errorf("tokenizer: %sprecompiled_charsmap: %w", ggml, err)
		return
	}
	var err error
	if t.added, err = newAddedTokens(list, t.norm); err != nil && r.err == nil {
		r.err = fmt.Errorf("tokenizer: %w", err)
	}
	t.ends = endTokens(t)
}

// around sets prefix and suffix from the add_… keys. Roles are tried in order.
func (r *ggufReader) around(t *Tokenizer, bos, eos bool) {
	if id, ok := t.named["bos"]; ok && r.flag(ggml+"add_bos_token", bos) {
		t.prefix = []int32{id}
	}
	if id, ok := t.named["eos"]; ok && r.flag(ggml+"add_eos_token", eos) {
		t.suffix = []int32{id}
	}
}

// byteTokens finds the tokens <0xHH>.
func byteTokens(texts []string, is func(i int) bool) (ids [256]int32, any bool) {
	for i := range ids {
		ids[i] = -1
	}
	for i, text := range texts {
		if b, ok := byteToken(text); ok && is(i) && ids[b] < 0 {
			ids[b] = int32(i)
			any = true
		}
	}
	return ids, any
}

// scoreRanks orders tokens by falling score: equal scores share a rank, and tokens that keep refuses have none.
func scoreRanks(scores []float32, keep func(i int) bool) []int32 {
	order := make([]int32, 0, len(scores))
	ranks := make([]int32, len(scores))
	for i := range scores {
		ranks[i] = noPair
		if keep(i) {
			order = append(order, int32(i))
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return scores[order[a]] > scores[order[b]] })
	rank := int32(0)
	for n, id := range order {
		if n > 0 && scores[id] != scores[order[n-1]] {
			rank++
		}
		ranks[id] = rank
	}
	return ranks
}
