// Package engine is the one loop of a loaded model: requests of token ids in,
// events of token ids out. Text ends outside. It must never import servers,
// tokenizers or specs. Read Engine first.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kv"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

// Errors that callers tell apart.
var (
	ErrClosed    = errors.New("engine is closed")
	ErrQueueFull = errors.New("too many requests are waiting")
	ErrRequest   = errors.New("request cannot be served")
)

// Model computes batches; *model.Model is one.
type Model interface {
	Forward(b *batch.Batch) error
	Logits(i int) []float32
	Vocab() int
	Diagnose(b *batch.Batch) string
}

// embedder is a Model whose embedding may have fewer rows than a row of logits
// has numbers.
type embedder interface {
	Embeds() int // ids below it can be computed; 0: all
}

// encoder is a Model that may read a source before it decodes.
type encoder interface {
	Encodes() bool
	SourceEmbeds() int // ids of a source below it can be computed; 0: all
}

// leader is a Model that puts rows of its own before each prompt.
type leader interface {
	Lead() []int32 // their ids
}

// Options bounds an engine.
type Options struct {
	Limits sched.Limits
	Blocks int // key/value blocks of the model
	Queue  int // waiting requests at most; 0: 1024
}

// Request asks for one or several answers to a prompt of token ids.
type Request struct {
	Source         []int32 // what an encoder-decoder's encoder reads; none for other models
	Prompt         []int32 // what the answer goes on from: an encoder-decoder's start token, and perhaps more
	Params         sample.Params
	Max            int     // tokens of an answer at most; 0: as many as the context holds
	End            []int32 // token ids that end an answer; they are delivered as the last event
	N              int     // answers; 0: 1. They share the prompt.
	PromptLogprobs bool    // deliver an event for each prompt token after the first

	// Counted are the last tokens of the prompt that count as answer in the scores
	// of a search with beams (Params.Beams). Such a request delivers its N ≤ beams
	// best answers when the search is over, the best first.
	Counted int
}

// Finish says why an answer ended.
type Finish string

// The reasons.
const (
	FinishNone   Finish = ""
	FinishStop   Finish = "stop"   // an end token
	FinishLength Finish = "length" // Max tokens or the context's end
	FinishError  Finish = "error"
)

// Event is one token of an answer, or its end by an error.
type Event struct {
	Choice  int
	Prompt  bool // a prompt token with its log-probability, not part of the answer
	ID      int32
	Logprob float32
	Top     []sample.TokenLogprob
	Finish  Finish  // with the last event of a choice
	Score   float32 // of an answer that a search with beams found, with its last event
	Err     error
}

// Timings of a request, for users and metrics.
type Timings struct {
	Queued, Prefill, Decode time.Duration
	PromptTokens, Tokens    int
}

// Engine runs requests on a model until it is closed.
type Engine struct {
	m Model
	o Options

	mu      sync.Mutex
	wake    chan struct{}
	inbox   []*Stream
	cancels []cancel
	closed  bool
	done    chan struct{}
	stats   Stats
	reading []*Stream   // those of the step that is computed
	stop    atomic.Bool // nobody waits for it

	lead    []int32 // ids before each prompt, which nobody sees
	sched   *sched.Scheduler
	live    map[*sched.Task]*choice
	b       batch.Batch
	tasks   []*sched.Task
	scratch *sample.Scratch
	sick    string // what Diagnose said of this step, "" before it was asked
}

// Stats are the engine's gauges and counters.
type Stats struct {
	sched.Stats
	Requests, PromptTokens, Tokens, Steps, Errors, Cancelled int64
	StepSeconds                                              float64
}

// choice is one answer under way.
type choice struct {
	stream  *Stream
	index   int
	sampler *sample.Sampler
	end     map[int32]bool
	told    int     // prompt positions whose events were delivered
	forked  bool    // the other choices have tasks of their own
	search  *search // a search with beams, which has no sampler; nil: none
}

// cancel is what a reader no longer wants: one choice, or all of them (-1).
type cancel struct {
	stream *Stream
	choice int
}

// New starts the loop.
func New(m Model, o Options) *Engine {
	if o.Queue <= 0 {
		o.Queue = 1024
	}
	e := &Engine{m: m, o: o, wake: make(chan struct{}, 1), done: make(chan struct{}), live: map[*sched.Task]*choice{},
		sched: sched.New(o.Limits, kv.NewPool(o.Blocks)), scratch: &sample.Scratch{}}
	if x, ok := m.(leader); ok {
		e.lead = x.Lead()
	}
	go e.loop()
	return e
}

