package complete

import "slices"

// Frame makes the source of an encoder-decoder from what the system and the user
// said, in place of the tokenizer's own way.
type Frame func(system, text string) ([]int32, error)

// SetFrame makes an encoder-decoder read its sources as the frame says, and
// begin its answers with the tokens begin, nil for the model's own. It must come
// before the first request; a nil frame leaves the tokenizer's way.
func (s *Service) SetFrame(f Frame, begin []int32) { s.frame, s.begin = f, slices.Clone(begin) }

// BeginWith makes the answer of an encoder-decoder begin with ids.
func (p *Params) BeginWith(ids []int32) { p.begin = slices.Clone(ids) }
