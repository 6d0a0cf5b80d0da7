package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/complete"
)

// queryTokens is the length of an answer to a query of a list, where no flag says another.
const queryTokens = 300

// queries answers the query list of an .ini file, as many at once as the file
// allows, and prints the answers in the order of the list.
func (f *runFlags) queries(ctx context.Context, path string, given func(string) bool, o func(*iniService) (*complete.Service, error)) error {
	ini, err := config.ReadINI(path)
	if err != nil {
		return err
	}
	q, err := ini.Queries()
	if err != nil {
		return err
	}
	for _, n := range q.Notes {
		notice(n)
	}
	x, err := readINIService(q.Service)
	if err != nil {
		return err
	}
	s, err := o(x)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := f.sampling.params(s.Defaults())
	if err != nil {
		return err
	}
	if q.Temperature >= 0 && !given("temperature") {
		p.Sample.Temperature = q.Temperature
	}
	if !given("seed") {
		p.Sample.Seed = q.Seed
	}
	if p.Max == 0 {
		p.Max = queryTokens
	}
	return f.answerAll(ctx, s, x, q.List, p)
}

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
				out[i].ids, out[i].a, out[i].err = answerQuery(ctx, s, list[i], p)
			})
		}
	})
	for i := range list {
		<-out[i].done
		if out[i].err != nil {
			return fmt.Errorf("query %d: %w", i+1, out[i].err)
		}
		if err := f.printQuery(i, list[i], &out[i]); err != nil {
			return err
		}
	}
	return nil
}

func answerQuery(ctx context.Context, s *complete.Service, q config.Query, p complete.Params) (ids []int32, a complete.Answer, err error) {
	if q.EncoderTemplate != "" || q.DecoderTemplate != "" {
		return nil, a, fmt.Errorf("encoder_input_template and decoder_input_template of a query are not served; use the model's tasks (inferflow run MODEL --task)")
	}
	if s.Converses() {
		in := chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: q.Text}}}
		if q.System != "" {
			in.Messages = append([]chat.Message{{Role: "system", Content: q.System}}, in.Messages...)
		}
		if q.Prefix != "" { // an open turn: the template goes on with the answer's beginning
			in.AddGenerationPrompt = false
			in.Messages = append(in.Messages, chat.Message{Role: "assistant", Content: q.Prefix})
		}
		ids, err = s.ChatWithin(ctx, 0, in)
	} else {
		ids, err = s.Text(q.Text+q.Prefix, false)
	}
	if err != nil {
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

func (f *runFlags) printQuery(i int, q config.Query, x *answered) error {
	if f.json {
		return printAnswer(os.Stdout, x.ids, x.a)
	}
	title := q.Text
	if title == "" {
		title = q.Prefix
	}
	quoted, _ := json.Marshal(title)
	t := x.a.Timings
	_, err := fmt.Printf("── query %d: %s\n%s\n── %d tokens, %s\n\n", i+1, quoted, x.a.Text, t.Tokens, rate(t.Tokens-1, t.Decode.Seconds()))
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
