package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/inferflow/inferflow/internal/complete"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	common
	Prompt   json.RawMessage `json:"prompt"`
	Logprobs *int            `json:"logprobs"`
	Echo     bool            `json:"echo"`
	BestOf   *int            `json:"best_of"`
	Suffix   *string         `json:"suffix"`
}

// maxPrompts bounds the prompts of one request.
const maxPrompts = 256

// prompts reads a string, a list of strings, ids or a list of ids.
func (v *Server) prompts(raw json.RawMessage) ([][]int32, error) {
	var text string
	var texts []string
	var ids []int32
	var many [][]int32
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, badRequest("prompt", "prompt: a text or token ids are required")
	case json.Unmarshal(raw, &text) == nil:
		return [][]int32{v.s.Text(text, true)}, nil
	case json.Unmarshal(raw, &texts) == nil:
		for _, t := range texts {
			many = append(many, v.s.Text(t, true))
		}
	case json.Unmarshal(raw, &ids) == nil:
		many = [][]int32{ids}
	case json.Unmarshal(raw, &many) == nil:
	default:
		return nil, badRequest("prompt", "prompt: a string, a list of strings, a list of ids or a list of lists of ids is expected")
	}
	if len(many) == 0 || len(many) > maxPrompts {
		return nil, badRequest("prompt", "prompt: %d prompts; 1 to %d are possible", len(many), maxPrompts)
	}
	return many, nil
}

func (v *Server) completions(w http.ResponseWriter, r *http.Request) error {
	var q completionRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	p, err := v.params(&q.common, q.MaxTokens)
	if err != nil {
		return err
	}
	if q.MaxTokens == nil {
		p.Max = 16 // the API's default
	}
	if err := q.check(&p); err != nil {
		return err
	}
	prompts, err := v.prompts(q.Prompt)
	if err != nil {
		return err
	}
	a := &completion{v: v, q: &q, p: p, id: v.newID("cmpl-"), created: time.Now().Unix()}
	for _, ids := range prompts {
		if err := v.fits(ids); err != nil {
			return err
		}
		a.n += len(ids)
	}
	for _, ids := range prompts {
		run, err := v.s.Start(r.Context(), ids, p)
		if err != nil {
			return err
		}
		defer run.Cancel()
		a.runs, a.prompts = append(a.runs, run), append(a.prompts, ids)
	}
	if q.Stream {
		a.stream(w)
		return nil
	}
	return a.whole(w)
}

func (q *completionRequest) check(p *complete.Params) error {
	switch {
	case q.Suffix != nil && *q.Suffix != "":
		return badRequest("suffix", "suffix: text after the answer is not served")
	case q.BestOf != nil && *q.BestOf != p.N:
		return badRequest("best_of", "best_of: only the value of n (%d) is served", p.N)
	case q.Logprobs != nil && (*q.Logprobs < 0 || *q.Logprobs > 20):
		return badRequest("logprobs", "logprobs: %d is outside 0 to 20", *q.Logprobs)
	}
	if q.Logprobs != nil {
		p.Sample.Logprobs, p.Sample.TopLogprobs = true, *q.Logprobs
		p.PromptLogprobs = q.Echo
	}
	return nil
}

type completion struct {
	v       *Server
	q       *completionRequest
	p       complete.Params
	runs    []*complete.Run
	prompts [][]int32
	n       int
	id      string
	created int64
}

