// Package complete joins text and tokens: it turns messages or text into
// prompts of ids, gives them to the engine and turns its events back into
// text, stop strings included. It must never import devices or servers. Read
// Service first.
package complete

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tokenizer"
)

// Errors that callers tell apart.
var (
	ErrNoTokenizer = errors.New("the model's files hold no tokenizer")
	ErrNoTemplate  = errors.New("the model's files hold no chat template")
	ErrTemplate    = errors.New("the chat template refused the conversation")
	ErrReads       = errors.New("the model reads texts and writes none")
	ErrTooLong     = errors.New("the text is longer than the context holds")
)

// Service answers text requests with one loaded model. It is safe for
// concurrent use.
type Service struct {
	Model       *model.Model
	Engine      *engine.Engine
	Tok         *tokenizer.Tokenizer
	Template    *chat.Template // nil where the model has none
	Created     time.Time
	badTemplate error
	Notes       []string // what a user should know of the model's own settings

	frame    Frame   // nil: the tokenizer's own way
	begin    []int32 // of an encoder-decoder's answers; nil: the model's own
	defaults sample.Params
	set      bool       // the defaults are not the model's own
	longest  func() int // bytes of the longest token, found once
	tags     sync.Map   // forms of tokens → whether the vocabulary has one; see holds
}

// New starts an engine on a loaded model and parses its chat template.
func New(m *model.Model, queue int) (*Service, error) {
	if m.Tokenizer == nil {
		if m.TokenizerErr != nil && !errors.Is(m.TokenizerErr, tokenizer.ErrNoTokenizer) {
			return nil, fmt.Errorf("complete: %s: %w", m.Path, m.TokenizerErr)
		}
		return nil, fmt.Errorf("complete: %s: %w: %s; logits, bench and explain work without", m.Name, ErrNoTokenizer, m.TokenizerHint())
	}
	if m.Whole() {
		return nil, fmt.Errorf("complete: %s: %w", m.Name, ErrReads)
	}
	s := &Service{Model: m, Tok: m.Tokenizer, Created: time.Now()}
	s.longest = sync.OnceValue(s.longestToken)
	if m.Template != "" {
		if s.Template, s.badTemplate = chat.Parse(m.Template, roles(m.Traced.Chat)); s.badTemplate != nil {
			s.Notes = append(s.Notes, fmt.Sprintf("conversations are refused, for the model's chat template cannot be read: %v", s.badTemplate))
		}
	}
	s.settle()
	s.Engine = engine.New(m, engine.Options{Queue: queue, Blocks: m.Limits.Blocks,
		Limits: sched.Limits{Rows: m.Limits.Rows, Seqs: m.Limits.Seqs, Tokens: m.Limits.Tokens, States: m.Limits.States, Source: m.Limits.Source}})
	return s, nil
}

// roles are the options of a template as the specification has them; what it
// leaves open is found by trial renderings.
func roles(c spec.Chat) chat.Options {
	o := chat.Options{LateSystem: chat.LateSystemAuto, SystemInUser: c.System == "user", SystemAuto: c.System == ""}
	switch c.Developer {
	case "system", "user":
		o.DeveloperRole = c.Developer
	case "":
		o.DeveloperAuto = true
	}
	switch c.LateSystem {
	case "keep":
		o.LateSystem = chat.LateSystemKeep
	case "merge":
		o.LateSystem = chat.LateSystemMerge
	case "user":
		o.LateSystem = chat.LateSystemUser
	}
	return o
}

// Converses says whether the model takes conversations: it has a chat
// template, even if one that cannot be read.
func (s *Service) Converses() bool { return s.Template != nil || s.badTemplate != nil }

// TemplateError says why the model's chat template cannot be read, nil if it can
// or there is none.
func (s *Service) TemplateError() error { return s.badTemplate }

// Close ends all requests and closes the model.
func (s *Service) Close() error {
	s.Engine.Close()
	return s.Model.Close()
}

// Defaults are the sampling parameters where a request names none: those of
// the model's Generation.
func (s *Service) Defaults() sample.Params { return s.defaults }

