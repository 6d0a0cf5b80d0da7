package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/server"
	"github.com/inferflow/inferflow/spec"
)

// servedOutput is the model's output that a task needs: "logits" to write texts,
// embeddings or scores to read them.
func servedOutput(ctx context.Context, ref string, o model.Options, task string) (string, error) {
	switch task {
	case "generate":
		return embed.OutputLogits, nil
	case "embed":
		return spec.OutputEmbedding, nil
	case "rerank":
		return embed.OutputScores, nil
	case "":
	default:
		return "", usagef("--task %q: want generate, embed or rerank", task)
	}
	if ref == demoName || filepath.Ext(ref) == ".ini" {
		return embed.OutputLogits, nil
	}
	o.Notice = nil // told when it is opened for good
	m, err := openModel(ctx, ref, o)
	if err != nil {
		return "", err
	}
	defer m.Close()
	return m.Purpose(), nil
}

// handlerOf opens the model and makes the handler that serves it; end gives
// everything back.
func handlerOf(ctx context.Context, ref, name, task string, o model.Options, open func() (*complete.Service, error), so *server.Options) (v *server.Server, end func() error, err error) {
	output, err := servedOutput(ctx, ref, o, task)
	if err != nil {
		return nil, nil, err
	}
	named := func(file string) {
		if so.Name == "" {
			so.Name = servedName(name, file)
		}
	}
	if output == embed.OutputLogits {
		s, err := open()
		if err != nil {
			return nil, nil, err
		}
		named(s.Model.Name)
		notice(fmt.Sprintf("context %d tokens, %s for keys and values", s.Model.Limits.Tokens, model.Bytes(s.Model.KVBytes)))
		return server.New(s, *so), s.Close, nil
	}
	e, err := openTexts(ctx, ref, o, output)
	if err != nil {
		return nil, nil, err
	}
	if e.Tok == nil {
		e.Close()
		return nil, nil, complete.ErrNoTokenizer
	}
	named(e.Model.Name)
	notice(fmt.Sprintf("texts of at most %d tokens become %s", e.MaxTokens(), output))
	return server.NewTexts(e, *so), e.Close, nil
}
