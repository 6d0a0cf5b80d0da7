// Command write lets a model write short stories for the training of the demo
// model: many at once through the engine, a JSON line each, with the token ids
// and the likeliest tokens of every position as soft targets. It appends to
// its output and goes on where it stopped. It must never be imported.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
)

// story is a line of the output. Top holds for each token of IDs the likeliest
// ids and Prob their probabilities in thousandths.
type story struct {
	IDs  []int32   `json:"ids"`
	Top  [][]int32 `json:"top"`
	Prob [][]int32 `json:"prob"`
}

func main() {
	path := flag.String("model", "", "model file")
	out := flag.String("out", "stories.jsonl", "file to append to")
	count := flag.Int("n", 10000, "stories in all")
	parallel := flag.Int("parallel", 32, "stories at once")
	threads := flag.Int("threads", 0, "threads")
	top := flag.Int("top", 6, "likeliest tokens kept a position")
	flag.Parse()
	if err := write(*path, *out, *count, *parallel, *threads, *top); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func write(path, out string, count, parallel, threads, top int) error {
	done, err := lines(out)
	if err != nil {
		return err
	}
	m, err := model.Open(path, model.Options{Threads: threads, Context: 512, Rows: 256, Seqs: parallel})
	if err != nil {
		return err
	}
	if err := m.Load(); err != nil {
		return err
	}
	s, err := complete.New(m, 4*parallel)
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	return spread(s, f, done, count, parallel, top)
}

// spread keeps `parallel` stories under way until there are `count`.
func spread(s *complete.Service, f io.Writer, done, count, parallel, top int) error {
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	next, t0, tokens := done, time.Now(), 0
	for range parallel {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				mu.Lock()
				i := next
				next++
				stop := failed != nil || i >= count
				mu.Unlock()
				if stop {
					return
				}
				st, err := one(s, uint64(i), top)
				mu.Lock()
				if err == nil && st != nil {
					err = json.NewEncoder(f).Encode(st)
					tokens += len(st.IDs)
				}
				if err != nil && failed == nil {
					failed = err
				}
				if i%100 == 0 {
					fmt.Fprintf(os.Stderr, "story %d of %d, %d tokens, %.0f a second\n", i, count, tokens, float64(tokens)/time.Since(t0).Seconds())
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	return failed
}

// one writes story i; nil where the answer did not end by itself.
func one(s *complete.Service, i uint64, top int) (*story, error) {
	in := chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: prompt(i)}}}
	ids, err := s.Chat(in)
	if err != nil {
		return nil, err
	}
	p := sample.Defaults()
	p.Temperature, p.TopP, p.Seed, p.TopLogprobs, p.Logprobs = 0.8, 0.95, i, top, true
	run, err := s.Start(context.Background(), ids, complete.Params{Sample: p, Max: 220})
	if err != nil {
		return nil, err
	}
	st := &story{}
	for {
		c, err := run.Next()
		if errors.Is(err, io.EOF) {
			return st, nil
		}
		if err == nil {
			err = c.Err
		}
		if err != nil {
			return nil, err
		}
		st.IDs = append(st.IDs, c.ID)
		st.Top, st.Prob = append(st.Top, nil), append(st.Prob, nil)
		n := len(st.IDs) - 1
		for _, t := range c.Top {
			if pr := int32(1000*exp(t.Logprob) + .5); pr > 0 {
				st.Top[n], st.Prob[n] = append(st.Top[n], t.ID), append(st.Prob[n], pr)
			}
		}
	}
}

// prompt asks for story i: some words that it must hold, and a mood.
func prompt(i uint64) string {
	r := rand.New(rand.NewPCG(i, 7))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	return fmt.Sprintf("Write a very short %s story for small children, of about 100 words, in simple words and short sentences. %s It is about %s and %s. %s",
		pick(moods), pick(openings), pick(heroes), pick(things), pick(turns))
}

// lines counts the stories that are there; a half-written last line is cut off.
func lines(path string) (int, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	n, size := 0, int64(0)
	for {
		l, err := r.ReadBytes('\n')
		if err == io.EOF {
			return n, f.Truncate(size)
		}
		if err != nil {
			return 0, err
		}
		size += int64(len(l))
		n++
	}
}
