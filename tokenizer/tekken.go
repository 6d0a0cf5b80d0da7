package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// rankedJSON is a tekken.json: tokens of bytes by rank, special tokens before them.
type rankedJSON struct {
	Config struct {
		Pattern  string `json:"pattern"`
		Size     int64  `json:"default_vocab_size"`
		Specials int64  `json:"default_num_special_tokens"`
	} `json:"config"`
	Vocab []struct {
		Rank  int64  `json:"rank"`
		Bytes string `json:"token_bytes"`
	} `json:"vocab"`
	Special []struct {
		Rank int64  `json:"rank"`
		Text string `json:"token_str"`
	} `json:"special_tokens"`
}

// oldSpecials are the special tokens of files that list none.
var oldSpecials = []string{"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
	"[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"}

// tekken reads a tekken.json. Ids are ranks behind the special tokens.
func (f *folder) tekken(data []byte) (*Tokenizer, error) {
	var j rankedJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	specials := j.Config.Specials
	size := j.Config.Size - specials
	if specials < 0 || specials > maxVocab || size <= 0 || j.Config.Size > maxVocab {
		return nil, fmt.Errorf("%w: config.default_vocab_size is %d, default_num_special_tokens %d", ErrInvalid, j.Config.Size, specials)
	}
	lookup := map[string]int32{}
	var pieces []pieceJSON
	taken := map[int64]bool{}
	for i, e := range j.Vocab {
		if e.Rank >= size || int64(len(pieces)) >= size { // files list more than the model has
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(e.Bytes)
		if err != nil || e.Rank < 0 || len(raw) == 0 || len(raw) > maxRankedToken {
			return nil, fmt.Errorf("%w: vocab[%d] is not a rank with 1 to %d bytes", ErrInvalid, i, maxRankedToken)
		}
		if taken[e.Rank] {
			return nil, fmt.Errorf("%w: vocab[%d] has the rank %d, which an entry before it has already", ErrInvalid, i, e.Rank)
		}
		taken[e.Rank] = true
		p := pieceJSON{text: string(toByteLevel(nil, string(raw))), id: int32(e.Rank + specials)}
		pieces = append(pieces, p)
		lookup[p.text] = p.id
	}
	if len(pieces) == 0 {
		return nil, fmt.Errorf("%w: vocab is empty", ErrInvalid)
	}
	if err := f.tekkenSpecials(&j, specials); err != nil {
		return nil, err
	}
	kind := &rankFile{Split: "tekken", Set: map[string]json.RawMessage{"bos_token": json.RawMessage(`"<s>"`), "eos_token": json.RawMessage(`"</s>"`),
		"unk_token": json.RawMessage(`"<unk>"`), "pad_token": json.RawMessage(`"<pad>"`)}, AddBOS: ptr(true)}
	if err := f.rankTokens(kind, lookup); err != nil {
		return nil, err
	}
	return f.rankClass(kind, pieces, lookup, int32(j.Config.Size))
}

func (f *folder) tekkenSpecials(j *rankedJSON, n int64) error {
	f.added = nil // the file has them all
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("<SPECIAL_%d>", i)
	}
	if j.Special == nil {
		copy(texts, oldSpecials)
	}
	for i, s := range j.Special {
		if s.Rank < 0 || s.Rank >= n {
			return fmt.Errorf("%w: special_tokens[%d] has rank %d of %d", ErrInvalid, i, s.Rank, n)
		}
		texts[s.Rank] = s.Text
	}
	for i, text := range texts {
		f.added = append(f.added, addedJSON{ID: int64(i), Content: text, Special: true})
	}
	return nil
}

func ptr[T any](v T) *T { return &v }
