package sample

import (
	"fmt"
	"math"
)

// MaxBeams is the largest number of beams of a search.
const MaxBeams = 64

// Early says when a search ends, once it has as many finished answers as beams.
type Early int

// The values of early_stopping in transformers.
const (
	EarlyNo    Early = iota // false: where the best running beam, at its present length, is no better than the worst finished answer
	EarlyYes                // true: at once
	EarlyNever              // "never": where no running beam could become better, at whatever length
)

// Beams asks for a search with beams.
type Beams struct {
	// N is the number of beams; 0 or 1: none. [0, 64]
	N int
	// LengthPenalty is the power of an answer's length that divides the sum of
	// its log-probabilities: above 0 it favours long answers. [-100, 100]
	LengthPenalty float64
	Early         Early
}

// On says that a search is asked for.
func (b Beams) On() bool { return b.N > 1 }

func (b Beams) validate(p *Params) error {
	switch {
	case b.N < 0 || b.N > MaxBeams:
		return fmt.Errorf("sample: %w: num_beams is %d; it must be from 1 to %d", ErrParams, b.N, MaxBeams)
	case !b.On():
		return nil
	case !(b.LengthPenalty >= -100 && b.LengthPenalty <= 100):
		return fmt.Errorf("sample: %w: length_penalty is %v; it must be from -100 to 100", ErrParams, b.LengthPenalty)
	case b.Early < EarlyNo || b.Early > EarlyNever:
		return fmt.Errorf("sample: %w: early_stopping is none of true, false and never", ErrParams)
	case p.Mirostat.Version > 0 || p.FSD.on() || p.PutOff > 0:
		return fmt.Errorf("sample: %w: beams draw no tokens, so mirostat, fsd_alpha and eos_bypassing_max do not go with num_beams", ErrParams)
	case p.TopLogprobs > 0:
		return fmt.Errorf("sample: %w: top_logprobs does not go with num_beams: a search keeps the log-probabilities of its own tokens only (num_beams 1 makes none)", ErrParams)
	}
	return nil
}

// Search finds the likeliest answers with beams, as _beam_search of
// transformers 5.24 does (generation/utils.py, do_sample off): a score is the
// sum of log-probabilities after penalties, bias and rules, in float32; of all
// continuations of the running beams the best N that end nothing go on, and
// those of the best N that end an answer are finished, their scores divided by
// length^LengthPenalty; N finished answers are kept. Ties, whose order is open
// there, go to the lower beam, then the lower id.
//
// Each step, Score is called once for each running beam, in any order, then
// Advance. It keeps the text of each beam once and allocates no more than that
// grows. It is not safe for concurrent use.
type Search struct {
	b        Beams
	a        *Sampler // penalties, bias and rules
	prompt   int      // tokens of the prompt
	counted  int      // tokens of it that count as answer
	max      int      // tokens of prompt and answer
	end      map[int32]bool
	first    []int32 // the prompt
	running  []beam
	next     []beam
	finished []beam // the best first
	hopeful  bool   // a running beam may become better than a finished answer
	top      []continuation
	open     []continuation // those that end nothing
	steps    []Step
}

// beam is a text with its score.
type beam struct {
	said     []int32 // prompt and answer
	logprobs []float32
	score    float32
}

// continuation is a token after a beam.
type continuation struct {
	beam, id int32
	score    float32
	logprob  float32 // the model's own
}

// Step says how a running beam came about: by a token after one of those before.
type Step struct {
	Parent int
	ID     int32
}

// NewSearch starts a search for p.Beams.N answers to a prompt, of which the last
// counted tokens count as answer in the scores; most tokens follow at most, and
// one of end ends an answer. The error wraps ErrParams.
func NewSearch(p Params, vocab int, prompt []int32, counted, most int, end []int32) (*Search, error) {
	if !p.Beams.On() || most < 1 || counted < 0 || counted >= len(prompt) {
		return nil, fmt.Errorf("sample: %w: a search with %d beams for %d tokens after %d, of which %d count", ErrParams, p.Beams.N, most, len(prompt), counted)
	}
	a, err := NewSampler(p, vocab, prompt)
	if err != nil {
		return nil, err
	}
	n := p.Beams.N
	s := &Search{b: p.Beams, a: a, prompt: len(prompt), counted: counted, max: len(prompt) + most, end: make(map[int32]bool, len(end)),
		first: prompt, running: make([]beam, 0, n), next: make([]beam, 0, n), finished: make([]beam, 0, n+1), top: make([]continuation, 0, n), open: make([]continuation, 0, n)}
	for _, id := range end {
		s.end[id] = true
	}
	s.Reset()
	return s, nil
}

// Share makes the search use sc instead of memory of its own; see Sampler.Share.
func (s *Search) Share(sc *Scratch) { s.a.Share(sc) }

// Reset begins again.
func (s *Search) Reset() {
	s.running, s.finished = s.running[:0], s.finished[:0]
	s.add(&s.running, nil, s.first, 0)
	s.top, s.open, s.hopeful = s.top[:0], s.open[:0], true
}

// add appends a beam to a list, in memory that the list has had before.
func (s *Search) add(list *[]beam, logprobs []float32, said []int32, score float32) *beam {
	l := *list
	l = l[:len(l)+1]
	b := &l[len(l)-1]
	b.said, b.logprobs, b.score = append(b.said[:0], said...), append(b.logprobs[:0], logprobs...), score
	*list = l
	return b
}

// Running is the number of running beams; at first there is one.
func (s *Search) Running() int { return len(s.running) }