// PromptIDs is the bound of the ids that a prompt may hold, or the source of an
// encoder-decoder: 0 to PromptIDs()−1.
func (e *Engine) PromptIDs() int {
	if m, ok := e.m.(encoder); ok && m.Encodes() && m.SourceEmbeds() > 0 {
		return m.SourceEmbeds()
	}
	return e.decoderIDs()
}

func (e *Engine) decoderIDs() int {
	n := e.m.Vocab()
	if x, ok := e.m.(embedder); ok && x.Embeds() > 0 {
		n = min(n, x.Embeds())
	}
	return n
}

// Submit queues a request. Its events come from the Stream; cancelling ctx
// ends it and frees all it holds within one step, which is given up where nobody
// else waits for it.
func (e *Engine) Submit(ctx context.Context, r Request) (*Stream, error) {
	if err := e.check(&r); err != nil {
		return nil, err
	}
	s := newStream(e, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	if len(e.inbox)+e.stats.Waiting >= e.o.Queue {
		return nil, fmt.Errorf("engine: %w (%d)", ErrQueueFull, e.o.Queue)
	}
	e.inbox = append(e.inbox, s)
	e.stats.Requests++
	e.stats.PromptTokens += int64(len(r.Source) + len(r.Prompt))
	s.unhook = context.AfterFunc(ctx, s.Cancel)
	e.signal()
	return s, nil
}

func (e *Engine) check(r *Request) error {
	if err := r.Params.Validate(); err != nil {
		return fmt.Errorf("engine: %w: %w", ErrRequest, err)
	}
	limit := e.o.Limits.Tokens - len(e.lead)
	switch {
	case len(r.Prompt) == 0:
		return fmt.Errorf("engine: %w: the prompt holds no tokens", ErrRequest)
	case len(r.Prompt) >= limit:
		return fmt.Errorf("engine: %w: the prompt has %d tokens, the context holds %d with the answer", ErrRequest, len(r.Prompt), limit)
	case r.N < 0 || r.N > 128:
		return fmt.Errorf("engine: %w: %d answers were asked for; 1 to 128 are possible", ErrRequest, r.N)
	case r.Max < 0:
		return fmt.Errorf("engine: %w: a negative number of tokens was asked for", ErrRequest)
	}
	if err := inRange("prompt", r.Prompt, e.decoderIDs()); err != nil {
		return err
	}
	if err := e.checkSource(r); err != nil {
		return err
	}
	r.N = max(1, r.N)
	asked := r.Max
	if room := limit - len(r.Prompt); r.Max == 0 || r.Max > room {
		r.Max = room
	}
	if most := (e.o.Blocks-blocksOf(len(r.Source)))*batch.BlockTokens - len(e.lead); len(r.Prompt)+r.Max-1 > most {
		if len(r.Prompt) >= most {
			return fmt.Errorf("engine: %w: the prompt has %d tokens, the key/value memory holds %d with the answer", ErrRequest, len(r.Prompt), most)
		}
		r.Max = most - len(r.Prompt) + 1
	}
	return e.checkBeams(r, asked)
}

// inRange refuses ids that the model has no embedding of.
func inRange(what string, list []int32, ids int) error {
	for i, id := range list {
		if id < 0 || int(id) >= ids {
			return fmt.Errorf("engine: %w: %s token %d is %d; ids go from 0 to %d", ErrRequest, what, i, id, ids-1)
		}
	}
	return nil
}

// checkSource wants a source where the model has an encoder, and only there.
func (e *Engine) checkSource(r *Request) error {
	m, ok := e.m.(encoder)
	if !ok || !m.Encodes() {
		if len(r.Source) > 0 {
			return fmt.Errorf("engine: %w: the model has no encoder that could read a source", ErrRequest)
		}
		return nil
	}
	switch limit := e.o.Limits.Source; {
	case len(r.Source) == 0:
		return fmt.Errorf("engine: %w: the source holds no tokens", ErrRequest)
	case len(r.Source) > limit:
		return fmt.Errorf("engine: %w: the source has %d tokens, the encoder takes %d at once", ErrRequest, len(r.Source), limit)
	case blocksOf(len(r.Source)) >= e.o.Blocks:
		return fmt.Errorf("engine: %w: the source has %d tokens, the key/value memory holds %d with the answer", ErrRequest, len(r.Source), (e.o.Blocks-1)*batch.BlockTokens)
	}
	if ids := m.SourceEmbeds(); ids > 0 {
		return inRange("source", r.Source, ids)
	}
	return nil
}

func blocksOf(tokens int) int { return (tokens + batch.BlockTokens - 1) / batch.BlockTokens }

func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Stats returns a copy of the gauges and counters.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Waiting += len(e.inbox)
	return s
}

// Close ends all requests with ErrClosed and stops the loop; a step under way is
// given up.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.stop.Store(true)
	e.mu.Unlock()
	e.signal()
	<-e.done
}
