package main

import (
	"context"
	"fmt"

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
	case "classify":
		return embed.OutputScores, nil
	case "rerank", "":
	default:
		return "", usagef("--task %q: want generate, embed, rerank or classify", task)
	}
	if task == "" && (ref == demoName || isINI(ref)) {
		return embed.OutputLogits, nil
	}
	o.Notice = nil // told when it is opened for good
	m, err := openModel(ctx, ref, o)
	if err != nil {
		return "", err
	}
	defer m.Close()
	output := m.Purpose()
	if task == "rerank" && output != embed.OutputScores {
		return spec.OutputEmbedding, nil // by the cosine of vectors
	}
	return output, nil
}

// givenTexts says what texts become, and where.
func givenTexts(e *embed.Service, task string) (string, error) {
	switch {
	case e.Output == spec.OutputEmbedding:
		return fmt.Sprintf("vectors of %d numbers (/v1/embeddings, /v1/rerank)", e.Width()), nil
	case e.Width() == 1:
		return "a relevance to a query (/v1/rerank; /v1/classify for it as a class)", nil
	case task == "rerank":
		return "", usagef("%s sorts texts into %d classes; a reranker has one score: use --task classify or --task embed", e.Model.Name, e.Width())
	}
	return fmt.Sprintf("%d classes (/v1/classify)", e.Width()), nil
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
	become, err := givenTexts(e, task)
	if err != nil {
		e.Close()
		return nil, nil, err
	}
	named(e.Model.Name)
	notice(fmt.Sprintf("texts of at most %d tokens become %s", e.MaxTokens(), become))
	return server.NewTexts(e, *so), e.Close, nil
}
