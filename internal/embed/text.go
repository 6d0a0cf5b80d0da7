package embed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tokenizer"
)

// Options changes how texts become vectors.
type Options struct {
	Prompt     string // name of a prompt of the model's, or "" for its default
	NoPrompt   bool   // none, even where the model has a default
	Truncate   bool   // texts that are too long lose their end; without it they are refused
	Dimensions int    // numbers that are kept; 0: the model's own choice
	Normalize  bool   // scale to length 1, whatever the model says
	// Unscaled leaves a vector that loses numbers to Dimensions as it is. Without
	// it, one that had length 1 has it again.
	Unscaled bool
	Before   int // texts of the same list that were encoded before these; messages count them
}

// prompt is the text before each text.
func (s *Service) prompt(o Options) (string, error) {
	sen := &s.Model.Sentence
	name := o.Prompt
	if name == "" && !o.NoPrompt {
		name = sen.DefaultPrompt
	}
	if name == "" {
		return "", nil
	}
	p, ok := sen.Prompts[name]
	if !ok {
		return "", fmt.Errorf("embed: %w: no prompt %q; the model has %s", ErrRequest, name, s.PromptNames())
	}
	return p, nil
}

// PromptNames lists the model's prompts for a message.
func (s *Service) PromptNames() string {
	var names []string
	for n := range s.Model.Sentence.Prompts {
		names = append(names, fmt.Sprintf("%q", n))
	}
	if sort.Strings(names); len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// noTokenizer says what a model without a tokenizer lacks and what it is good for.
func (s *Service) noTokenizer() error {
	return fmt.Errorf("embed: %s: %w: %s; logits, bench and explain work without", s.Model.Name, tokenizer.ErrNoTokenizer, s.Model.TokenizerHint())
}

// Encode makes the tokens of texts, with the special tokens that the tokenizer
// adds and the prompt before each. As in the reference, a text that spells a
// special token has that token.
func (s *Service) Encode(texts []string, o Options) ([]Text, error) {
	if s.Tok == nil {
		return nil, s.noTokenizer()
	}
	prompt, err := s.prompt(o)
	if err != nil {
		return nil, err
	}
	skip := 0
	if prompt != "" && !s.Model.Sentence.IncludePrompt {
		ids, err := s.ids(prompt)
		if err != nil {
			return nil, fmt.Errorf("embed: %w: the prompt: %w", ErrRequest, err)
		}
		skip = len(ids) - len(s.suffix(ids))
	}
	out := make([]Text, len(texts))
	err = Each(len(texts), encodeAtOnce, func(i int) (err error) {
		out[i], err = s.encode(o.Before+i, prompt, texts[i], skip, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Frame makes the tokens of a text in place of the tokenizer's own way, on
// several threads at once.
type Frame struct {
	IDs    func(text string) ([]int32, error)
	Suffix int // how many of the last are no tokens of the text
}

// SetFrame makes the service read texts as the frame says. It must come before
// the first request.
func (s *Service) SetFrame(f *Frame) { s.frame = f }

// suffix are the tokens behind a text whose tokens are ids.
func (s *Service) suffix(ids []int32) []int32 {
	if s.frame != nil {
		return ids[max(0, len(ids)-s.frame.Suffix):]
	}
	return s.Tok.Suffix()
}

// encodeAtOnce is the number of texts that a thread encodes at a time.
const encodeAtOnce = 16

// encode makes the tokens of text i.
func (s *Service) encode(i int, prompt, text string, skip int, o Options) (Text, error) {
	text, short, err := s.bound(i, text, len(prompt)+len(text), o)
	if err != nil {
		return Text{}, err
	}
	ids, err := s.ids(prompt + text)
	if err != nil {
		return Text{}, fmt.Errorf("embed: %w: text %d: %w", ErrRequest, i+1, err)
	}
	if short && len(ids) <= s.most {
		return Text{}, s.sparse(i)
	}
	t := Text{IDs: ids, Skip: skip}
	if n := len(ids); n > s.most && o.Truncate {
		tail := slices.Clone(s.suffix(ids))
		if len(tail) >= s.most {
			tail = nil
		}
		t.IDs, t.Cut = append(ids[:s.most-len(tail):s.most-len(tail)], tail...), n-s.most
	}
	return t, s.check(i, &t)
}

// ids encodes a text with the tokens around it.
func (s *Service) ids(text string) ([]int32, error) {
	if s.frame != nil {
		return s.frame.IDs(text)
	}
	return s.Tok.TryEncode(text, tokenizer.Options{AddSpecial: true, ParseSpecial: true})
}

// Vectors computes the embedding of each text.
func (s *Service) Vectors(ctx context.Context, texts []Text, o Options) ([][]float32, error) {
	if s.Output != spec.OutputEmbedding {
		return nil, fmt.Errorf("embed: %w: it was opened for %s, not for embeddings", ErrOutput, s.Output)
	}
	keep := o.Dimensions
	if keep == 0 {
		keep = s.Model.Sentence.Dimensions
	}
	if keep < 0 || keep > s.Width() {
		return nil, fmt.Errorf("embed: %w: %d dimensions were asked for, the model has %d", ErrRequest, keep, s.Width())
	}
	rows, err := s.Rows(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(rows))
	for i, r := range rows {
		v := r[0]
		unit := math.Abs(norm(v)-1) < 1e-3
		if keep > 0 && keep < len(v) {
			v = v[:keep]
		}
		if again := unit && o.Dimensions > 0 && len(v) < len(r[0]); o.Normalize || again && !o.Unscaled {
			scale(v)
		}
		out[i] = v
	}
	return out, nil
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// scale brings v to length 1; a zero vector stays.
func scale(v []float32) {
	n := max(norm(v), 1e-12)
	for i := range v {
		v[i] = float32(float64(v[i]) / n)
	}
}

// Cosine is the cosine of the angle between two vectors of one length.
func Cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	if n := norm(a) * norm(b); n > 0 {
		return sum / n
	}
	return 0
}
