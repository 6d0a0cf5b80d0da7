package engine

import (
	"context"
	"io"
	"sync"
	"time"
)

// Stream delivers the events of one request. The loop never waits for its
// reader: events queue until they are read.
type Stream struct {
	Request Request

	e      *Engine
	unhook func() bool

	mu        sync.Mutex
	events    []Event
	read      int
	ready     chan struct{}
	open      int    // choices that have not ended
	ended     []bool // by choice
	cancelled bool
	t0        time.Time
	started   time.Time
	first     time.Time
	last      time.Time
	tokens    int
}

func newStream(e *Engine, r Request) *Stream {
	return &Stream{Request: r, e: e, open: r.N, ended: make([]bool, r.N), ready: make(chan struct{}, 1), t0: time.Now()}
}

// Next returns the next event, io.EOF after the last, or ctx's error.
func (s *Stream) Next(ctx context.Context) (Event, error) {
	for {
		s.mu.Lock()
		if s.read < len(s.events) {
			ev := s.events[s.read]
			s.read++
			if s.read == len(s.events) {
				s.events, s.read = s.events[:0], 0
			}
			s.mu.Unlock()
			return ev, nil
		}
		over := s.open <= 0 || s.cancelled // told after what was already chosen
		s.mu.Unlock()
		if over {
			return Event{}, io.EOF
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Cancel ends the request; what it holds is freed before the next step.
func (s *Stream) Cancel() {
	s.mu.Lock()
	was := s.cancelled || s.open <= 0
	s.cancelled = true
	s.mu.Unlock()
	if !was {
		s.withdraw(-1)
	}
}

// CancelChoice ends one answer of the request, as its reader found that it is
// over (a stop string, say). What it holds is freed before the next step; no
// further event of it is delivered. A choice that has ended or never was is
// passed over.
func (s *Stream) CancelChoice(i int) {
	s.mu.Lock()
	was := s.cancelled || i < 0 || i >= len(s.ended) || s.ended[i]
	if !was {
		s.ended[i] = true
		s.open--
	}
	over := s.open <= 0
	s.mu.Unlock()
	if was {
		return
	}
	if over && s.unhook != nil {
		s.unhook()
	}
	s.withdraw(i)
}

func (s *Stream) withdraw(choice int) {
	s.notify()
	s.e.mu.Lock()
	s.e.cancels = append(s.e.cancels, cancel{s, choice})
	s.e.giveUp()
	s.e.mu.Unlock()
	s.e.signal()
}

// wants says whether anybody waits for tokens of a choice.
func (s *Stream) wants(i int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.cancelled && !s.ended[i]
}

func (s *Stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancelled || s.open <= 0
}

// Timings returns what was measured so far.
func (s *Stream) Timings() Timings {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Timings{PromptTokens: len(s.Request.Source) + len(s.Request.Prompt), Tokens: s.tokens}
	if !s.started.IsZero() {
		t.Queued = s.started.Sub(s.t0)
	}
	if !s.first.IsZero() {
		t.Prefill = s.first.Sub(s.started)
		t.Decode = s.last.Sub(s.first)
	}
	return t
}

func (s *Stream) notify() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// push is called by the loop.
func (s *Stream) push(ev Event) {
	s.mu.Lock()
	if s.cancelled || s.ended[ev.Choice] {
		s.mu.Unlock()
		return
	}
	s.events = append(s.events, ev)
	if !ev.Prompt && ev.Err == nil {
		s.last = time.Now()
		if s.first.IsZero() {
			s.first = s.last
		}
		s.tokens++
	}
	if ev.Finish != FinishNone {
		s.ended[ev.Choice] = true
		s.open--
	}
	over := s.open <= 0
	s.mu.Unlock()
	s.notify()
	if over && s.unhook != nil {
		s.unhook()
	}
}

func (s *Stream) start() {
	s.mu.Lock()
	if s.started.IsZero() {
		s.started = time.Now()
	}
	s.mu.Unlock()
}