// SetDefaults replaces the sampling parameters where a request names none. It
// must come before the first request. The error wraps sample.ErrParams.
func (s *Service) SetDefaults(p sample.Params) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	s.defaults, s.set = p, true
	return nil
}

// settle takes the model's own sampling values, but those that make no sense.
func (s *Service) settle() {
	g := s.Model.Generation
	s.defaults = sample.Defaults()
	try := func(set func(p *sample.Params)) {
		p := s.defaults
		set(&p)
		if err := p.Validate(); err != nil {
			s.Notes = append(s.Notes, fmt.Sprintf("a value of the model's generation settings is passed over: %v", err))
			return
		}
		s.defaults = p
	}
	number := func(v *float64, field func(p *sample.Params) *float64) {
		if v != nil {
			try(func(p *sample.Params) { *field(p) = *v })
		}
	}
	number(g.Temperature, func(p *sample.Params) *float64 { return &p.Temperature })
	number(g.TopP, func(p *sample.Params) *float64 { return &p.TopP })
	number(g.MinP, func(p *sample.Params) *float64 { return &p.MinP })
	number(g.TypicalP, func(p *sample.Params) *float64 { return &p.TypicalP })
	number(g.RepetitionPenalty, func(p *sample.Params) *float64 { return &p.RepetitionPenalty })
	if g.TopK != nil {
		try(func(p *sample.Params) { p.TopK = *g.TopK })
	}
	if g.Greedy {
		s.defaults.Temperature = 0
	}
	s.settleSearch(&s.Model.Generation.Decoding)
}

// Text encodes a plain prompt, with the tokens that the tokenizer puts before
// every text, or the source of an encoder-decoder. Special tokens inside the
// text count only when parse is set. The errors are those of the tokenizer's TryEncode.
func (s *Service) Text(text string, parse bool) ([]int32, error) {
	if s.frame != nil {
		return s.frame("", text)
	}
	if s.Encodes() {
		return s.source(text, parse)
	}
	ids, err := s.Tok.TryEncode(text, tokenizer.Options{ParseSpecial: parse})
	if err != nil {
		return nil, fmt.Errorf("complete: %w", err)
	}
	return s.prefixed(ids), nil
}

// prefixed puts the tokenizer's first tokens before ids, unless they begin with them.
func (s *Service) prefixed(ids []int32) []int32 {
	pre := s.Tok.Prefix()
	if len(pre) == 0 || len(ids) >= len(pre) && equal(ids[:len(pre)], pre) {
		return ids
	}
	return append(append([]int32{}, pre...), ids...)
}

func equal(a, b []int32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Chat renders a conversation with the model's template and encodes it. What
// came from the conversation is never parsed for special tokens.
func (s *Service) Chat(in chat.Input) ([]int32, error) {
	return s.ChatWithin(context.Background(), 0, in)
}

// ChatWithin is Chat, where the template has at most so many steps (0: its
// default) and ends with ctx. What can never fit the context is ErrTooLong
// before it costs anything.
func (s *Service) ChatWithin(ctx context.Context, steps int, in chat.Input) ([]int32, error) {
	if s.badTemplate != nil {
		return nil, fmt.Errorf("complete: %s: %w: %w; a plain completion (--raw) is possible", s.Model.Name, ErrTemplate, s.badTemplate)
	}
	if s.Template == nil && s.Encodes() {
		system, text, err := said(in)
		if err == nil {
			err = s.fits(len(system)+len(text), 0)
		}
		if err != nil {
			return nil, err
		}
		if s.frame != nil {
			return s.frame(strings.TrimSuffix(system, "\n"), text)
		}
		return s.Text(system+text, false)
	}
	if s.Template == nil {
		return nil, fmt.Errorf("complete: %s: %w; use a plain completion (--raw)", s.Model.Name, ErrNoTemplate)
	}
	if err := s.fits(content(in), 0); err != nil {
		return nil, err
	}
	if err := s.fits(baggage(in), 1<<20); err != nil {
		return nil, err
	}
	in.BOS, in.EOS = s.special("bos"), s.special("eos")
	pieces, err := s.Template.RenderWithin(ctx, steps, in)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		note := ""
		if chat.WantsTools(s.Model.Template, in, err) {
			note = "; the template cannot do without tools, which are not served yet"
		}
		return nil, fmt.Errorf("complete: %w: %w%s", ErrTemplate, err, note)
	}
	n := 0
	parts := make([]tokenizer.Piece, len(pieces))
	for i, p := range pieces {
		parts[i] = tokenizer.Piece{Text: p.Text, Special: !p.User}
		n += len(p.Text)
	}
	if err := s.fits(n, 0); err != nil {
		return nil, err
	}
	ids, err := s.Tok.TryEncodePieces(parts, false)
	if err != nil {
		return nil, fmt.Errorf("complete: %w", err)
	}
	if s.Encodes() {
		return s.around(s.Tok.Prefix(), ids, s.Tok.Suffix()), nil
	}
	return s.prefixed(ids), nil
}

