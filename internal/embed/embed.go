// Package embed turns texts into what encoders make of them: vectors, scores
// of classes, words for a mask. It packs the texts of all callers into batches
// of one model, each text whole. It must never import servers, devices or the
// engine of answers. Read Service first.
package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/tokenizer"
)

// Errors that callers tell apart.
var (
	ErrClosed  = errors.New("the service is closed")
	ErrTooLong = errors.New("the text is longer than the model takes")
	ErrRequest = errors.New("the request cannot be served")
	ErrOutput  = errors.New("the model does not make that")
)

// Model computes batches; *model.Model is one.
type Model interface {
	Forward(b *batch.Batch) error
	Logits(i int) []float32
	Vocab() int
	Embeds() int
	Diagnose(b *batch.Batch) string
}

// Service answers requests about texts with one loaded model. It is safe for
// concurrent use: texts of requests that run at the same time share batches,
// and what comes of a text does not depend on it.
type Service struct {
	Model   *model.Model
	Tok     *tokenizer.Tokenizer
	Created time.Time
	Output  string // what the model computes: the name of the graph's output

	m      Model
	most   int // tokens of a text
	rows   int // of a batch
	seqs   int
	blocks int

	longest func() int // bytes of the longest token, found once
	frame   *Frame     // nil: the tokenizer's own way

	fills chan struct{} // one for each text that Fill computes

	mu     sync.Mutex
	queue  []*item
	wake   chan struct{}
	closed bool
	done   chan struct{}
	b      batch.Batch
	stats  Stats

	running []*item     // of the batch that is computed
	stop    atomic.Bool // nobody waits for it
}

// Stats counts what was computed.
type Stats struct {
	Texts, Tokens, Batches int64
	Waiting                int
	Seconds                float64
}

// Text is one text, or pair of texts, as tokens.
type Text struct {
	IDs   []int32
	Types []int32 // token types; nil: all 0
	Skip  int     // first tokens that pooling leaves out
	Out   []int32 // rows that are wanted, ascending; nil: the last, which for pooled outputs is the text's
	Cut   int     // tokens that were left out because the text was too long
}

// item is a text that waits for its batch.
type item struct {
	Text
	rows [][]float32
	err  error
	left *sync.WaitGroup
	ctx  context.Context
}

// New starts the service of a loaded model, which it owns from now on.
func New(m *model.Model) (*Service, error) {
	if m.Tokenizer == nil && m.TokenizerErr != nil && !errors.Is(m.TokenizerErr, tokenizer.ErrNoTokenizer) {
		return nil, fmt.Errorf("embed: %s: %w", m.Path, m.TokenizerErr)
	}
	s := start(m, m.Limits.Rows, m.Limits.Seqs, m.Limits.Blocks)
	s.Model, s.Tok = m, m.Tokenizer
	s.longest = sync.OnceValue(s.longestToken)
	s.Output = m.Graph().Outputs[0].Name
	s.most = min(m.Limits.Tokens, m.Limits.Rows)
	if n := m.Sentence.MaxTokens; n > 0 {
		s.most = min(s.most, n)
	}
	return s, nil
}

// Load loads m and makes its service; a model that cannot be served is closed.
func Load(m *model.Model) (*Service, error) {
	err := m.Load()
	if err == nil {
		var s *Service
		if s, err = New(m); err == nil {
			return s, nil
		}
	}
	m.Close()
	return nil, err
}

func start(m Model, rows, seqs, blocks int) *Service {
	s := &Service{m: m, rows: rows, seqs: seqs, blocks: blocks, most: rows, Created: time.Now(),
		fills: make(chan struct{}, fillsAtOnce), wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.loop()
	return s
}

// MaxTokens is the length of the longest text, special tokens included.
func (s *Service) MaxTokens() int { return s.most }

// Width is the number of values of a row of the output.
func (s *Service) Width() int { return s.m.Vocab() }

// Stats returns the counters.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Waiting = len(s.queue)
	return st
}

// Close fails what waits or is computed, and closes the model.
func (s *Service) Close() error {
	s.mu.Lock()
	s.closed = true
	s.giveUp()
	s.mu.Unlock()
	s.signal()
	<-s.done
	if s.Model == nil {
		return nil
	}
	return s.Model.Close()
}

func (s *Service) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Rows computes texts and returns for each the wanted rows, owned by the
// caller. ctx ends the wait; texts that are not yet in a batch are dropped, and a
// batch that nobody else waits for is given up.
func (s *Service) Rows(ctx context.Context, texts []Text) ([][][]float32, error) {
	var left sync.WaitGroup
	items := make([]*item, len(texts))
	for i := range texts {
		if err := s.check(i, &texts[i]); err != nil {
			return nil, err
		}
		items[i] = &item{Text: texts[i], left: &left, ctx: ctx}
	}
	left.Add(len(items))
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, fmt.Errorf("embed: %w", ErrClosed)
	}
	s.queue = append(s.queue, items...)
	s.mu.Unlock()
	s.signal()
	unhook := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.giveUp()
	})
	left.Wait()
	unhook()
	out := make([][][]float32, len(items))
	for i, it := range items {
		if it.err != nil {
			return nil, it.err
		}
		out[i] = it.rows
	}
	return out, nil
}

// wider says how a text of n tokens would be taken whole.
func (s *Service) wider(n int) string {
	if s.Model == nil || s.most < min(s.Model.Limits.Tokens, cmp.Or(s.Model.Sentence.MaxTokens, s.most)) { // the rows of a batch bound it
		return ""
	}
	switch own, most := s.Model.MaxContext, s.Model.Sentence.MaxTokens; {
	case most > 0 && most <= s.most:
		return fmt.Sprintf(" (max_seq_length of the model's folder is %d)", most)
	case own > s.most && n > own:
		return fmt.Sprintf(" (--context %d takes longer ones, for more the model was not made)", own)
	case own > s.most:
		return fmt.Sprintf(" (--context %d takes it)", n)
	case own > 0:
		return " (the model was made for no more)"
	}
	return fmt.Sprintf(" (--context %d takes it)", n)
}

// check refuses what cannot be computed; messages count texts from 1.
func (s *Service) check(i int, t *Text) error {
	i++
	switch n := len(t.IDs); {
	case n == 0:
		return fmt.Errorf("embed: %w: text %d has no tokens", ErrRequest, i)
	case n > s.most:
		return fmt.Errorf("embed: %w: text %d has %d tokens, at most %d are taken%s", ErrTooLong, i, n, s.most, s.wider(n))
	case t.Types != nil && len(t.Types) != n:
		return fmt.Errorf("embed: %w: text %d has %d tokens and %d types", ErrRequest, i, n, len(t.Types))
	case t.Skip < 0 || t.Skip >= n:
		return fmt.Errorf("embed: %w: text %d is nothing but its prompt of %d tokens", ErrRequest, i, t.Skip)
	}
	ids := s.m.Embeds()
	for k, id := range t.IDs {
		if id < 0 || ids > 0 && int(id) >= ids {
			return fmt.Errorf("embed: %w: text %d: token %d is %d; ids go from 0 to %d", ErrRequest, i, k, id, ids-1)
		}
	}
	last := int32(-1)
	for _, r := range t.Out {
		if r <= last || int(r) >= len(t.IDs) {
			return fmt.Errorf("embed: %w: text %d: row %d is wanted after %d of %d tokens", ErrRequest, i, r, last, len(t.IDs))
		}
		last = r
	}
	return nil
}
