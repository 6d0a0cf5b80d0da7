package embed

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/inferflow/inferflow/tokenizer"
)

// Word is a token that fits a mask, with its probability.
type Word struct {
	ID    int32
	Text  string
	Score float64
}

// masks are the ways in which people write a mask; the model's own is one of them mostly.
var masks = []string{"[MASK]", "<mask>", "<|mask|>"}

// EncodeMasked makes the tokens of a text with masks. The rows of the masks are wanted.
func (s *Service) EncodeMasked(text string) (Text, error) { return s.EncodeMaskedBy(s.ids, text) }

// EncodeMaskedBy is EncodeMasked where encode makes the tokens of the text.
func (s *Service) EncodeMaskedBy(encode func(text string) ([]int32, error), text string) (Text, error) {
	if s.Tok == nil {
		return Text{}, fmt.Errorf("embed: %s: %w", s.Model.Path, tokenizer.ErrNoTokenizer)
	}
	id, ok := s.mask()
	if !ok {
		return Text{}, fmt.Errorf("embed: %w: its tokenizer names no mask", ErrOutput)
	}
	if _, _, err := s.bound(0, text, len(text), Options{}); err != nil {
		return Text{}, err
	}
	own := s.Tok.Text(id)
	for _, m := range masks {
		text = strings.ReplaceAll(text, m, own)
	}
	ids, err := encode(text)
	if err != nil {
		return Text{}, fmt.Errorf("embed: %w: %w", ErrRequest, err)
	}
	t := Text{IDs: ids}
	for i, x := range t.IDs {
		if x == id {
			t.Out = append(t.Out, int32(i))
		}
	}
	if t.Out == nil {
		return Text{}, fmt.Errorf("embed: %w: the text has no mask; write %s where a word is missing", ErrRequest, own)
	}
	return t, s.check(0, &t)
}

// mask is the token that stands for a missing word: the one with that role, or
// one that is written as masks are.
func (s *Service) mask() (int32, bool) {
	if id, ok := s.Tok.Named("mask"); ok {
		return id, true
	}
	for _, m := range masks {
		if id, ok := s.Tok.ID(m); ok {
			return id, true
		}
	}
	return 0, false
}

// Fill computes for each mask the k likeliest tokens.
func (s *Service) Fill(ctx context.Context, t Text, k int) ([][]Word, error) {
	if s.Output != OutputLogits {
		return nil, fmt.Errorf("embed: %w: it has no head for masked words", ErrOutput)
	}
	rows, err := s.Rows(ctx, []Text{t})
	if err != nil {
		return nil, err
	}
	out := make([][]Word, len(rows[0]))
	for i, r := range rows[0] {
		out[i] = s.likeliest(r, k)
	}
	return out, nil
}

// likeliest are the k largest of a row of logits as probabilities.
func (s *Service) likeliest(row []float32, k int) []Word {
	order := make([]int32, len(row))
	top, sum := math.Inf(-1), 0.0
	for i, v := range row {
		order[i] = int32(i)
		top = math.Max(top, float64(v))
	}
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	sort.SliceStable(order, func(a, b int) bool { return row[order[a]] > row[order[b]] })
	out := make([]Word, 0, k)
	for _, id := range order[:min(k, len(order))] {
		out = append(out, Word{id, string(s.Tok.TokenBytes(id)), math.Exp(float64(row[id])-top) / sum})
	}
	return out
}
