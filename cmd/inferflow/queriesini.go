package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
)

// queryTokens is the length of an answer to a query of a list, where no flag says another.
const queryTokens = 300

// queries answers the query list of an .ini file, as many at once as the file
// allows, and prints the answers in the order of the list.
func (f *runFlags) queries(ctx context.Context, path string, given *pflag.FlagSet) error {
	o, err := f.model.options()
	if err != nil {
		return err
	}
	var q *config.Queries
	var x *iniService
	whole := false
	if err := until(ctx, func() (err error) {
		if q, x, err = readQueries(path); err == nil {
			x.options(&o, given)
			whole, err = x.whole(ctx, o)
		}
		return err
	}); err != nil {
		return err
	}
	if whole {
		return f.fillQueries(ctx, x, o, q.List)
	}
	var s *complete.Service
	if err := until(ctx, func() (err error) { s, err = x.open(ctx, o); return err }); err != nil {
		return err
	}
	defer s.Close()
	p, err := f.sampling.params(s.Defaults())
	if err != nil {
		return err
	}
	if err := f.beams.apply(&f.sampling, &p); err != nil {
		return err
	}
	if q.Temperature >= 0 && !given.Changed("temperature") && !f.sampling.greed && x.model.Strategy.Name != "greedy" {
		p.Sample.Temperature = q.Temperature
	}
	if !given.Changed("seed") {
		p.Sample.Seed = q.Seed
	}
	if p.Max == 0 {
		p.Max = queryTokens
	}
	return f.answerAll(ctx, s, x, q.List, p)
}

// readQueries reads a query file and the service file that it names.
func readQueries(path string) (*config.Queries, *iniService, error) {
	ini, err := config.ReadINI(path)
	if err != nil {
		return nil, nil, err
	}
	q, err := ini.Queries()
	if err != nil {
		return nil, nil, err
	}
	for _, n := range q.Notes {
		notice(n)
	}
	x, err := readINIService(q.Service)
	return q, x, err
}

// fillQueries prints the likeliest words for the masks of each query, which is
// what the C++ engine makes of an encoder.
func (f *runFlags) fillQueries(ctx context.Context, x *iniService, o model.Options, list []config.Query) error {
	var s *embed.Service
	if err := until(ctx, func() (err error) { s, err = x.openTexts(ctx, o, embed.OutputLogits); return err }); err != nil {
		return err
	}
	defer s.Close()
	if s.Tok == nil {
		return complete.ErrNoTokenizer
	}
	title := func(i int) string { return titleOf("query", i, list[i].Text) }
	return (&textFlags{json: f.json}).fill(ctx, s, fillList{n: len(list), top: fillTop, title: title, encode: func(i int) (embed.Text, error) {
		q := list[i]
		if t := orTemplate(q.Encoder, x.model.Encoder); t != nil {
			return s.EncodeMaskedBy(func(text string) ([]int32, error) {
				return x.frameIDs(s.Tok, t, config.Query{System: q.System, Text: text}, reads)
			}, q.Text)
		}
		return s.EncodeMasked(withSystem(q.System, q.Text))
	}})
}

// fillTop is the number of words for a mask.
const fillTop = 8

// answered is one query with what became of it.
type answered struct {
	ids  []int32
	a    complete.Answer
	err  error
	done chan struct{}
}

func (f *runFlags) answerAll(ctx context.Context, s *complete.Service, x *iniService, list []config.Query, p complete.Params) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := make([]answered, len(list))
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, max(1, x.file.Parallel))
	for i := range out {
		out[i].done = make(chan struct{})
	}
	wg.Go(func() {
		for i := range list {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots; close(out[i].done) }()
				out[i].ids, out[i].a, out[i].err = answerQuery(ctx, s, x, list[i], p)
			})
		}
	})
	failed := failures{of: len(list)}
	for i := range list {
		<-out[i].done
		if out[i].err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("query %d: %w", i+1, out[i].err)
			}
			failed.tell(titleOf("query", i, shownQuery(list[i])), out[i].err)
			continue
		}
		if err := f.printQuery(i, list[i], &out[i]); err != nil {
			return err
		}
	}
	return failed.err()
}

// answerQuery answers one query of a list.
func answerQuery(ctx context.Context, s *complete.Service, x *iniService, q config.Query, p complete.Params) (ids []int32, a complete.Answer, err error) {
	if ids, err = queryIDs(ctx, s, x, q, &p); err != nil {
		return nil, a, err
	}
	run, err := s.Start(ctx, ids, p)
	if err != nil {
		return nil, a, err
	}
	a, err = run.Collect(nil)
	a.Text = q.Prefix + a.Text
	return ids, a, err
}

// queryIDs are the tokens of a query's prompt, or of the source where the model
// is an encoder-decoder, whose answer then begins as the templates say.
func queryIDs(ctx context.Context, s *complete.Service, x *iniService, q config.Query, p *complete.Params) (ids []int32, err error) {
	encoder, decoder := orTemplate(q.Encoder, x.model.Encoder), orTemplate(q.Decoder, x.model.Prompt)
	switch {
	case s.Encodes():
		if decoder != nil {
			begin, err := x.frameIDs(s.Tok, decoder, q, decodes)
			if err != nil {
				return nil, err
			}
			p.BeginWith(begin)
		} else if q.Prefix != "" {
			return nil, fmt.Errorf("res_prefix: an encoder-decoder's answer can begin with a text only behind a decoder_input_template")
		}
		if encoder != nil {
			return x.frameIDs(s.Tok, encoder, q, encodes)
		}
		return s.Text(withSystem(q.System, q.Text), false)
	case q.Decoder != nil:
		ids, err = x.frameIDs(s.Tok, q.Decoder, q, decodes)
		if pre := s.Tok.Prefix(); err == nil && len(pre) > 0 && (len(ids) < len(pre) || !slices.Equal(ids[:len(pre)], pre)) {
			ids = append(slices.Clone(pre), ids...)
		}
		return ids, err
	case s.Converses():
		in := chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: q.Text}}}
		if q.System != "" {
			in.Messages = append([]chat.Message{{Role: "system", Content: q.System}}, in.Messages...)
		}
		if q.Prefix != "" { // an open turn: the template goes on with the answer's beginning
			in.AddGenerationPrompt = false
			in.Messages = append(in.Messages, chat.Message{Role: "assistant", Content: q.Prefix})
		}
		return s.ChatWithin(ctx, 0, in)
	}
	return s.Text(withSystem(q.System, q.Text)+q.Prefix, false)
}

func orTemplate(t, d *config.Template) *config.Template {
	if t != nil {
		return t
	}
	return d
}

func withSystem(system, text string) string {
	if system == "" {
		return text
	}
	return system + "\n" + text
}

// shownQuery is the text that a query goes by.
func shownQuery(q config.Query) string {
	if q.Text == "" {
		return q.Prefix
	}
	return q.Text
}

func (f *runFlags) printQuery(i int, q config.Query, x *answered) error {
	if f.json {
		return printAnswer(os.Stdout, x.ids, x.a)
	}
	t := x.a.Timings
	_, err := fmt.Printf("%s\n%s\n── %d tokens, %s\n\n", titleOf("query", i, shownQuery(q)), x.a.Text, t.Tokens, rate(t.Tokens-1, t.Decode.Seconds()))
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
