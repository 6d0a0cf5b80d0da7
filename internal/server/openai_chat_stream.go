package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/inferflow/inferflow/internal/complete"
)

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
	Usage       any         `json:"usage,omitempty"` // null until the last chunk, where it is asked for
}

func (a *chatAnswer) chunk(p ...chatPiece) chatChunk {
	if p == nil {
		p = []chatPiece{}
	}
	c := chatChunk{a.id, "chat.completion.chunk", a.created, a.q.Model, a.v.fingerprint(), p, nil}
	if a.q.wantsUsage() {
		c.Usage = noUsage
	}
	return c
}

func (a *chatAnswer) stream(w http.ResponseWriter, run *complete.Run, n int) error {
	out := newSSE(w, a.v.o.KeepAlive, a.v.o.Stall)
	defer out.close()
	empty := ""
	for i := 0; i < n; i++ {
		if err := out.send(a.chunk(chatPiece{Index: i, Delta: chatDelta{Role: "assistant", Content: &empty}})); err != nil {
			return err
		}
	}
	tokens, err := a.v.each(run, func(c complete.Chunk) error { return a.sendChunk(out, c) })
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			out.fail(err)
		}
		return err
	}
	if a.q.wantsUsage() {
		u := a.chunk()
		u.Usage = usageOf(a.n, tokens)
		_ = out.send(u)
	}
	return out.send("[DONE]")
}

func (a *chatAnswer) sendChunk(out *sse, c complete.Chunk) error {
	p := chatPiece{Index: c.Choice}
	if a.q.Logprobs && spoken(c) {
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
