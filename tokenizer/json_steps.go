package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"golang.org/x/text/unicode/norm"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

// stepJSON is a normalizer, pre-tokenizer or decoder: the union of their fields.
type stepJSON struct {
	Type          string            `json:"type"`
	Normalizers   []json.RawMessage `json:"normalizers"`
	Pretokenizers []json.RawMessage `json:"pretokenizers"`
	Decoders      []json.RawMessage `json:"decoders"`
	Pattern       *patternJSON      `json:"pattern"`
	Content       string            `json:"content"`
	Prepend       string            `json:"prepend"`
	StripLeft     bool              `json:"strip_left"`
	StripRight    bool              `json:"strip_right"`
	CleanText     *bool             `json:"clean_text"`
	ChineseChars  *bool             `json:"handle_chinese_chars"`
	StripAccents  *bool             `json:"strip_accents"`
	Lowercase     *bool             `json:"lowercase"`
	Charsmap      string            `json:"precompiled_charsmap"`
	Behavior      string            `json:"behavior"`
	Invert        bool              `json:"invert"`
	Individual    bool              `json:"individual_digits"`
	PrefixSpace   *bool             `json:"add_prefix_space"`
	UseRegex      *bool             `json:"use_regex"`
	Replacement   string            `json:"replacement"`
	PrependScheme string            `json:"prepend_scheme"`
	Split         *bool             `json:"split"`
	Delimiter     string            `json:"delimiter"`
	Length        int               `json:"length"`
	Prefix        *string           `json:"prefix"`
	Suffix        *string           `json:"suffix"`
	Cleanup       *bool             `json:"cleanup"`
	PadToken      *string           `json:"pad_token"`
	WordDelimiter *string           `json:"word_delimiter_token"`
	Start         int               `json:"start"`
	Stop          int               `json:"stop"`
}

type patternJSON struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// maxSteps bounds how deep sequences nest.
const maxSteps = 16

func parseStep(raw string, depth int) (*stepJSON, error) {
	if depth > maxSteps {
		return nil, fmt.Errorf("%w: sequences nest deeper than %d", ErrInvalid, maxSteps)
	}
	s := &stepJSON{}
	if err := json.Unmarshal([]byte(raw), s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s.Type = stepType(s.Type)
	return s, nil
}

// stepType gives the types that are named after a model a name that says what they do.
func stepType(name string) string {
	if all, err := presets(); err == nil && all.Steps[name] != "" {
		return all.Steps[name]
	}
	return name
}

func or(p *bool, otherwise bool) bool {
	if p == nil {
		return otherwise
	}
	return *p
}

// compile returns the pattern of a step, or its literal.
func (p *patternJSON) compile() (*pattern.Pattern, string, error) {
	switch {
	case p != nil && p.Regex != nil:
		re, err := pattern.Compile(*p.Regex)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		return re, "", err
	case p != nil && p.String != nil:
		return nil, *p.String, nil
	}
	return nil, "", fmt.Errorf("%w: a pattern is neither String nor Regex", ErrInvalid)
}

func (r *jsonReader) normalizer(raw string) error {
	if isNull(raw) {
		return nil
	}
	list, err := r.normalizers(nil, raw, 0)
	if err == nil && len(list) > 0 {
		r.t.norm = list
		err = checkNormalizer(list)
	}
	return err
}

func (r *jsonReader) normalizers(list normalizers, raw string, depth int) (normalizers, error) {
	s, err := parseStep(raw, depth)
	if err != nil {
		return nil, err
	}
	if s.Type == "Sequence" {
		for _, sub := range s.Normalizers {
			if list, err = r.normalizers(list, string(sub), depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	n, err := r.oneNormalizer(s)
	if err != nil || n == nil {
		return list, err
	}
	return append(list, n), nil
}

func (r *jsonReader) oneNormalizer(s *stepJSON) (normalizer, error) {
	switch s.Type {
	case "NFC":
		return formNormalizer{norm.NFC}, nil
	case "NFD":
		return formNormalizer{norm.NFD}, nil
	case "NFKC":
		return formNormalizer{norm.NFKC}, nil
	case "NFKD":
		return formNormalizer{norm.NFKD}, nil
	case "Lowercase":
		return lowercaseNormalizer{}, nil
	case "Strip":
		return stripNormalizer{s.StripLeft, s.StripRight}, nil
	case "StripAccents":
		return stripAccentsNormalizer{}, nil
	case "Nmt":
		return nmtNormalizer{}, nil
	case "Prepend":
		return prependNormalizer{s.Prepend}, nil
	case "Replace":
		re, literal, err := s.Pattern.compile()
		return replaceNormalizer{from: literal, pattern: re, to: s.Content}, err
	case "ByteLevel":
		r.alpha = true
		return byteNormalizer{}, nil
	case "Clean":
		lower := or(s.Lowercase, true)
		return cleanNormalizer{clean: or(s.CleanText, true), cjk: or(s.ChineseChars, true), accents: or(s.StripAccents, lower), lower: lower}, nil
	case "Precompiled":
		blob, err := base64.StdEncoding.DecodeString(s.Charsmap)
		if err != nil {
			return nil, fmt.Errorf("%w: precompiled_charsmap: %w", ErrInvalid, err)
		}
		chars, err := parseCharsmap(blob)
		if err != nil || chars == nil {
			return nil, err
		}
		return charsmapNormalizer{chars}, nil
	}
	return nil, fmt.Errorf("%w: normalizer %.40q", ErrUnsupported, s.Type)
}

// byteNormalizer writes text in the byte alphabet.
type byteNormalizer struct{}

func (byteNormalizer) normalize(text string) string { return string(toByteLevel(nil, text)) }
