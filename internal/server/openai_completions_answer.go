package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inferflow/inferflow/internal/complete"
)

// completion is one request to /v1/completions under way.
type completion struct {
	v       *Server
	q       *completionRequest
	p       complete.Params
	runs    []*complete.Run
	prompts []prompt
	silent  bool // the answer is not told
	n       int  // prompt tokens
	id      string
	created int64
}

// textLogprobs is the completions API's form of log-probabilities.
type textLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Values  []*float64           `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"` // in characters
	at      int
}

type textChoice struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	Logprobs *textLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

func newTextLogprobs(at int) *textLogprobs {
	return &textLogprobs{Tokens: []string{}, Values: []*float64{}, Top: []map[string]float64{}, Offsets: []int{}, at: at}
}

// clone copies the lists, so that several answers can go on from one prompt.
func (l *textLogprobs) clone() *textLogprobs {
	return &textLogprobs{slices.Clone(l.Tokens), slices.Clone(l.Values), slices.Clone(l.Top), slices.Clone(l.Offsets), l.at}
}

// spell writes a token; bytes that are no text are written as OpenAI does.
func (v *Server) spell(id int32) string {
	raw := v.s.Tok.TokenBytes(id)
	if utf8.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, x := range raw {
		fmt.Fprintf(&b, "\\x%02x", x)
	}
	return b.String()
}

// add appends a token. The first of a prompt has no probability (known is
// false), and one that stands for no text (hidden) does not move the offset.
func (l *textLogprobs) add(v *Server, c complete.Chunk, known, hidden bool) {
	text := v.spell(c.ID)
	l.Tokens, l.Offsets = append(l.Tokens, text), append(l.Offsets, l.at)
	if !hidden {
		// Bytes that begin a rune count for it, the others for nothing.
		for _, b := range v.s.Tok.TokenBytes(c.ID) {
			if utf8.RuneStart(b) {
				l.at++
			}
		}
	}
	if !known {
		l.Values, l.Top = append(l.Values, nil), append(l.Top, nil)
		return
	}
	x := finite(c.Logprob)
	top := map[string]float64{text: x}
	for _, t := range c.Top {
		top[v.spell(t.ID)] = finite(t.Logprob)
	}
	l.Values, l.Top = append(l.Values, &x), append(l.Top, top)
}

// echo is what stands before the answers to prompt k: nil, or the prompt.
type echo struct {
	prompt prompt
	log    *textLogprobs // nil unless asked for
	n      int
}

func (a *completion) echo(k int) *echo {
	if !a.q.Echo {
		return nil
	}
	e := &echo{prompt: a.prompts[k]}
	if a.q.Logprobs != nil {
		e.log = newTextLogprobs(0)
		e.add(a.v, complete.Chunk{ID: e.prompt.ids[0]}, false)
	}
	return e
}

func (e *echo) add(v *Server, c complete.Chunk, known bool) {
	e.log.add(v, c, known, e.n < e.prompt.lead)
	e.n++
}

func (a *completion) whole(w http.ResponseWriter) error {
	choices := make([]textChoice, len(a.runs)*a.p.N)
	tokens := 0
	for k := range a.runs {
		n, err := a.collect(k, choices[k*a.p.N:(k+1)*a.p.N])
		if err != nil {
			return err
		}
		tokens += n
	}
	if a.silent {
		tokens = 0
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": a.id, "object": "text_completion", "created": a.created, "model": a.q.Model,
		"choices": choices, "usage": usageOf(a.n, tokens), "system_fingerprint": a.v.fingerprint()})
	return nil
}

// collect reads the answers to prompt k.
func (a *completion) collect(k int, out []textChoice) (int, error) {
	texts := make([]strings.Builder, len(out))
	e := a.echo(k)
	for i := range out {
		out[i].Index = k*a.p.N + i
		if e != nil {
			texts[i].WriteString(e.prompt.text)
		}
	}
	n, err := a.v.each(a.runs[k], func(c complete.Chunk) error {
		if c.Prompt {
			e.add(a.v, c, true)
			return nil
		}
		ch := &out[c.Choice]
		if a.q.Logprobs != nil && ch.Logprobs == nil {
			if ch.Logprobs = newTextLogprobs(0); e != nil {
				ch.Logprobs = e.log.clone()
			}
		}
		if !a.silent {
			texts[c.Choice].WriteString(c.Text)
			if a.q.Logprobs != nil && spoken(c) {
				ch.Logprobs.add(a.v, c, true, false)
			}
		}
		if c.Last {
			ch.Finish = a.reason(c)
		}
		return nil
	})
	for i := range out {
		out[i].Text = texts[i].String()
	}
	return n, err
}

func (a *completion) reason(c complete.Chunk) *string {
	reason := string(c.Finish)
	if a.silent {
		reason = "length"
	}
	return &reason
}

func (a *completion) chunk(choices ...textChoice) map[string]any {
	if choices == nil {
		choices = []textChoice{}
	}
	c := map[string]any{"id": a.id, "object": "text_completion", "created": a.created, "model": a.q.Model,
		"choices": choices, "system_fingerprint": a.v.fingerprint()}
	if a.q.wantsUsage() {
		c["usage"] = noUsage
	}
	return c
}

func (a *completion) stream(w http.ResponseWriter) error {
	out := newSSE(w, a.v.o.KeepAlive, a.v.o.Stall)
	defer out.close()
	tokens := 0
	for k := range a.runs {
		n, err := a.streamRun(out, k)
		tokens += n
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				out.fail(err)
			}
			return err
		}
	}
	if a.silent {
		tokens = 0
	}
	if a.q.wantsUsage() {
		u := a.chunk()
		u["usage"] = usageOf(a.n, tokens)
		_ = out.send(u)
	}
	return out.send("[DONE]")
}

// streamRun sends the answers to prompt k, after the prompt where it is echoed.
func (a *completion) streamRun(out *sse, k int) (int, error) {
	e, at := a.echo(k), make([]int, a.p.N)
	told := e == nil
	tell := func() error {
		for i := 0; i < a.p.N && !told; i++ {
			if err := out.send(a.chunk(textChoice{Index: k*a.p.N + i, Text: e.prompt.text, Logprobs: e.log})); err != nil {
				return err
			}
			if e.log != nil {
				at[i] = e.log.at
			}
		}
		told = true
		return nil
	}
	return a.v.each(a.runs[k], func(c complete.Chunk) error {
		if c.Prompt {
			e.add(a.v, c, true)
			return nil
		}
		if err := tell(); err != nil {
			return err
		}
		ch := textChoice{Index: k*a.p.N + c.Choice}
		if !a.silent {
			ch.Text = c.Text
			if a.q.Logprobs != nil && spoken(c) {
				ch.Logprobs = newTextLogprobs(at[c.Choice])
				ch.Logprobs.add(a.v, c, true, false)
				at[c.Choice] = ch.Logprobs.at
			}
		}
		if c.Last {
			ch.Finish = a.reason(c)
		}
		if ch.Text == "" && ch.Logprobs == nil && ch.Finish == nil {
			return nil
		}
		return out.send(a.chunk(ch))
	})
}
