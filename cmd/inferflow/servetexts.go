package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/server"
	"github.com/inferflow/inferflow/spec"
)

// served is what serve serves: a model, or what an .ini file names.
type served struct {
	ref, name string // as it was given; as the API shows it
	ini       *iniService
}

// read reads the .ini file, if it is one. Its port counts where no flag gives one.
func (v *served) read(o *model.Options, given *pflag.FlagSet, port *int) (err error) {
	if !isINI(v.ref) {
		return nil
	}
	if v.ini, err = openINIService(v.ref); err != nil {
		return err
	}
	v.ini.options(o, given)
	if p := v.ini.file.Port; p > 0 && !given.Changed("port") {
		*port = p
	}
	v.name = v.ini.model.Name
	return nil
}

// output is the model's output that a task needs: "logits" to write texts or
// fill masks, embeddings or scores to read them. whole: the model reads texts alone.
func (v *served) output(ctx context.Context, o model.Options, task string) (output string, whole bool, err error) {
	switch task {
	case "generate":
		return embed.OutputLogits, false, nil
	case "fill-mask":
		return embed.OutputLogits, true, nil
	case "embed":
		return spec.OutputEmbedding, true, nil
	case "classify":
		return embed.OutputScores, true, nil
	}
	if task == "" && v.ref == demoName {
		return embed.OutputLogits, false, nil
	}
	if task == "" && v.ini != nil {
		whole, err := v.ini.whole(ctx, o)
		return embed.OutputLogits, whole, err
	}
	o.Notice = nil // told when it is opened for good
	m, err := v.open(ctx, o)
	if err != nil {
		return "", false, err
	}
	defer m.Close()
	output = m.Purpose()
	if task == "rerank" && output != embed.OutputScores {
		output = spec.OutputEmbedding // by the cosine of vectors
	}
	return output, output != embed.OutputLogits || m.Whole(), nil
}

func (v *served) open(ctx context.Context, o model.Options) (*model.Model, error) {
	if v.ini != nil {
		return v.ini.openModel(ctx, o)
	}
	return openModel(ctx, v.ref, o)
}

func (v *served) openService(ctx context.Context, o model.Options) (*complete.Service, error) {
	if v.ini != nil {
		return v.ini.open(ctx, o)
	}
	return openService(ctx, v.ref, o)
}

func (v *served) openTexts(ctx context.Context, o model.Options, output string) (*embed.Service, error) {
	if v.ini != nil {
		return v.ini.openTexts(ctx, o, output)
	}
	return openTexts(ctx, v.ref, o, output)
}

// givenTexts says what texts become, and where.
func givenTexts(e *embed.Service, task string) (string, error) {
	switch {
	case e.Output == embed.OutputLogits && !e.Model.Whole():
		return "", usagef("%s fills no masks: it writes texts from left to right; --task generate serves it, --task embed its vectors", e.Model.Name)
	case e.Output == embed.OutputLogits:
		return "the likeliest words for their masks (/v1/fill-mask)", nil
	case e.Output == spec.OutputEmbedding:
		return fmt.Sprintf("vectors of %d numbers (/v1/embeddings, /v1/rerank)", e.Width()), nil
	case e.Width() == 1:
		return "a relevance to a query (/v1/rerank; /v1/classify for it as a class)", nil
	case task == "rerank":
		return "", usagef("%s sorts texts into %d classes; a reranker has one score: use --task classify or --task embed", e.Model.Name, e.Width())
	}
	return fmt.Sprintf("%d classes (/v1/classify)", e.Width()), nil
}

// handler opens the model and makes the handler that serves it; end gives
// everything back.
func (v *served) handler(ctx context.Context, task string, o model.Options, so *server.Options) (h *server.Server, end func() error, err error) {
	output, whole, err := v.output(ctx, o, task)
	if err != nil {
		return nil, nil, err
	}
	named := func(file string) {
		if so.Name != "" {
			return
		}
		if so.Name = servedName(v.name, file); so.Name != v.name && v.ini == nil {
			so.Aliases = append(so.Aliases, v.name)
		}
	}
	if !whole {
		s, err := v.openService(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		named(s.Model.Name)
		notice(fmt.Sprintf("context %d tokens, %s for keys and values", s.Model.Limits.Tokens, model.Bytes(s.Model.KVBytes)))
		return server.New(s, *so), s.Close, nil
	}
	e, err := v.openTexts(ctx, o, output)
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
