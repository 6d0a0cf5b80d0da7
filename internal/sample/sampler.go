package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrNonFinite is wrapped by a *NonFiniteError.
var ErrNonFinite = errors.New("logit is not finite")

// ErrNoCandidate says that the logits, the bias and the mask together allow no
// token at all.
var ErrNoCandidate = errors.New("no token is allowed")

// NonFiniteError names the first logit that is NaN or +Inf. The caller, who
// knows the model, can look for the layer where it arose.
type NonFiniteError struct {
	Index int     // token id
	Value float32 // NaN or +Inf
}

// Error implements error.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("sample: %v: token %d has %v", ErrNonFinite, e.Index, e.Value)
}

// Unwrap returns ErrNonFinite.
func (e *NonFiniteError) Unwrap() error { return ErrNonFinite }

// TokenLogprob is a token with its natural log-probability.
type TokenLogprob struct {
	ID      int32
	Logprob float32
}

// Result is a chosen token. The log-probabilities are those of the model's own
// distribution, the log-softmax of the logits before penalties, bias, mask and
// temperature, as OpenAI and vLLM give them; they are 0 and nil unless asked
// for.
type Result struct {
	ID      int32
	Logprob float32
	// Top lists the likeliest tokens, the likeliest first. It belongs to the
	// Sampler and is overwritten by the next call.
	Top []TokenLogprob
}

// Sampler chooses the tokens of one answer. It is not safe for concurrent use.
type Sampler struct {
	p       Params
	vocab   int
	bias    []TokenLogprob // id and bias, by id: a map's order would not repeat
	history *history       // nil without penalties
	said    []int32        // prompt and answer, where rules or FSD look at them
	answer  int            // tokens of the answer
	mu      float64        // the bound of the surprise, in bits
	putOff  int            // ends that were put off
	last    drawn
	scratch *Scratch
	top     []TokenLogprob
}

// drawn is what Accept must know of the token that Next chose last.
type drawn struct {
	id     int32
	bits   float64 // its surprise, with Mirostat
	putOff bool    // it stands in an end's place
}

// NewSampler returns a sampler for logits of vocab entries. The tokens of the
// prompt are counted for the penalties; ids outside the vocabulary are passed
// over, as no penalty can touch them. The prompt is not kept. The error wraps
// ErrParams.
func NewSampler(p Params, vocab int, prompt []int32) (*Sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if vocab < 1 || vocab > math.MaxInt32 {
		return nil, fmt.Errorf("sample: %w: a vocabulary of %d tokens", ErrParams, vocab)
	}
	s := &Sampler{p: p, vocab: vocab, mu: 2 * p.Mirostat.Tau, last: drawn{id: -1}}
	for id, b := range p.LogitBias {
		if int(id) >= vocab {
			return nil, fmt.Errorf("sample: %w: logit_bias: token id %d is outside the vocabulary of %d", ErrParams, id, vocab)
		}
		s.bias = append(s.bias, TokenLogprob{id, b})
	}
	slices.SortFunc(s.bias, func(a, b TokenLogprob) int { return int(a.ID) - int(b.ID) })
	s.p.LogitBias = nil
	s.p.Logprobs = p.Logprobs || p.TopLogprobs > 0
	if p.TopLogprobs > 0 {
		s.top = make([]TokenLogprob, 0, min(p.TopLogprobs, vocab))
	}
	if p.penalised() {
		s.history = newHistory(p.PenaltyWindow, prompt, vocab)
	}
	if s.remembers() {
		s.said = append(make([]int32, 0, len(prompt)+answerTokens), prompt...)
	}
	return s, nil
}

// answerTokens is the length of an answer that has its place from the first.
const answerTokens = 1024

// remembers says whether the text so far is kept.
func (s *Sampler) remembers() bool { return s.p.Rules != nil || s.p.FSD.on() }

// Share makes the sampler use sc instead of memory of its own. Next may not be
// called at the same time on two samplers that share.
func (s *Sampler) Share(sc *Scratch) { s.scratch = sc }

// Fork returns a sampler with the same parameters and history, for another
// continuation of the same tokens. It shares the scratch memory if there is any.
func (s *Sampler) Fork() *Sampler {
	f := *s
	if s.history != nil {
		f.history = s.history.clone()
	}
	f.said = slices.Clone(s.said)
	f.top = make([]TokenLogprob, 0, cap(s.top))
	return &f
}