func (s *Service) special(role string) string {
	if id, ok := s.Tok.Named(role); ok {
		return s.Tok.Text(id)
	}
	return ""
}

// Params asks for answers.
type Params struct {
	Sample         sample.Params
	Max            int      // tokens at most; 0: what the context holds
	Stop           []string // strings that end an answer
	StopTokens     []int32  // further token ids that end an answer
	IncludeStop    bool     // keep the stop string in the text
	IgnoreEnd      bool     // go on past the model's end tokens
	N              int
	PromptLogprobs bool
	ShowSpecial    bool // special tokens appear in the text

	Search Search
	Draws  bool // the request says how tokens are drawn, so a search that the model's files ask for is not made

	decoding *model.Decoding // of a task; nil: the model's own
	begin    []int32         // the tokens that an encoder-decoder's answer begins with; nil: the model's own
	counted  int             // the last of them, that transformers counts as answer
}

// request is what the engine gets for a prompt of ids, or the source of an
// encoder-decoder; it fills in what the model's files say.
func (s *Service) request(ids []int32, p *Params) (r engine.Request, err error) {
	r = engine.Request{Prompt: ids, Params: p.Sample, Max: p.Max, N: p.N, PromptLogprobs: p.PromptLogprobs, End: p.StopTokens}
	if !p.IgnoreEnd {
		r.End = append(append([]int32{}, p.StopTokens...), s.Model.Generation.EndTokens...)
	}
	if p.Sample.PutOff > 0 {
		r.Params.End = r.End
	}
	if p.decoding == nil {
		p.decoding = &s.Model.Generation.Decoding
	}
	if s.Encodes() {
		s.decode(p)
		r.Source, r.Prompt, r.Max, r.Counted = ids, p.begin, p.Max, p.counted
	}
	r.Params, err = s.searched(r.Params, p)
	r.Params.Rules = s.rules(ids, len(r.Prompt), p, s.Model.Generation.EndTokens)
	return r, err
}

// Start submits a prompt of ids, or the source of an encoder-decoder. The text
// of a search with beams comes at its end.
func (s *Service) Start(ctx context.Context, ids []int32, p Params) (*Run, error) {
	r, err := s.request(ids, &p)
	if err != nil {
		return nil, err
	}
	run := &Run{s: s, p: p, searched: r.Params.Beams.On()}
	for i := 0; i < max(1, p.N); i++ {
		st, err := sample.NewStopper(p.Stop, nil, p.IncludeStop)
		if err != nil {
			return nil, fmt.Errorf("complete: %w", err)
		}
		dec := s.Tok.ContinueDecoder
		if s.Encodes() {
			dec = s.Tok.NewDecoder // the answer is a text of its own
		}
		run.choices = append(run.choices, choice{stop: st, dec: dec(!p.ShowSpecial)})
	}
	run.ctx, run.cancel = context.WithCancel(ctx)
	if run.stream, err = s.Engine.Submit(run.ctx, r); err != nil {
		run.cancel()
		return nil, err
	}
	return run, nil
}
