package clienttest

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/internal/server"
)

const template = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

const tale = "Once upon a time, café cat 😺 sat."

var words = []string{"Once", " upon", " a", " time", ",", " caf", "\xc3", "\xa9", " cat", " \xf0", "\x9f", "\x98", "\xba", " sat", ".", "<|im_end|>"}

// place is a server and the name of its model; tiny says that it tells the tale.
type place struct {
	c     openai.Client
	model string
	tiny  bool
	s     *complete.Service
}

func here(t *testing.T, o server.Options, seqs int) place {
	if url := os.Getenv("INFERFLOW_URL"); url != "" {
		return place{c: client(url), model: os.Getenv("INFERFLOW_MODEL")}
	}
	return tiny(t, o, seqs, words)
}

func client(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func tiny(t *testing.T, o server.Options, seqs int, story []string) place {
	t.Helper()
	path := modeltest.Write(t, t.TempDir(), modeltest.Options{Story: story, Template: template, Context: 8000})
	m, err := model.Open(path, model.Options{Threads: 1, Rows: 64, Seqs: seqs})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	s, err := complete.New(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	o.Name = "org/tiny"
	v := server.New(s, o)
	h := httptest.NewUnstartedServer(v)
	h.Config = v.HTTP()
	h.Start()
	t.Cleanup(func() { h.Close(); s.Close() })
	return place{c: client(h.URL + "/v1"), model: "org/tiny", tiny: true, s: s}
}

func (p place) ask(more ...func(*openai.ChatCompletionNewParams)) openai.ChatCompletionNewParams {
	q := openai.ChatCompletionNewParams{Model: p.model, Temperature: openai.Float(0), MaxTokens: openai.Int(24),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be kind."), openai.UserMessage("Tell me a tale.")}}
	for _, f := range more {
		f(&q)
	}
	return q
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestModels(t *testing.T) {
	p, ctx := here(t, server.Options{}, 8), limit(t)
	list, err := p.c.Models.List(ctx)
	if err != nil || len(list.Data) == 0 || list.Data[0].ID != p.model {
		t.Fatalf("%+v %v", list, err)
	}
	if m, err := p.c.Models.Get(ctx, p.model); err != nil || m.ID != p.model || m.Created == 0 {
		t.Errorf("%+v %v", m, err)
	}
}

func TestChat(t *testing.T) {
	p := here(t, server.Options{}, 8)
	r, err := p.c.Chat.Completions.New(limit(t), p.ask())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Choices[0]
	if c.Message.Content == "" || c.Message.Role != "assistant" || c.FinishReason == "" || r.Usage.TotalTokens != r.Usage.PromptTokens+r.Usage.CompletionTokens {
		t.Errorf("%s", r.RawJSON())
	}
	if p.tiny && (c.Message.Content != tale || c.FinishReason != "stop" || r.Usage.CompletionTokens != 16) {
		t.Errorf("%s", r.RawJSON())
	}
}

// TestStream reads a stream with the client's own accumulator.
func TestStream(t *testing.T) {
	p, ctx := here(t, server.Options{}, 8), limit(t)
	whole, err := p.c.Chat.Completions.New(ctx, p.ask())
	if err != nil {
		t.Fatal(err)
	}
	s := p.c.Chat.Completions.NewStreaming(ctx, p.ask(func(q *openai.ChatCompletionNewParams) {
		q.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	}))
	acc, finished := openai.ChatCompletionAccumulator{}, ""
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			t.Fatalf("the chunk does not fit: %s", s.Current().RawJSON())
		}
		if text, ok := acc.JustFinishedContent(); ok {
			finished = text
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	want := whole.Choices[0].Message.Content
	if got := acc.Choices[0].Message.Content; got != want || finished != want || acc.Choices[0].FinishReason != whole.Choices[0].FinishReason {
		t.Errorf("streamed %q, finished %q, whole %q", got, finished, want)
	}
	if acc.Usage.TotalTokens != whole.Usage.TotalTokens {
		t.Errorf("usage %+v and %+v", acc.Usage, whole.Usage)
	}
}

func TestSeveral(t *testing.T) {
	p, ctx := here(t, server.Options{}, 8), limit(t)
	q := p.ask(func(q *openai.ChatCompletionNewParams) {
		q.N, q.Logprobs, q.TopLogprobs = openai.Int(3), openai.Bool(true), openai.Int(2)
		q.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{" time", "zebra"}}
	})
	r, err := p.c.Chat.Completions.New(ctx, q)
	if err != nil || len(r.Choices) != 3 {
		t.Fatal(r, err)
	}
	for i, c := range r.Choices {
		if c.Index != int64(i) || len(c.Logprobs.Content) == 0 || len(c.Logprobs.Content[0].TopLogprobs) != 2 || p.tiny && c.Message.Content != "Once upon a" {
			t.Errorf("%s", c.RawJSON())
		}
	}
	s, got := p.c.Chat.Completions.NewStreaming(ctx, q), map[int64]string{}
	for s.Next() {
		for _, c := range s.Current().Choices {
			got[c.Index] += c.Delta.Content
		}
	}
	for i, c := range r.Choices {
		if got[int64(i)] != c.Message.Content {
			t.Errorf("streamed %q, whole %q", got[int64(i)], c.Message.Content)
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}

func TestCompletions(t *testing.T) {
	p, ctx := here(t, server.Options{}, 8), limit(t)
	q := openai.CompletionNewParams{Model: openai.CompletionNewParamsModel(p.model), Temperature: openai.Float(0), MaxTokens: openai.Int(6),
		Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"A", "B"}}, Logprobs: openai.Int(1), Echo: openai.Bool(true)}
	r, err := p.c.Completions.New(ctx, q)
	if err != nil || len(r.Choices) != 2 || !strings.HasPrefix(r.Choices[1].Text, "B") || len(r.Choices[0].Logprobs.Tokens) < 7 {
		t.Fatal(r, err)
	}
	s, got := p.c.Completions.NewStreaming(ctx, q), map[int64]string{}
	for s.Next() {
		for _, c := range s.Current().Choices {
			got[c.Index] += c.Text
		}
	}
	if s.Err() != nil || got[0] != r.Choices[0].Text || got[1] != r.Choices[1].Text {
		t.Errorf("streamed %v, whole %q and %q: %v", got, r.Choices[0].Text, r.Choices[1].Text, s.Err())
	}
}

func TestRefused(t *testing.T) {
	p, ctx := here(t, server.Options{}, 8), limit(t)
	for name, c := range map[string]struct {
		change func(*openai.ChatCompletionNewParams)
		status int
		code   string
	}{
		"model":       {func(q *openai.ChatCompletionNewParams) { q.Model = "nobody" }, 404, "model_not_found"},
		"messages":    {func(q *openai.ChatCompletionNewParams) { q.Messages = nil }, 400, ""},
		"temperature": {func(q *openai.ChatCompletionNewParams) { q.Temperature = openai.Float(-1) }, 400, ""},
		"n":           {func(q *openai.ChatCompletionNewParams) { q.N = openai.Int(1000000) }, 400, ""},
		"too long": {func(q *openai.ChatCompletionNewParams) {
			q.Messages = append(q.Messages, openai.UserMessage(strings.Repeat("word ", 20000)))
		}, 400, "context_length_exceeded"},
	} {
		_, err := p.c.Chat.Completions.New(ctx, p.ask(c.change))
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != c.status || e.Message == "" || e.Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
		s := p.c.Chat.Completions.NewStreaming(ctx, p.ask(c.change))
		if s.Next() || !errors.As(s.Err(), &e) || e.StatusCode != c.status {
			t.Errorf("%s, streamed: %v", name, s.Err())
		}
	}
}

// begun reads the chunk with the role and the first one with text.
func begun(next func() bool) bool {
	for range 2 {
		if !next() {
			return false
		}
	}
	return true
}

// TestComments: comments while a request waits are no events to this client.
func TestComments(t *testing.T) {
	p, ctx := tiny(t, server.Options{KeepAlive: 10 * time.Millisecond}, 1, []string{"Row", " row", " row,"}), limit(t)
	first, end := context.WithCancel(ctx)
	long := p.c.Chat.Completions.NewStreaming(first, p.ask(func(q *openai.ChatCompletionNewParams) { q.MaxTokens = openai.Int(7000) }))
	if !begun(long.Next) {
		t.Fatal(long.Err())
	}
	time.AfterFunc(200*time.Millisecond, end)
	s, n := p.c.Chat.Completions.NewStreaming(ctx, p.ask(func(q *openai.ChatCompletionNewParams) { q.MaxTokens = openai.Int(5) })), 0
	for s.Next() {
		n++
		if len(s.Current().Choices) != 1 || s.Current().ID == "" {
			t.Errorf("an event that is none: %s", s.Current().RawJSON())
		}
	}
	if s.Err() != nil || n < 7 {
		t.Errorf("%d chunks: %v", n, s.Err())
	}
	if err := long.Close(); err != nil {
		t.Error(err)
	}
}

// TestFailure: an error in the middle of a stream reaches the reader.
func TestFailure(t *testing.T) {
	p, ctx := tiny(t, server.Options{}, 4, []string{"Row", " row", " row,"}), limit(t)
	s := p.c.Chat.Completions.NewStreaming(ctx, p.ask(func(q *openai.ChatCompletionNewParams) { q.MaxTokens = openai.Int(7000) }))
	if !begun(s.Next) {
		t.Fatal(s.Err())
	}
	p.s.Engine.Close()
	for s.Next() {
	}
	if s.Err() == nil || !strings.Contains(s.Err().Error(), "shutting down") {
		t.Errorf("the reader is told %v", s.Err())
	}
}

// TestCrowd: 32 clients at once.
func TestCrowd(t *testing.T) {
	p, ctx := here(t, server.Options{}, 16), limit(t)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			q := p.ask(func(q *openai.ChatCompletionNewParams) {
				q.MaxTokens = openai.Int(int64(4 + i%8))
				q.Messages = append(q.Messages, openai.UserMessage(fmt.Sprint("Number ", i)))
			})
			got := ""
			if i%2 == 0 {
				r, err := p.c.Chat.Completions.New(ctx, q)
				if err != nil {
					t.Error(err)
					return
				}
				got = r.Choices[0].Message.Content
			} else {
				s := p.c.Chat.Completions.NewStreaming(ctx, q)
				for s.Next() {
					got += s.Current().Choices[0].Delta.Content
				}
				if s.Err() != nil {
					t.Error(s.Err())
				}
			}
			if got == "" || p.tiny && !strings.HasPrefix(tale, strings.TrimSuffix(got, "�")) {
				t.Errorf("client %d got %q", i, got)
			}
		})
	}
	wg.Wait()
}
