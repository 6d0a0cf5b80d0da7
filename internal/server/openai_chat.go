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
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	common
	Messages       []chat.Message  `json:"messages"`
	MaxCompletion  *int            `json:"max_completion_tokens"`
	Logprobs       bool            `json:"logprobs"`
	TopLogprobs    *int            `json:"top_logprobs"`
	Tools          []chat.Tool     `json:"tools"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`
	TemplateArgs map[string]any `json:"chat_template_kwargs"`
}

var roles = map[string]bool{"system": true, "developer": true, "user": true, "assistant": true, "tool": true}

func (q *chatRequest) check() error {
	if len(q.Messages) == 0 {
		return badRequest("messages", "messages: at least one message is required")
	}
	for i, m := range q.Messages {
		if !roles[m.Role] {
			return badRequest("messages", "messages[%d].role: %q is not one of system, developer, user, assistant, tool", i, m.Role)
		}
	}
	if q.ResponseFormat != nil && q.ResponseFormat.Type != "text" && q.ResponseFormat.Type != "" {
		return badRequest("response_format", "response_format: %q is not served yet; only text is", q.ResponseFormat.Type)
	}
	if choice := strings.Trim(string(q.ToolChoice), `"`); len(q.Tools) > 0 && choice != "none" {
		return badRequest("tools", "tools: calling tools is not served yet; leave them out or set tool_choice to none")
	}
	if q.TopLogprobs != nil && !q.Logprobs {
		return badRequest("top_logprobs", "top_logprobs is only possible with logprobs")
	}
	return nil
}

// prepare checks a request and encodes its prompt.
func (v *Server) prepareChat(r *http.Request) (q chatRequest, p complete.Params, ids []int32, err error) {
	if err = readJSON(r, &q); err != nil {
		return
	}
	if err = q.check(); err != nil {
		return
	}
	limit := q.MaxTokens
	if q.MaxCompletion != nil {
		limit = q.MaxCompletion
	}
	if p, err = v.params(&q.common, limit); err != nil {
		return
	}
	p.Sample.Logprobs = q.Logprobs
	if q.TopLogprobs != nil {
		p.Sample.TopLogprobs = *q.TopLogprobs
		if err = p.Sample.Validate(); err != nil {
			return
		}
	}
	last := q.Messages[len(q.Messages)-1]
	in := chat.Input{Messages: q.Messages, AddGenerationPrompt: last.Role != "assistant", ContinueFinal: last.Role == "assistant" && last.Content != "", Extra: q.TemplateArgs}
	if ids, err = v.s.Chat(in); err != nil {
		return
	}
	err = v.fits(ids)
	return
}

func (v *Server) chat(w http.ResponseWriter, r *http.Request) error {
	q, p, ids, err := v.prepareChat(r)
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
		a.stream(w, run, p.N)
		return nil
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
		if a.q.Logprobs && c.Finish != "stop" {
			if ch.Logprobs == nil {
				ch.Logprobs = &chatLogprobs{}
			}
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

type chatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type chatPiece struct {
	Index    int           `json:"index"`
	Delta    chatDelta     `json:"delta"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

type chatChunk struct {
	ID          string      `json:"id"`
	Object      string      `json:"object"`
	Created     int64       `json:"created"`
	Model       string      `json:"model"`
	Fingerprint string      `json:"system_fingerprint"`
	Choices     []chatPiece `json:"choices"`
	Usage       *usage      `json:"usage,omitempty"`
}

func (a *chatAnswer) chunk(p ...chatPiece) chatChunk {
	if p == nil {
		p = []chatPiece{}
	}
	return chatChunk{a.id, "chat.completion.chunk", a.created, a.q.Model, a.v.fingerprint(), p, nil}
}

func (a *chatAnswer) stream(w http.ResponseWriter, run *complete.Run, n int) {
	out := newSSE(w, a.v.o.KeepAlive)
	defer out.close()
	empty := ""
	for i := 0; i < n; i++ {
		if out.send(a.chunk(chatPiece{Index: i, Delta: chatDelta{Role: "assistant", Content: &empty}})) != nil {
			return
		}
	}
	tokens, err := a.v.each(run, func(c complete.Chunk) error { return a.sendChunk(out, c) })
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			out.fail(err)
		}
		return
	}
	if a.q.StreamOptions != nil && a.q.StreamOptions.IncludeUsage {
		u := a.chunk()
		u.Usage = usageOf(a.n, tokens)
		_ = out.send(u)
	}
	_ = out.send("[DONE]")
}

func (a *chatAnswer) sendChunk(out *sse, c complete.Chunk) error {
	p := chatPiece{Index: c.Choice}
	if a.q.Logprobs && c.Finish != "stop" {
		p.Logprobs = &chatLogprobs{Content: []logprob{a.v.logprobOf(c, a.top())}}
	}
	if c.Text != "" || p.Logprobs != nil {
		p.Delta.Content = &c.Text
		if err := out.send(a.chunk(p)); err != nil {
			return err
		}
	}
	if c.Last {
		reason := string(c.Finish)
		return out.send(a.chunk(chatPiece{Index: c.Choice, Finish: &reason}))
	}
	return nil
}
