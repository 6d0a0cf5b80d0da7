// Package inferflow embeds the engine in a Go program: open a model, generate
// text. It is thin: everything it does stands in internal/complete. It must
// never grow options that only one command needs. Read Model first.
package inferflow

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// Options chooses how a model is loaded. Zero values mean defaults.
type Options struct {
	Threads  int    // 0: all usable cores
	Context  int    // tokens of one sequence at most; 0: the model's own, at most 8192
	KVMemory int64  // bytes for keys and values; 0: four contexts, at most half of what is free
	KVType   string // "f16" (default), "bf16" or "f32"
	Spec     string // specification instead of the one that serves the model: a file, or the name of a shipped one
	// Notice is told, once each, what a user should know; nil drops it.
	Notice func(string)
}

// Model is a loaded model. It is safe for concurrent use: requests that run at
// the same time share batches, and their answers do not depend on it.
type Model struct{ s *complete.Service }

// Open opens and loads the model at path: a .gguf or .safetensors file, or a
// Hugging Face folder. Close it when done.
func Open(path string, o Options) (*Model, error) {
	m, err := model.Open(path, model.Options{Threads: o.Threads, Context: o.Context, KVMemory: o.KVMemory, Keys: o.KVType, Values: o.KVType,
		Spec: spec.Choose(o.Spec), Notice: o.Notice})
	if err != nil {
		return nil, err
	}
	if err := m.Load(); err != nil {
		m.Close()
		return nil, err
	}
	s, err := complete.New(m, 0)
	if err != nil {
		m.Close()
		return nil, err
	}
	return &Model{s}, nil
}

// Close ends all requests and gives the memory back.
func (m *Model) Close() error { return m.s.Close() }

// Request asks for one answer. With Messages the model's chat template makes
// the prompt, and nothing in them is taken for a special token; with Prompt the
// model goes on with the text. An encoder-decoder reads the text, or the last
// message of the user, as its source; Task says what it is to do with it. Pointers that are nil leave the model's defaults.
type Request struct {
	Messages    []chat.Message
	Prompt      string
	Task        string // of an encoder-decoder: "summarize", "translate:en-fr"; "": the text as it stands
	MaxTokens   int    // 0: what the context holds
	Beams       int    // of a search for the likeliest answer, whose text comes at its end; 1: none; 0: as the model's files have it, where nothing below says how to draw
	Temperature *float64
	TopP        *float64
	TopK        *int
	Seed        uint64
	Stop        []string
}

// Generate yields the answer's text as it comes. A text is never half a rune.
// The iteration ends after an error; leaving it early frees the request.
func (m *Model) Generate(ctx context.Context, r Request) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		run, err := m.start(ctx, r)
		if err != nil {
			yield("", err)
			return
		}
		defer run.Cancel()
		for {
			c, err := run.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				err = c.Err
			}
			if err != nil {
				yield("", err)
				return
			}
			if c.Text != "" && !yield(c.Text, nil) {
				return
			}
		}
	}
}

// Text collects a whole answer and why it ended: "stop" or "length".
func (m *Model) Text(ctx context.Context, r Request) (text, finish string, err error) {
	run, err := m.start(ctx, r)
	if err != nil {
		return "", "", err
	}
	a, err := run.Collect(nil)
	return a.Text, string(a.Finish), err
}

func (m *Model) start(ctx context.Context, r Request) (*complete.Run, error) {
	p := complete.Params{Sample: m.s.Defaults(), Max: r.MaxTokens, Stop: r.Stop, Draws: r.Temperature != nil || r.TopP != nil || r.TopK != nil,
		Search: complete.Search{Beams: r.Beams}}
	if r.Temperature != nil {
		p.Sample.Temperature = *r.Temperature
	}
	if r.TopP != nil {
		p.Sample.TopP = *r.TopP
	}
	if r.TopK != nil {
		p.Sample.TopK = *r.TopK
	}
	p.Sample.Seed = r.Seed
	ids, err := m.prompt(r, &p)
	if err != nil {
		return nil, err
	}
	return m.s.Start(ctx, ids, p)
}

func (m *Model) prompt(r Request, p *complete.Params) ([]int32, error) {
	in := chat.Input{Messages: r.Messages, AddGenerationPrompt: true}
	switch {
	case r.Task != "" && r.Messages != nil:
		text, err := complete.Said(in)
		if err != nil {
			return nil, err
		}
		return m.s.Task(r.Task, text, p)
	case r.Task != "":
		return m.s.Task(r.Task, r.Prompt, p)
	case r.Messages != nil:
		return m.s.Chat(in)
	}
	return m.s.Text(r.Prompt, false)
}

// Errors that callers may tell apart.
var (
	ErrNoSpec      = spec.ErrNoSpec          // no specification serves the model
	ErrNoTokenizer = complete.ErrNoTokenizer // the files hold no tokenizer
	ErrNoTemplate  = complete.ErrNoTemplate  // the files hold no chat template
	ErrTask        = complete.ErrTask        // the model has no such task
	ErrRequest     = engine.ErrRequest       // the request cannot be served as it is
)
