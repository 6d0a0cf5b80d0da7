package tokenizer

import (
	"encoding/json"
	"fmt"
)

func (r *jsonReader) decoder(raw string) error {
	if isNull(raw) {
		r.t.stages = []stageSpec{{kind: stageJoin}}
		return nil
	}
	stages, _, err := decoders(nil, false, raw, 0)
	if err != nil {
		return err
	}
	r.t.stages = stages
	return checkGrowth(len(stages), decodeGrowth(stages), maxDecodeGrowth)
}

// decoders appends the stages of a decoder. fused says that the tokens were joined by now, so that a Strip concerns the whole text.
func decoders(stages []stageSpec, fused bool, raw string, depth int) ([]stageSpec, bool, error) {
	s, err := parseStep(raw, depth)
	if err != nil {
		return nil, false, err
	}
	switch s.Type {
	case "Sequence":
		for _, sub := range s.Decoders {
			if stages, fused, err = decoders(stages, fused, string(sub), depth+1); err != nil {
				return nil, false, err
			}
		}
		return stages, fused, nil
	case "Fuse":
		return stages, true, nil
	}
	stage, err := s.stage(fused)
	return append(stages, stage), fused, err
}

func (s *stepJSON) stage(fused bool) (stageSpec, error) {
	switch s.Type {
	case "ByteLevel":
		return stageSpec{kind: stageByteLevel}, nil
	case "ByteFallback":
		return stageSpec{kind: stageByteFallback}, nil
	case "Metaspace":
		scheme, err := s.scheme()
		spec := stageSpec{kind: stageMetaspace, from: s.Replacement}
		if spec.from == "" {
			spec.from = spaceMark
		}
		if scheme != prefixNever {
			spec.start = 1
		}
		return spec, err
	case "Replace":
		re, literal, err := s.Pattern.compile()
		if re != nil {
			return stageSpec{kind: stageRegex, pattern: re, to: s.Content}, err
		}
		return stageSpec{kind: stageReplace, from: literal, to: s.Content}, err
	case "Strip":
		if s.Content == "" || s.Start < 0 || s.Stop < 0 {
			return stageSpec{}, fmt.Errorf("%w: Strip of %.40q, %d and %d times", ErrInvalid, s.Content, s.Start, s.Stop)
		}
		kind := stageStrip
		if fused {
			kind = stageStripAll
		}
		return stageSpec{kind: kind, from: s.Content, start: s.Start, stop: s.Stop}, nil
	case "WordPiece":
		prefix := "##"
		if s.Prefix != nil {
			prefix = *s.Prefix
		}
		return stageSpec{kind: stageWordPiece, from: prefix, clean: or(s.Cleanup, true)}, nil
	case "CTC":
		pad, words := "<pad>", "|"
		if s.PadToken != nil {
			pad = *s.PadToken
		}
		if s.WordDelimiter != nil {
			words = *s.WordDelimiter
		}
		return stageSpec{kind: stageRepeats, from: pad, to: words, clean: or(s.Cleanup, true)}, nil
	case "BPEDecoder":
		suffix := "</w>"
		if s.Suffix != nil {
			suffix = *s.Suffix
		}
		return stageSpec{kind: stageSuffix, from: suffix}, nil
	}
	return stageSpec{}, fmt.Errorf("%w: decoder %.40q", ErrUnsupported, s.Type)
}

// processorJSON is the post-processor: the union of the fields of all kinds.
type processorJSON struct {
	Type          string            `json:"type"`
	Processors    []json.RawMessage `json:"processors"`
	Single        []templatePart    `json:"single"`
	Pair          []templatePart    `json:"pair"`
	SpecialTokens map[string]struct {
		IDs []int64 `json:"ids"`
	} `json:"special_tokens"`
	SEP []any `json:"sep"`
	CLS []any `json:"cls"`
}

// templatePart is a special token, or one of the texts.
type templatePart struct {
	Special *struct {
		ID   string `json:"id"`
		Type int32  `json:"type_id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID   string `json:"id"`
		Type int32  `json:"type_id"`
	} `json:"Sequence"`
}

func (r *jsonReader) postProcessor(raw string) error {
	if isNull(raw) {
		return nil
	}
	return r.processor(raw, 0)
}

// fewAround refuses more ids on a side than are added, before more are made.
func fewAround(prefix, suffix int) error {
	if n := max(prefix, suffix); n > maxAround {
		return fmt.Errorf("%w: it adds %d ids or more to a text, want at most %d on a side", ErrInvalid, n, maxAround)
	}
	return nil
}

func (r *jsonReader) processor(raw string, depth int) error {
	var p processorJSON
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch stepType(p.Type) {
	case "ByteLevel": // changes offsets only
		return nil
	case "Sequence":
		if depth > maxSteps {
			return fmt.Errorf("%w: sequences nest deeper than %d", ErrInvalid, maxSteps)
		}
		for _, sub := range p.Processors {
			if err := r.processor(string(sub), depth+1); err != nil {
				return err
			}
		}
		return nil
	case "Pair", "PairDoubled":
		cls, err := r.pairID(p.CLS)
		if err != nil {
			return err
		}
		sep, err := r.pairID(p.SEP)
		r.t.prefix = append([]int32{cls}, r.t.prefix...)
		r.t.suffix = append(r.t.suffix, sep)
		r.t.pair = pairOf(cls, sep, stepType(p.Type) == "PairDoubled")
		if err != nil {
			return err
		}
		return fewAround(len(r.t.prefix), len(r.t.suffix))
	case "TemplateProcessing":
		return r.template(&p)
	}
	return fmt.Errorf("%w: post-processor %.40q", ErrUnsupported, p.Type)
}

// pairID reads ["[CLS]", 101].
func (r *jsonReader) pairID(pair []any) (int32, error) {
	if len(pair) == 2 {
		if id, ok := pair[1].(float64); ok && id >= 0 && id < float64(len(r.t.texts)) {
			return int32(id), nil
		}
	}
	return 0, fmt.Errorf("%w: %.80q is not a token with its id, an id being 0 to %d", ErrInvalid, fmt.Sprint(pair), len(r.t.texts)-1)
}

// template reads the form of a single text: special tokens, the text once, special tokens.
func (r *jsonReader) template(p *processorJSON) error {
	var prefix, suffix []int32
	seen := 0
	for i, part := range p.Single {
		if part.Special == nil {
			if part.Sequence == nil {
				return fmt.Errorf("%w: part %d of the template is neither a token nor the text", ErrInvalid, i)
			}
			seen++
			continue
		}
		token, ok := p.SpecialTokens[part.Special.ID]
		if !ok {
			return fmt.Errorf("%w: the template names %.40q, which special_tokens lacks", ErrInvalid, part.Special.ID)
		}
		for _, id := range token.IDs {
			if id < 0 || id >= int64(len(r.t.texts)) {
				return fmt.Errorf("%w: special_tokens.%.40s has id %d, want 0 to %d", ErrInvalid, part.Special.ID, id, len(r.t.texts)-1)
			}
			if seen == 0 {
				prefix = append(prefix, int32(id))
			} else {
				suffix = append(suffix, int32(id))
			}
			if err := fewAround(len(r.t.prefix)+len(prefix), len(r.t.suffix)+len(suffix)); err != nil {
				return err
			}
		}
	}
	if seen != 1 {
		return fmt.Errorf("%w: a template that holds the text %d times", ErrUnsupported, seen)
	}
	r.t.prefix = append(prefix, r.t.prefix...)
	r.t.suffix = append(r.t.suffix, suffix...)
	return r.pairTemplate(p)
}
