package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fromClass builds a tokenizer of the class's steps around a model.
func (f *folder) fromClass(m *modelJSON, find func(string) (int32, bool), next int32) (*Tokenizer, error) {
	parts := map[string]string{}
	for name, raw := range map[string]json.RawMessage{"normalizer": f.class.Normalizer, "pre_tokenizer": f.class.PreTokenizer, "decoder": f.class.Decoder} {
		var err error
		if parts[name], err = f.set.step(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	conf := f.conf
	conf.Added = nil // they are in the list
	t, err := fromParts(parts, m, f.tokens(find, next), &conf)
	if err != nil {
		return nil, err
	}
	f.nameRoles(t)
	f.around(t)
	t.ends = endTokens(t)
	return t, nil
}

// classModel reads the class's model, for a vocabulary that it does not know yet.
func (f *folder) classModel() (*modelJSON, error) {
	raw, err := f.set.step(f.class.Model)
	if err != nil {
		return nil, err
	}
	m := &modelJSON{}
	if raw == "" {
		return nil, fmt.Errorf("%w: the class %.60q does not say how to read this file", ErrUnsupported, f.name)
	}
	return m, json.Unmarshal([]byte(raw), m)
}

// wordList reads vocab.txt: a token a line, its number being its id.
func (f *folder) wordList(data []byte) (*Tokenizer, error) {
	pieces, lookup, err := scanLines(data)
	if err != nil {
		return nil, err
	}
	m, err := f.classModel()
	if err != nil {
		return nil, err
	}
	m.pieces = pieces
	return f.fromClass(m, func(text string) (int32, bool) { id, ok := lookup[text]; return id, ok }, int32(len(pieces)))
}

// scanLines reads a token a line. Of two that are equal the later line counts, as in the reference.
func scanLines(data []byte) ([]pieceJSON, map[string]int32, error) {
	lookup := map[string]int32{}
	var pieces []pieceJSON
	for text := strings.TrimSuffix(string(data), "\n"); ; {
		line, rest, more := strings.Cut(text, "\n")
		line = strings.TrimSuffix(line, "\r")
		n := len(pieces)
		switch {
		case n >= maxVocab:
			return nil, nil, fmt.Errorf("%w: more than %d lines", ErrInvalid, maxVocab)
		case !utf8.ValidString(line) || len(line) > maxPiece:
			return nil, nil, fmt.Errorf("%w: line %d is no UTF-8 or has more than %d bytes", ErrInvalid, n+1, maxPiece)
		}
		pieces = append(pieces, pieceJSON{text: line, id: int32(n)})
		lookup[line] = int32(n)
		if text = rest; !more {
			break
		}
	}
	if len(pieces) == 1 && pieces[0].text == "" {
		return nil, nil, fmt.Errorf("%w: it is empty", ErrInvalid)
	}
	return pieces, lookup, nil
}

// wordsAndMerges reads vocab.json with merges.txt; lines is nil where there are none.
func (f *folder) wordsAndMerges(vocab, lines []byte) (*Tokenizer, error) {
	m, err := f.classModel()
	if err != nil {
		return nil, err
	}
	if m.pieces, err = scanVocab(string(vocab)); err != nil {
		return nil, fmt.Errorf("vocab.json: %w", err)
	}
	m.lines, m.merges = string(lines), "[]"
	lookup, next := map[string]int32{}, int32(0)
	for _, p := range m.pieces {
		lookup[p.text] = p.id
		next = max(next, p.id+1)
	}
	return f.fromClass(m, func(text string) (int32, bool) { id, ok := lookup[text]; return id, ok }, next)
}

// ranks reads a tiktoken file: lines of a token in base64 and its rank.
func (f *folder) ranks(name string, data []byte) (*Tokenizer, error) {
	pieces, top, err := scanRanks(data)
	if err != nil {
		return nil, err
	}
	table, err := classes()
	if err != nil {
		return nil, err
	}
	kind := table.rankFile(name, len(pieces))
	if kind == nil {
		kind = &table.Tiktoken[0]
		f.notes = append(f.notes, fmt.Sprintf("%s: a file of %d ranks is not known; its words are cut by the pattern %s, and it has no special tokens but those of tokenizer_config.json",
			name, len(pieces), kind.Split))
		kind = &rankFile{Split: kind.Split}
	} else if kind.Ranks != len(pieces) { // another vocabulary of the same making
		kind = &rankFile{Split: kind.Split, Normalizer: kind.Normalizer, Set: kind.Set}
	}
	lookup := map[string]int32{}
	for _, p := range pieces {
		lookup[p.text] = p.id
	}
	if err := f.rankTokens(kind, lookup); err != nil {
		return nil, err
	}
	return f.rankClass(kind, pieces, lookup, top+1)
}

// rankClass builds the tokenizer of ranked tokens.
func (f *folder) rankClass(kind *rankFile, pieces []pieceJSON, lookup map[string]int32, next int32) (*Tokenizer, error) {
	all, err := presets()
	if err != nil {
		return nil, err
	}
	var steps []any
	for _, p := range all.Splits[kind.Split] {
		steps = append(steps, map[string]any{"type": "Split", "pattern": map[string]any{"Regex": p}, "behavior": "Isolated"})
	}
	steps = append(steps, map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})
	pre, err := json.Marshal(map[string]any{"type": "Sequence", "pretokenizers": steps})
	if err != nil {
		return nil, err
	}
	f.class = &class{PreTokenizer: pre, Decoder: json.RawMessage(`{"type":"ByteLevel"}`), Normalizer: kind.Normalizer, AddBOS: kind.AddBOS, Prefix: kind.Prefix}
	f.roleTokens()
	m := &modelJSON{Type: "BPE", IgnoreMerges: true, pieces: pieces, ranks: true}
	return f.fromClass(m, func(text string) (int32, bool) { id, ok := lookup[text]; return id, ok }, next)
}

// rankTokens adds the special tokens of a kind where the folder names no tokens itself.
func (f *folder) rankTokens(kind *rankFile, lookup map[string]int32) error {
	f.class = &class{Set: kind.Set}
	for k, v := range kind.Set {
		if _, ok := f.set[k]; !ok {
			f.set[k] = v
		}
	}
	taken := map[int64]bool{}
	for _, a := range f.added {
		taken[a.ID] = true
		lookup[a.Content] = int32(a.ID)
	}
	for _, group := range kind.Tokens {
		id := group.first
		for _, pattern := range group.texts {
			texts, err := f.set.expand(pattern)
			if err != nil {
				return err
			}
			for _, text := range texts {
				if _, have := lookup[text]; !have && !taken[int64(id)] {
					f.added = append(f.added, addedJSON{ID: int64(id), Content: text, Special: true})
					lookup[text] = id
				}
				id++
			}
		}
	}
	return nil
}

// rankFile finds what is known of a file of ranks.
func (t *classTable) rankFile(name string, ranks int) *rankFile {
	for i := range t.Tiktoken {
		for _, n := range t.Tiktoken[i].Names {
			if n == name {
				return &t.Tiktoken[i]
			}
		}
	}
	for i := range t.Tiktoken {
		if t.Tiktoken[i].Ranks == ranks {
			return &t.Tiktoken[i]
		}
	}
	return nil
}

// maxRankedToken bounds the bytes of a token of which all parts are looked up.
const maxRankedToken = 1 << 10

// scanRanks reads the lines of a tiktoken file as tokens in the byte alphabet. No two may have one rank: it is their id.
func scanRanks(data []byte) (pieces []pieceJSON, top int32, err error) {
	n, lines := 0, map[int32]int{} // by rank
	for text := string(data); text != ""; {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		n++
		if line = strings.TrimSuffix(line, "\r"); line == "" {
			continue
		}
		word, rank, ok := strings.Cut(line, " ")
		raw, err := base64.StdEncoding.DecodeString(word)
		if !ok || err != nil || len(raw) == 0 || len(raw) > maxRankedToken {
			return nil, 0, fmt.Errorf("%w: line %d (%.60q) is not a token in base64 of 1 to %d bytes and its rank", ErrInvalid, n, line, maxRankedToken)
		}
		id, err := strconv.ParseUint(rank, 10, 31)
		if err != nil || id >= maxVocab {
			return nil, 0, fmt.Errorf("%w: line %d has the rank %.20q, want 0 to %d", ErrInvalid, n, rank, maxVocab-1)
		}
		if first, ok := lines[int32(id)]; ok {
			return nil, 0, fmt.Errorf("%w: line %d has the rank %d, which line %d has already", ErrInvalid, n, id, first)
		}
		lines[int32(id)] = n
		pieces = append(pieces, pieceJSON{text: string(toByteLevel(nil, string(raw))), id: int32(id)})
		top = max(top, int32(id))
	}
	if len(pieces) == 0 {
		return nil, 0, fmt.Errorf("%w: it is empty", ErrInvalid)
	}
	return pieces, top, nil
}