// textLogprobs is the completions API's form of log-probabilities.
type textLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Values  []*float64           `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
	at      int
}

type textChoice struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	Logprobs *textLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

func (l *textLogprobs) add(v *Server, c complete.Chunk, known bool) {
	text := string(v.s.Tok.TokenBytes(c.ID))
	l.Tokens, l.Offsets = append(l.Tokens, text), append(l.Offsets, l.at)
	l.at += len([]rune(text))
	if !known {
		l.Values, l.Top = append(l.Values, nil), append(l.Top, nil)
		return
	}
	x := finite(c.Logprob)
	top := map[string]float64{}
	for _, t := range c.Top {
		top[string(v.s.Tok.TokenBytes(t.ID))] = finite(t.Logprob)
	}
	l.Values, l.Top = append(l.Values, &x), append(l.Top, top)
}

func (a *completion) whole(w http.ResponseWriter) error {
	choices := make([]textChoice, len(a.runs)*a.p.N)
	tokens := 0
	for k, run := range a.runs {
		n, err := a.collect(run, k, choices[k*a.p.N:(k+1)*a.p.N])
		if err != nil {
			return err
		}
		tokens += n
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": a.id, "object": "text_completion", "created": a.created, "model": a.q.Model,
		"choices": choices, "usage": usageOf(a.n, tokens), "system_fingerprint": a.v.fingerprint()})
	return nil
}

// collect reads one prompt's answers.
func (a *completion) collect(run *complete.Run, k int, out []textChoice) (int, error) {
	texts := make([]strings.Builder, len(out))
	echo := &textLogprobs{}
	for i := range out {
		out[i].Index = k*a.p.N + i
		if a.q.Echo {
			texts[i].WriteString(a.v.s.Tok.Decode(a.prompts[k], true))
		}
	}
	if a.q.Echo && a.q.Logprobs != nil {
		echo.add(a.v, complete.Chunk{ID: a.prompts[k][0]}, false)
	}
	n, err := a.v.each(run, func(c complete.Chunk) error {
		ch := &out[c.Choice]
		switch {
		case c.Prompt:
			echo.add(a.v, c, true)
			return nil
		case a.q.Logprobs != nil && ch.Logprobs == nil:
			l := *echo
			ch.Logprobs = &l
		}
		texts[c.Choice].WriteString(c.Text)
		if a.q.Logprobs != nil && c.Finish != "stop" {
			ch.Logprobs.add(a.v, c, true)
		}
		if c.Last {
			reason := string(c.Finish)
			ch.Finish = &reason
		}
		return nil
	})
	for i := range out {
		out[i].Text = texts[i].String()
	}
	return n, err
}

func (a *completion) chunk(choices []textChoice) map[string]any {
	return map[string]any{"id": a.id, "object": "text_completion", "created": a.created, "model": a.q.Model,
		"choices": choices, "system_fingerprint": a.v.fingerprint()}
}

func (a *completion) stream(w http.ResponseWriter) {
	out := newSSE(w, a.v.o.KeepAlive)
	defer out.close()
	tokens := 0
	for k, run := range a.runs {
		n, err := a.streamRun(out, run, k)
		tokens += n
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				out.fail(err)
			}
			return
		}
	}
	if a.q.StreamOptions != nil && a.q.StreamOptions.IncludeUsage {
		u := a.chunk([]textChoice{})
		u["usage"] = usageOf(a.n, tokens)
		_ = out.send(u)
	}
	_ = out.send("[DONE]")
}

func (a *completion) streamRun(out *sse, run *complete.Run, k int) (int, error) {
	if a.q.Echo {
		for i := 0; i < a.p.N; i++ {
			c := textChoice{Index: k*a.p.N + i, Text: a.v.s.Tok.Decode(a.prompts[k], true)}
			if err := out.send(a.chunk([]textChoice{c})); err != nil {
				return 0, err
			}
		}
	}
	at := make([]int, a.p.N)
	return a.v.each(run, func(c complete.Chunk) error {
		if c.Prompt {
			return nil
		}
		ch := textChoice{Index: k*a.p.N + c.Choice, Text: c.Text}
		if a.q.Logprobs != nil && c.Finish != "stop" {
			ch.Logprobs = &textLogprobs{at: at[c.Choice]}
			ch.Logprobs.add(a.v, c, true)
			at[c.Choice] = ch.Logprobs.at
		}
		if c.Last {
			reason := string(c.Finish)
			ch.Finish = &reason
		}
		if ch.Text == "" && ch.Logprobs == nil && ch.Finish == nil {
			return nil
		}
		return out.send(a.chunk([]textChoice{ch}))
	})
}
