package embed

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
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
		return Text{}, s.noTokenizer()
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

// fillsAtOnce bounds the texts whose rows of logits are kept at a time, each as
// many rows as it has masks.
const fillsAtOnce = 4

// MaxWords is the largest number of words that Fill finds for a mask.
const MaxWords = 1000

// Fill computes for each mask the k likeliest tokens. It waits while others fill
// as many texts as are kept at once; ctx ends that too.
func (s *Service) Fill(ctx context.Context, t Text, k int) ([][]Word, error) {
	if s.Output != OutputLogits {
		return nil, fmt.Errorf("embed: %w: it has no head for masked words", ErrOutput)
	}
	if k < 1 || k > MaxWords {
		return nil, fmt.Errorf("embed: %w: %d words for a mask were asked for; 1 to %d are possible", ErrRequest, k, MaxWords)
	}
	select {
	case s.fills <- struct{}{}:
		defer func() { <-s.fills }()
	case <-ctx.Done():
		return nil, ctx.Err()
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
	top, sum := math.Inf(-1), 0.0
	for _, v := range row {
		top = math.Max(top, float64(v))
	}
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	best := largest(row, k)
	out := make([]Word, len(best))
	for i, id := range best {
		out[i] = Word{id, string(s.Tok.TokenBytes(id)), math.Exp(float64(row[id])-top) / sum}
	}
	return out
}

// largest are the places of the k largest values, the largest first, and of equal
// ones the first. It keeps k places in a heap, the least of them on top.
func largest(row []float32, k int) []int32 {
	k = min(k, len(row))
	h := make([]int32, 0, k)
	before := func(a, b int32) int { return cmp.Or(cmp.Compare(row[b], row[a]), cmp.Compare(a, b)) }
	for i := range row {
		id := int32(i)
		switch {
		case len(h) < k-1:
			h = append(h, id)
		case len(h) < k: // the last of the first k makes it a heap
			h = append(h, id)
			slices.SortFunc(h, func(a, b int32) int { return before(b, a) })
		case k > 0 && before(id, h[0]) < 0:
			h[0] = id
			sink(h, before)
		}
	}
	slices.SortFunc(h, before)
	return h
}

// sink moves the top of a heap down to where it belongs; the last by before is on top.
func sink(h []int32, before func(a, b int32) int) {
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && before(h[c+1], h[c]) > 0 {
			c++
		}
		if before(h[c], h[i]) <= 0 {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
