package complete

import (
	"errors"
	"fmt"
	"slices"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/tokenizer"
)

// ErrNoSource marks a conversation in which an encoder-decoder finds nothing to read.
var ErrNoSource = errors.New("an encoder-decoder reads the last message of the user, and there is none")

// Encodes says that the model is an encoder-decoder: the ids that Start takes
// are its source, and the answer begins with tokens of the model's own.
func (s *Service) Encodes() bool { return s.Model.Encodes() }

// source encodes a source with all that the tokenizer puts around a text, and
// at least the end token, which every such model was trained with.
func (s *Service) source(text string, parse bool) ([]int32, error) {
	ids, err := s.Tok.TryEncode(text, tokenizer.Options{ParseSpecial: parse})
	if err != nil {
		return nil, fmt.Errorf("complete: %w", err)
	}
	return s.around(s.Tok.Prefix(), ids, s.Tok.Suffix()), nil
}

func (s *Service) around(prefix, ids, suffix []int32) []int32 {
	if end, ok := s.Tok.EOS(); ok && len(suffix) == 0 {
		suffix = []int32{end}
	}
	return slices.Concat(prefix, ids, suffix)
}

// Said is the text that an encoder-decoder reads of a conversation: the last
// message of the user, for such models keep nothing of earlier turns. System
// messages stand before it.
func Said(in chat.Input) (string, error) {
	system, text, err := said(in)
	return system + text, err
}

// said is Said in its two parts.
func said(in chat.Input) (system, text string, err error) {
	found := false
	for i := range in.Messages {
		m := &in.Messages[i]
		switch m.Role {
		case "system", "developer":
			system += m.Content + "\n"
		case "user":
			text, found = m.Content, true
		}
	}
	if !found {
		return "", "", fmt.Errorf("complete: %w", ErrNoSource)
	}
	return system, text, nil
}

// decode fills in what an encoder-decoder's files say of its answers.
func (s *Service) decode(p *Params) {
	if p.decoding == nil {
		p.decoding = &s.Model.Generation.Decoding
	}
	d := p.decoding
	if p.begin == nil {
		p.begin = slices.Clone(s.begin)
	}
	if p.begin == nil {
		p.begin = append([]int32{d.Start}, d.First...)
	}
	if p.Max == 0 && d.MaxLength > len(p.begin) {
		p.Max = d.MaxLength - len(p.begin)
	}
}

// rules are the restrictions of an answer to a source; nil if there are none.
func (s *Service) rules(source []int32, p *Params, end []int32) *sample.Rules {
	d := p.decoding
	r := &sample.Rules{NoRepeat: d.NoRepeat, Bad: d.Bad, Last: d.Last}
	if d.MinLength > 0 {
		r.End, r.MinLength = end, d.MinLength
	}
	if d.NoRepeatSource > 0 {
		r.Source, r.NoRepeatSource = source, d.NoRepeatSource
	}
	if p.Max > 0 {
		r.MaxLength = len(p.begin) + p.Max
	}
	if r.NoRepeat == 0 && r.NoRepeatSource == 0 && len(r.Bad) == 0 && r.MinLength == 0 && (len(r.Last) == 0 || r.MaxLength == 0) {
		return nil
	}
	return r
}

// notes tells once what the files ask for and is not done.
func decodingNotes(d model.Decoding) []string {
	if d.Beams < 2 {
		return nil
	}
	return []string{fmt.Sprintf("the model's files ask for a search with %d beams; answers are drawn token by token, which may give another text", d.Beams)}
}
