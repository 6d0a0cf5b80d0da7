package complete

import (
	"fmt"

	"github.com/inferflow/inferflow/chat"
)

// Fits refuses a text of more bytes than the context's tokens can spell with
// ErrTooLong, before anybody pays for its tokens.
func (s *Service) Fits(text string) error { return s.fits(len(text), 0) }

// fits refuses n bytes beyond what the context spells and spare further ones.
func (s *Service) fits(n, spare int) error {
	tokens := s.Model.Limits.Tokens
	if n-spare <= tokens {
		return nil
	}
	if most := tokens * s.longest(); n-spare > most {
		return fmt.Errorf("complete: %w: %d bytes; %d tokens are at most %d bytes", ErrTooLong, n, tokens, most)
	}
	return nil
}

// longestToken is the length in bytes of the longest token, and no less than
// 16: vocabularies of short tokens may still drop or merge some text.
func (s *Service) longestToken() int {
	n := 16
	for id := range s.Tok.Size() {
		n = max(n, len(s.Tok.TokenBytes(int32(id))))
	}
	return n
}

// content counts the bytes of what is said in a conversation.
func content(in chat.Input) (n int) {
	for i := range in.Messages {
		n += len(in.Messages[i].Content)
		for _, p := range in.Messages[i].Parts {
			n += len(p.Text)
		}
	}
	return n
}

// baggage counts what else the template has to carry: templates leave much of
// it out of the prompt, but not for nothing.
func baggage(in chat.Input) (n int) {
	for i := range in.Messages {
		m := &in.Messages[i]
		n += 64 + len(m.Role) + len(m.Name) + len(m.Reasoning)
		for _, p := range m.Parts {
			n += 64 + len(p.Raw)
		}
		for _, c := range m.ToolCalls {
			n += 64 + len(c.ID) + len(c.Name) + len(c.Arguments)
		}
		for name, v := range m.Extra {
			n += len(name) + len(v)
		}
	}
	for _, t := range in.Tools {
		n += 64 + len(t.Schema)
	}
	for name, v := range in.Extra {
		n += len(name) + weigh(v)
	}
	return n
}

// weigh estimates the bytes of a decoded JSON value.
func weigh(v any) int {
	n := 16
	switch x := v.(type) {
	case string:
		n += len(x)
	case []any:
		for _, e := range x {
			n += weigh(e)
		}
	case map[string]any:
		for k, e := range x {
			n += len(k) + weigh(e)
		}
	}
	return n
}
