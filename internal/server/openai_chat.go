package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	common
	Messages      []chat.Message  `json:"messages"`
	MaxCompletion *int            `json:"max_completion_tokens"`
	Logprobs      bool            `json:"logprobs"`
	TopLogprobs   *int            `json:"top_logprobs"`
	Tools         []chat.Tool     `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	TemplateArgs  map[string]any  `json:"chat_template_kwargs"`
	Effort        *string         `json:"reasoning_effort"`
	Continue      *bool           `json:"continue_final_message"`
	Generation    *bool           `json:"add_generation_prompt"`
	Modalities    []string        `json:"modalities"`
}

// maxMessages bounds a conversation, and templateSteps what its template may do:
// about a second's work.
const (
	maxMessages   = 16384
	templateSteps = 4_000_000
)

var roles = map[string]bool{"system": true, "developer": true, "user": true, "assistant": true, "tool": true}

func (q *chatRequest) check() error {
	if len(q.Messages) == 0 {
		return badRequest("messages", "messages: at least one message is required")
	}
	if n := len(q.Messages); n > maxMessages {
		return badRequest("messages", "messages: %d messages are more than %d", n, maxMessages)
	}
	for i := range q.Messages {
		if err := checkMessage(&q.Messages[i], i); err != nil {
			return err
		}
	}
	if choice := strings.Trim(string(q.ToolChoice), `"`); len(q.Tools) > 0 && choice != "none" {
		return badRequest("tools", "tools: calling tools is not served yet; leave them out or set tool_choice to none")
	}
	if choice := strings.Trim(string(q.ToolChoice), `"`); len(q.Tools) == 0 && choice != "" && choice != "null" && choice != "none" && choice != "auto" {
		return badRequest("tool_choice", "tool_choice is only possible with tools")
	}
	if q.Continue != nil && *q.Continue && q.Generation != nil && *q.Generation {
		return badRequest("add_generation_prompt", "add_generation_prompt and continue_final_message contradict each other: the end of the conversation is continued, or a new message begins")
	}
	if q.TopLogprobs != nil && *q.TopLogprobs != 0 && !q.Logprobs {
		return badRequest("top_logprobs", "top_logprobs is only possible with logprobs")
	}
	for _, m := range q.Modalities {
		if m != "text" {
			return badRequest("modalities", "modalities: %q is not served; only text is", m)
		}
	}
	return nil
}

// checkMessage checks message i and joins its parts to one text, which every
// template takes.
func checkMessage(m *chat.Message, i int) error {
	if !roles[m.Role] {
		return badRequest("messages", "messages[%d].role: %q is not one of system, developer, user, assistant, tool", i, m.Role)
	}
	if m.NoContent && m.Role != "assistant" {
		return badRequest("messages", "messages[%d].content: a text or a list of parts is required", i)
	}
	if m.Parts == nil {
		return nil
	}
	var texts []string
	for k, p := range m.Parts {
		if p.Type != "text" {
			return badRequest("messages", "messages[%d].content[%d]: a part of type %q is not served; only text is", i, k, p.Type)
		}
		texts = append(texts, p.Text)
	}
	m.Content, m.Parts = strings.Join(texts, "\n"), nil
	return nil
}

// input is what the template gets. A conversation that ends with words of the
// assistant is continued inside that message.
func (q *chatRequest) input() chat.Input {
	last := q.Messages[len(q.Messages)-1]
	in := chat.Input{Messages: q.Messages, ContinueFinal: last.Role == "assistant" && len(last.ToolCalls) == 0, Extra: q.TemplateArgs}
	if q.Continue != nil {
		in.ContinueFinal = *q.Continue
	}
	in.AddGenerationPrompt = !in.ContinueFinal
	if q.Generation != nil && !in.ContinueFinal {
		in.AddGenerationPrompt = *q.Generation
	}
	if _, ok := in.Extra["reasoning_effort"]; !ok && q.Effort != nil {
		extra := map[string]any{"reasoning_effort": *q.Effort}
		for k, v := range in.Extra {
			extra[k] = v
		}
		in.Extra = extra
	}
	return in
}