// Accept adds a token to the answer; with Mirostat and PutOff it is the one that
// Next gave last. Next does not: a token drawn to check a
// draft, or beside another choice, may never become part of the answer.
func (s *Sampler) Accept(id int32) {
	s.answer++
	if s.remembers() {
		s.said = append(s.said, id)
	}
	if id == s.last.id {
		if s.p.Mirostat.Version > 0 {
			s.observe(s.last.bits)
		}
		if s.last.putOff {
			s.putOff++
		}
		s.last.id = -1
	}
	if s.history != nil {
		s.history.add(id, true, s.vocab)
	}
}

// Next chooses a token. logits [vocab] is the model's row, which is not
// changed; position and choice key the draw (see Uniform); allowed, if it is
// not nil, holds the tokens that a grammar permits here.
//
// A NaN or +Inf is refused with a *NonFiniteError even where the mask hides it;
// -Inf means a token that the model excludes. If nothing is left to choose from
// the error wraps ErrNoCandidate.
func (s *Sampler) Next(logits []float32, position, choice int, allowed Mask) (Result, error) {
	if len(logits) != s.vocab {
		return Result{}, fmt.Errorf("sample: %d logits for a vocabulary of %d", len(logits), s.vocab)
	}
	if allowed != nil && len(allowed)*64 < s.vocab {
		return Result{}, fmt.Errorf("sample: a mask of %d bits for a vocabulary of %d", len(allowed)*64, s.vocab)
	}
	top, bad := argmax(logits)
	if bad >= 0 {
		return Result{}, &NonFiniteError{bad, logits[bad]}
	}
	if top < 0 {
		return Result{}, fmt.Errorf("sample: %w: every logit is -Inf", ErrNoCandidate)
	}
	id, err := s.choose(logits, top, position, choice, allowed)
	if err != nil {
		return Result{}, err
	}
	r := Result{ID: id}
	if s.p.Logprobs {
		norm := s.memory().logSumExp(logits, logits[top])
		r.Logprob = float32(float64(logits[id]) - norm)
		r.Top = s.likeliest(logits, norm)
	}
	return r, nil
}

// choose applies the chain; top is the index of the largest raw logit.
func (s *Sampler) choose(raw []float32, top int32, position, choice int, allowed Mask) (int32, error) {
	logits := s.adjust(raw)
	if &logits[0] != &raw[0] || !allowed.Allowed(top) {
		top = argmaxAllowed(logits, allowed)
	}
	if top < 0 {
		return 0, noCandidate(allowed)
	}
	s.last = drawn{id: top}
	var c []cand // what the token was chosen from; nil: all
	if s.p.Temperature != 0 {
		c = s.pick(logits, top, position, choice, allowed)
	}
	if s.putOff < s.p.PutOff && slices.Contains(s.p.End, s.last.id) {
		s.likeliestOther(c, logits, allowed)
	}
	return s.last.id, nil
}

// pick chooses by the strategy and leaves the token in s.last. It returns the
// candidates that it chose from, nil for all tokens.
func (s *Sampler) pick(logits []float32, top int32, position, choice int, allowed Mask) (c []cand) {
	sc, temperature := s.memory(), s.p.Temperature
	if s.p.Pool > 0 {
		logits, temperature = s.heat(logits, logits[top]), 1
	}
	u, coin := uniforms(s.p.Seed, choice, position)
	total := 0.0
	switch {
	case s.p.FSD.on() && (s.answer >= s.p.FSD.Random || coin >= 0.5):
		c, s.last.id = s.contrast(logits, allowed, logits[top], temperature)
		return c
	case s.p.Mirostat.Version > 0:
		c, total = s.mirostat(logits, allowed, logits[top], temperature)
		s.last.id = draw(c, u*total)
		s.last.bits = surprise(c, s.last.id, total)
		return c
	case !s.p.filtered():
		s.last.id = sc.drawAll(logits, allowed, top, temperature, u)
		return nil
	}
	c = sc.filter(logits, allowed, logits[top], &s.p)
	total = weigh(c, logits, largest(c, logits), temperature)
	s.last.id = draw(c, u*total)
	return c
}

