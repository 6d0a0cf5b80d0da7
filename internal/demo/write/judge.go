package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/tokenizer"
)

// judged is a line of the answer to a text: its tokens and what the model
// expected at each place, the one after the last included (as in story), and
// the sum of the losses of N tokens in nats. The first token of a text that
// follows nothing has no loss.
type judged struct {
	story
	NLL float64 `json:"nll"`
	N   int     `json:"tokens"`
}

// judge reads lines {"text": …} and writes for each, in no certain order, how
// the model finds it: as a text by itself, or as the answer to asked.
func (o options) judge(s *complete.Service, asked string, r io.Reader, w io.Writer) error {
	var before []int32
	if asked != "" {
		var err error
		if before, err = s.Chat(chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: asked}}}); err != nil {
			return err
		}
	}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	out, room := json.NewEncoder(w), make(chan bool, o.parallel)
	for in.Scan() {
		var line struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return fmt.Errorf("a line to judge: %w", err)
		}
		room <- true
		wg.Go(func() {
			j, err := o.judgeOne(s, before, line.Text)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = out.Encode(j)
			}
			if err != nil && failed == nil {
				failed = err
			}
			<-room
		})
	}
	wg.Wait()
	if failed != nil {
		return failed
	}
	return in.Err()
}

func (o options) judgeOne(s *complete.Service, before []int32, text string) (j judged, err error) {
	ids, err := s.Tok.TryEncode(text, tokenizer.Options{})
	if err != nil {
		return j, err
	}
	p := complete.Params{Sample: sample.Defaults(), Max: 1, PromptLogprobs: true}
	p.Sample.Logprobs, p.Sample.TopLogprobs = true, o.top
	run, err := s.Start(context.Background(), append(append([]int32{}, before...), ids...), p)
	if err != nil {
		return j, err
	}
	if len(before) == 0 && len(ids) > 0 {
		j.IDs, j.Top, j.Prob = ids[:1:1], [][]int32{nil}, [][]int32{nil}
	}
	for skip := max(0, len(before)-1); ; skip-- {
		c, err := run.Next()
		if errors.Is(err, io.EOF) {
			return j, nil
		}
		if err == nil {
			err = c.Err
		}
		if err != nil {
			return j, err
		}
		if skip > 0 {
			continue
		}
		if c.Prompt {
			j.NLL -= float64(c.Logprob)
			j.N++
		}
		j.add(c)
	}
}