// prepareChat checks a request and encodes its prompt.
func (v *Server) prepareChat(ctx context.Context, q *chatRequest) (p complete.Params, ids []int32, err error) {
	limit, name := q.MaxTokens, "max_tokens"
	if q.MaxCompletion != nil {
		limit, name = q.MaxCompletion, "max_completion_tokens"
	}
	if p, err = v.params(&q.common, limit, name); err != nil {
		return p, nil, err
	}
	if err = q.check(); err != nil {
		return p, nil, err
	}
	p.Sample.Logprobs = q.Logprobs
	if q.TopLogprobs != nil {
		p.Sample.TopLogprobs = *q.TopLogprobs
		if err = p.Sample.Validate(); err != nil {
			return p, nil, err
		}
	}
	if bad := v.s.TemplateError(); bad != nil {
		return p, nil, badRequest("", "the model's chat template cannot be read: %s; use /v1/completions", plain(bad))
	}
	if err = v.templateKeys(q.TemplateArgs); err != nil {
		return p, nil, err
	}
	if q.Task != "" {
		ids, err = v.task(q, &p)
	} else {
		ids, err = v.s.ChatWithin(ctx, templateSteps, q.input())
	}
	if err != nil {
		return p, nil, about("messages", err)
	}
	return p, ids, v.fits(ids, "messages")
}

// task encodes what an encoder-decoder reads of a conversation.
func (v *Server) task(q *chatRequest, p *complete.Params) ([]int32, error) {
	text, err := complete.Said(q.input())
	if err == nil {
		err = v.s.Fits(text)
	}
	if err != nil {
		return nil, err
	}
	return v.taskOf(q.Task, text, p)
}

func (v *Server) chat(w http.ResponseWriter, r *http.Request) error {
	var q chatRequest
	if err := v.readJSON(w, r, &q); err != nil {
		return err
	}
	p, ids, err := v.prepareChat(r.Context(), &q)
	if err != nil {
		return err
	}
	run, err := v.s.Start(r.Context(), ids, p)
	if err != nil {
		return err
	}
	defer run.Cancel()
	a := &chatAnswer{v: v, q: &q, n: len(ids), id: v.newID("chatcmpl-"), created: time.Now().Unix()}
	if q.Stream {
		return a.stream(w, run, p.N)
	}
	return a.whole(w, run, p.N)
}

type chatAnswer struct {
	v       *Server
	q       *chatRequest
	n       int // prompt tokens
	id      string
	created int64
}

type chatMessage struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

type chatLogprobs struct {
	Content []logprob `json:"content"`
	Refusal []logprob `json:"refusal"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  chatMessage   `json:"message"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   string        `json:"finish_reason"`
}

func (a *chatAnswer) top() int {
	if a.q.TopLogprobs == nil {
		return 0
	}
	return *a.q.TopLogprobs
}

// spoken tells tokens of the answer from the one that ended it and says nothing.
func spoken(c complete.Chunk) bool { return c.Finish != engine.FinishStop || c.Text != "" }

// each reads a run to its end; f gets every chunk.
func (v *Server) each(run *complete.Run, f func(complete.Chunk) error) (tokens int, err error) {
	for {
		c, err := run.Next()
		if errors.Is(err, io.EOF) {
			v.times.observe(run.Timings())
			return tokens, nil
		}
		if err == nil {
			err = c.Err
		}
		if err != nil {
			return tokens, err
		}
		if !c.Prompt {
			tokens++
		}
		if err := f(c); err != nil {
			return tokens, err
		}
	}
}

func (a *chatAnswer) whole(w http.ResponseWriter, run *complete.Run, n int) error {
	choices := make([]chatChoice, n)
	texts := make([]strings.Builder, n)
	tokens, err := a.v.each(run, func(c complete.Chunk) error {
		texts[c.Choice].WriteString(c.Text)
		ch := &choices[c.Choice]
		if a.q.Logprobs && ch.Logprobs == nil {
			ch.Logprobs = &chatLogprobs{Content: []logprob{}}
		}
		if a.q.Logprobs && spoken(c) {
			ch.Logprobs.Content = append(ch.Logprobs.Content, a.v.logprobOf(c, a.top()))
		}
		if c.Last {
			ch.Finish = string(c.Finish)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range choices {
		choices[i].Index, choices[i].Message = i, chatMessage{Role: "assistant", Content: texts[i].String()}
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": a.id, "object": "chat.completion", "created": a.created, "model": a.q.Model,
		"choices": choices, "usage": usageOf(a.n, tokens), "system_fingerprint": a.v.fingerprint()})
	return nil
}
