package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tokenizer"
)

// The outputs of classifiers.
const (
	OutputScores      = "scores"       // a row of classes for a whole text
	OutputTokenScores = "token_scores" // a row of classes for each token
	OutputLogits      = "logits"
)

// Class is a class with its probability.
type Class struct {
	Label string
	Score float64
}

// EncodePairs makes the tokens of pairs of texts.
func (s *Service) EncodePairs(pairs [][2]string, o Options) ([]Text, error) {
	if s.Tok == nil {
		return nil, s.noTokenizer()
	}
	most := 0
	if o.Truncate {
		most = s.most
	}
	out := make([]Text, len(pairs))
	for i, p := range pairs {
		p, short, err := s.boundPair(i, p, o)
		if err != nil {
			return nil, err
		}
		ids, types, cut, err := s.Tok.EncodePair(p[0], p[1], most)
		switch {
		case errors.Is(err, tokenizer.ErrNoPair):
			return nil, fmt.Errorf("embed: %w", err)
		case err != nil:
			return nil, fmt.Errorf("embed: %w: pair %d: %w", ErrRequest, i+1, err)
		case short && cut == 0:
			return nil, s.sparse(i)
		}
		out[i] = Text{IDs: ids, Types: types, Cut: cut}
		if err := s.check(i, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// boundPair bounds each text of a pair, and without truncation both together.
func (s *Service) boundPair(i int, p [2]string, o Options) (_ [2]string, short bool, err error) {
	if n := len(p[0]) + len(p[1]); !o.Truncate && n > s.spells() {
		return p, false, s.beyond(i, n)
	}
	for k := range p {
		var cut bool
		if p[k], cut, err = s.bound(i, p[k], len(p[k]), o); err != nil {
			return p, false, err
		}
		short = short || cut
	}
	return p, short, nil
}

// Classes computes the classes of each text, in the model's order: a softmax
// over them, or the logistic function of each where they do not exclude each other.
func (s *Service) Classes(ctx context.Context, texts []Text) ([][]Class, error) {
	if s.Output != OutputScores {
		return nil, fmt.Errorf("embed: %w: it was opened for %s, not for classes", ErrOutput, s.Output)
	}
	rows, err := s.Rows(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make([][]Class, len(rows))
	for i, r := range rows {
		out[i] = s.classes(r[0])
	}
	return out, nil
}

func (s *Service) classes(row []float32) []Class {
	labels := s.Model.Labels()
	out := make([]Class, len(row))
	top, sum := math.Inf(-1), 0.0
	for _, v := range row {
		top = math.Max(top, float64(v))
	}
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	for i, v := range row {
		p := math.Exp(float64(v)-top) / sum
		if s.Model.Independent() {
			p = sigmoid(float64(v))
		}
		out[i] = Class{labels[i], p}
	}
	return out
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Ranked is a document with its relevance to a query.
type Ranked struct {
	Index int
	Score float64
}

// Rank orders documents by their relevance to a query, the best first: the
// logistic function of a cross-encoder's one score, or the cosine of embeddings.
// tokens counts what was read.
func (s *Service) Rank(ctx context.Context, query string, docs []string, o Options) (ranked []Ranked, tokens int, err error) {
	var scores []float64
	switch s.Output {
	case OutputScores:
		scores, tokens, err = s.crossScores(ctx, query, docs, o)
	case spec.OutputEmbedding:
		scores, tokens, err = s.cosines(ctx, query, docs, o)
	default:
		err = fmt.Errorf("embed: %w: it was opened for %s, not for ranking", ErrOutput, s.Output)
	}
	if err != nil {
		return nil, 0, err
	}
	for i, v := range scores {
		ranked = append(ranked, Ranked{i, v})
	}
	sort.SliceStable(ranked, func(a, b int) bool { return ranked[a].Score > ranked[b].Score })
	return ranked, tokens, nil
}

func (s *Service) crossScores(ctx context.Context, query string, docs []string, o Options) (scores []float64, tokens int, err error) {
	if n := s.Width(); n != 1 {
		return nil, 0, fmt.Errorf("embed: %w: it has %d classes (%s); a reranker has one score", ErrOutput, n, strings.Join(s.Model.Labels(), ", "))
	}
	pairs := make([][2]string, len(docs))
	for i, d := range docs {
		pairs[i] = [2]string{query, d}
	}
	texts, err := s.EncodePairs(pairs, o)
	if err != nil {
		return nil, 0, err
	}
	rows, err := s.Rows(ctx, texts)
	if err != nil {
		return nil, 0, err
	}
	for i, r := range rows {
		scores, tokens = append(scores, sigmoid(float64(r[0][0]))), tokens+len(texts[i].IDs)
	}
	return scores, tokens, nil
}

// cosines uses the model's own prompts for queries and documents, where it has them.
func (s *Service) cosines(ctx context.Context, query string, docs []string, o Options) (scores []float64, tokens int, err error) {
	named := func(names ...string) Options {
		p := o
		for _, n := range names {
			if _, ok := s.Model.Sentence.Prompts[n]; ok && p.Prompt == "" {
				p.Prompt = n
			}
		}
		return p
	}
	texts, err := s.Encode([]string{query}, named("query"))
	if err != nil {
		return nil, 0, err
	}
	more, err := s.Encode(docs, named("document", "passage"))
	if err != nil {
		return nil, 0, err
	}
	texts = append(texts, more...)
	vectors, err := s.Vectors(ctx, texts, Options{})
	if err != nil {
		return nil, 0, err
	}
	for i, t := range texts {
		if tokens += len(t.IDs); i > 0 {
			scores = append(scores, Cosine(vectors[0], vectors[i]))
		}
	}
	return scores, tokens, nil
}