// Score takes the logits [vocab] of the token after running beam i; they are not
// changed. A NaN or +Inf is refused with a *NonFiniteError.
func (s *Search) Score(i int, logits []float32) error {
	a, b := s.a, &s.running[i]
	if len(logits) != a.vocab {
		return fmt.Errorf("sample: %d logits for a vocabulary of %d", len(logits), a.vocab)
	}
	top, bad := argmax(logits)
	if bad >= 0 {
		return &NonFiniteError{bad, logits[bad]}
	}
	if top < 0 {
		return fmt.Errorf("sample: %w: every logit is -Inf", ErrNoCandidate)
	}
	sc := a.memory()
	norm := sc.logSumExp(logits, logits[top])
	sc.logits = append(sc.logits[:0], logits...)
	for id, l := range sc.logits {
		sc.logits[id] = float32(float64(l) - norm)
	}
	a.said = b.said
	if a.history != nil {
		a.history.refill(b.said, s.prompt, a.vocab)
	}
	a.change(sc.logits)
	if a.p.Rules != nil && a.p.Rules.Renormalise {
		renormalise(sc)
	}
	for id, l := range sc.logits {
		if score := l + b.score; score >= s.floor() && score >= -math.MaxFloat32 {
			c := continuation{int32(i), int32(id), score, float32(float64(logits[id]) - norm)}
			s.top = insert(s.top, c)
			if !s.end[c.id] {
				s.open = insert(s.open, c)
			}
		}
	}
	return nil
}

func renormalise(sc *Scratch) {
	if top := argmaxAllowed(sc.logits, nil); top >= 0 {
		norm := sc.logSumExp(sc.logits, sc.logits[top])
		for id, l := range sc.logits {
			sc.logits[id] = float32(float64(l) - norm)
		}
	}
}

// floor is a score below which no continuation counts.
func (s *Search) floor() float32 {
	if n := len(s.open); n > 0 && n == cap(s.open) {
		return s.open[n-1].score // nothing that ends stands below it in the other list
	}
	return float32(math.Inf(-1))
}

// insert puts c in its place of a list of at most its capacity.
func insert(list []continuation, c continuation) []continuation {
	before := func(a, b *continuation) bool {
		if a.score != b.score {
			return a.score > b.score
		}
		return a.beam < b.beam || a.beam == b.beam && a.id < b.id
	}
	n := len(list)
	if n == cap(list) {
		if n--; !before(&c, &list[n]) {
			return list
		}
		list = list[:n]
	}
	list = append(list, c)
	for ; n > 0 && before(&c, &list[n-1]); n-- {
		list[n] = list[n-1]
	}
	list[n] = c
	return list
}

// Advance goes on to the next token. It returns how the beams came about that
// run now, in their order, or that the search is over. The steps belong to the
// Search and are overwritten by the next call.
func (s *Search) Advance() (steps []Step, over bool) {
	length := len(s.running[0].said) + 1
	last := length >= s.max
	for _, c := range s.top {
		if last || s.end[c.id] {
			s.finish(&c, length)
		}
	}
	s.next, s.steps = s.next[:0], s.steps[:0]
	for _, c := range s.open {
		from := &s.running[c.beam]
		s.extend(s.add(&s.next, from.logprobs, from.said, c.score), &c)
		s.steps = append(s.steps, Step{int(c.beam), c.id})
	}
	s.running, s.next = s.next, s.running
	s.top, s.open = s.top[:0], s.open[:0]
	if last || len(s.running) == 0 {
		return nil, true
	}
	full := len(s.finished) == s.b.N
	if full {
		s.hopeful = s.hopeful && s.best(length) > s.finished[s.b.N-1].score
	}
	return s.steps, !s.hopeful || full && s.b.Early == EarlyYes
}

func (s *Search) extend(b *beam, c *continuation) {
	b.said = append(b.said, c.id)
	if s.a.p.Logprobs {
		b.logprobs = append(b.logprobs, c.logprob)
	}
}

// best is what the best running beam may come to.
func (s *Search) best(length int) float32 {
	if s.b.Early == EarlyNever && s.b.LengthPenalty > 0 {
		length = s.max
	}
	return s.rated(s.running[0].score, length)
}

// rated is a sum of log-probabilities at a length of prompt and answer.
func (s *Search) rated(score float32, length int) float32 {
	return score / float32(math.Pow(float64(length-s.prompt+s.counted), s.b.LengthPenalty))
}

// finish keeps an answer that ends with c if it is among the best.
func (s *Search) finish(c *continuation, length int) {
	score, from := s.rated(c.score, length), &s.running[c.beam]
	if math.IsInf(float64(score), 0) || score != score {
		return
	}
	s.extend(s.add(&s.finished, from.logprobs, from.said, score), c)
	n := len(s.finished) - 1
	for ; n > 0 && score > s.finished[n-1].score; n-- {
		s.finished[n], s.finished[n-1] = s.finished[n-1], s.finished[n]
	}
	s.finished = s.finished[:min(len(s.finished), s.b.N)]
}

// Answer is what a search found.
type Answer struct {
	IDs      []int32
	Logprobs []float32 // the model's own, of each token; nil unless asked for
	Score    float32   // sum of log-probabilities over length^LengthPenalty
	Ended    bool      // by an end token
}

// Best is the answer of rank i, 0 the best; false where there are not so many,
// as penalties and rules may leave too few continuations. It belongs to the
// Search.
func (s *Search) Best(i int) (Answer, bool) {
	if i < 0 || i >= len(s.finished) {
		return Answer{}, false
	}
	b := &s.finished[i]
	ids := b.said[s.prompt:]
	a := Answer{IDs: ids, Score: b.score, Ended: s.end[ids[len(ids)-1]]}
	if s.a.p.Logprobs {
		a.Logprobs = b.logprobs
	}
	return a, true
}
