package complete

import (
	"errors"
	"fmt"
	"slices"

	"github.com/inferflow/inferflow/chat"
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