// heat returns the distances of the logits from the largest, divided by the temperature.
func (s *Sampler) heat(logits []float32, best float32) []float32 {
	sc, scale := s.memory(), inverse(s.p.Temperature)
	if s.p.Temperature == 1 {
		return logits
	}
	if len(sc.logits) != len(logits) || &sc.logits[0] != &logits[0] {
		sc.logits = append(sc.logits[:0], logits...)
	}
	for i, l := range sc.logits {
		sc.logits[i] = clamp((float64(l) - float64(best)) * scale)
	}
	return sc.logits
}

// likeliestOther puts the likeliest candidate that ends nothing in the place of
// an end, if there is one.
func (s *Sampler) likeliestOther(c []cand, logits []float32, allowed Mask) {
	best, id := math.Inf(-1), int32(-1)
	if c == nil {
		for i, l := range logits {
			if float64(l) > best && allowed.Allowed(int32(i)) && !slices.Contains(s.p.End, int32(i)) {
				best, id = float64(l), int32(i)
			}
		}
	}
	whole := math.Inf(1)
	for _, x := range c {
		if x.w > best && !slices.Contains(s.p.End, x.id) {
			best, id = x.w, x.id
		}
		if x.id == s.last.id {
			whole = x.w * math.Exp2(s.last.bits)
		}
	}
	if id >= 0 {
		s.last = drawn{id: id, bits: -math.Log2(best / whole), putOff: true}
	}
}

func noCandidate(allowed Mask) error {
	by := "logits and bias"
	if allowed != nil {
		by = "logits, bias and grammar mask"
	}
	return fmt.Errorf("sample: %w by %s together", ErrNoCandidate, by)
}

func (s *Sampler) memory() *Scratch {
	if s.scratch == nil {
		s.scratch = new(Scratch)
	}
	return s.scratch
}

// adjust returns the logits with penalties and bias: the same slice if there
// are none, else a copy in the scratch memory.
func (s *Sampler) adjust(raw []float32) []float32 {
	if len(s.bias) == 0 && s.p.Rules == nil && (s.history == nil || len(s.history.entries) == 0) {
		return raw
	}
	sc := s.memory()
	sc.logits = append(sc.logits[:0], raw...)
	s.change(sc.logits)
	return sc.logits
}

// change applies penalties, bias and rules in place.
func (s *Sampler) change(logits []float32) {
	if s.p.Rules != nil {
		s.p.Rules.before(logits, s.said)
	}
	if s.history != nil {
		s.history.penalise(logits, &s.p)
	}
	for _, b := range s.bias {
		logits[b.ID] = clamp(float64(logits[b.ID]) + float64(b.Logprob))
	}
	if s.p.Rules != nil {
		s.p.Rules.apply(logits, s.said)
	}
}

// argmax returns the first index of the largest logit (-1 if all are -Inf) and
// the first index of a logit that is NaN or +Inf (-1 if there is none).
func argmax(logits []float32) (top int32, bad int) {
	top = -1
	best := float32(math.Inf(-1))
	for i, l := range logits {
		if l <= best {
			continue
		}
		if !(l <= math.MaxFloat32) {
			return top, i
		}
		best, top = l, int32(i)
	}
	return top, -1
}

func argmaxAllowed(logits []float32, allowed Mask) int32 {
	top, best := int32(-1), float32(math.Inf(-1))
	for i, l := range logits {
		if l > best && allowed.Allowed(int32(i)) {
			best, top = l, int32(i)
		}
	}
	return top
}

// likeliest lists the tokens with the largest raw logits, ties by lower id.
func (s *Sampler) likeliest(logits []float32, norm float64) []TokenLogprob {
	n := cap(s.top)
	if n == 0 {
		return nil
	}
	top := s.top[:0]
	for i, l := range logits {
		if len(top) == n {
			if l <= top[n-1].Logprob {
				continue
			}
			top = top[:n-1]
		}
		j := len(top)
		top = append(top, TokenLogprob{})
		for ; j > 0 && top[j-1].Logprob < l; j-- {
			top[j] = top[j-1]
		}
		top[j] = TokenLogprob{int32(i), l}
	}
	for i := range top {
		top[i].Logprob = float32(float64(top[i].Logprob) - norm)
	}
	return top
}
