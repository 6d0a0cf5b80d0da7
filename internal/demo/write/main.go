// Command write lets a model write short stories for the training of the demo
// model: many at once through the engine, a JSON line each, with the token ids
// and the likeliest tokens of every position as soft targets. It appends to
// its output and goes on where it stopped. With -judge it tells instead what
// it thinks of given texts. It must never be imported.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
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
	var o options
	flag.IntVar(&o.parallel, "parallel", 6, "prompts at once")
	flag.IntVar(&o.each, "each", 8, "stories a prompt; they share its keys and values")
	flag.IntVar(&o.threads, "threads", 0, "threads")
	flag.IntVar(&o.top, "top", 6, "likeliest tokens kept a position")
	flag.IntVar(&o.first, "first", 0, "number of the first prompt: files of several writers begin far apart")
	flag.BoolVar(&o.judges, "judge", false, "read lines {\"text\": …} from standard input and write what the model thinks of each")
	flag.StringVar(&o.asked, "asked", "", "judge texts as answers to this")
	flag.Parse()
	if err := run(*path, *out, *count, o); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

// options of the writing.
type options struct {
	parallel, each, threads, top, first int
	judges                              bool
	asked                               string
}

func run(path, out string, count int, o options) error {
	m, err := model.Open(path, model.Options{Threads: o.threads, Context: 512, Rows: 256, Seqs: o.parallel * o.each})
	if err != nil {
		return err
	}
	if err := m.Load(); err != nil {
		m.Close()
		return err
	}
	s, err := complete.New(m, 4*o.parallel*o.each)
	if err != nil {
		m.Close()
		return err
	}
	defer s.Close()
	if o.judges {
		return o.judge(s, o.asked, os.Stdin, os.Stdout)
	}
	return write(s, out, count, o)
}

func write(s *complete.Service, out string, count int, o options) error {
	done, err := lines(out)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := spread(s, f, done, count, o); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// spread keeps as many prompts under way as the options say until there are
// `count` stories.
func spread(s *complete.Service, f io.Writer, done, count int, o options) error {
	w := &writer{out: f, o: o, next: done / o.each, end: count / o.each, start: time.Now()}
	if done > 0 {
		w.next += o.parallel // those that were under way, of which some are there
	}
	var wg sync.WaitGroup
	for range o.parallel {
		wg.Go(func() {
			for i, ok := w.take(); ok; i, ok = w.take() {
				list, err := o.stories(s, uint64(o.first+i))
				w.put(i, list, err)
			}
		})
	}
	wg.Wait()
	return w.failed
}

// writer hands out the numbers of prompts and writes what comes back.
type writer struct {
	mu        sync.Mutex
	out       io.Writer
	o         options
	next, end int
	start     time.Time
	tokens    int
	failed    error
}

func (w *writer) take() (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	return w.next - 1, w.failed == nil && w.next <= w.end
}

func (w *writer) put(i int, list []story, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := json.NewEncoder(w.out)
	for k := 0; k < len(list) && err == nil; k++ {
		err = e.Encode(list[k])
		w.tokens += len(list[k].IDs)
	}
	if err != nil && w.failed == nil {
		w.failed = err
	}
	if i%20 == 0 {
		fmt.Fprintf(os.Stderr, "prompt %d of %d, %d tokens, %.0f a second\n", i, w.end, w.tokens, float64(w.tokens)/time.Since(w.start).Seconds())
	}
}

// stories writes the stories of prompt i. One that did not end by itself has
// no end token.
func (o options) stories(s *complete.Service, i uint64) ([]story, error) {
	in := chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: prompt(i)}}}
	ids, err := s.Chat(in)
	if err != nil {
		return nil, err
	}
	p := sample.Defaults()
	p.Temperature, p.MinP, p.Seed, p.TopLogprobs, p.Logprobs = 0.8, 0.05, i, o.top, true
	run, err := s.Start(context.Background(), ids, complete.Params{Sample: p, Max: 220, N: o.each})
	if err != nil {
		return nil, err
	}
	list := make([]story, o.each)
	for {
		c, err := run.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err == nil {
			err = c.Err
		}
		if err != nil {
			return nil, err
		}
		list[c.Choice].add(c)
	}
}

func (st *story) add(c complete.Chunk) {
	var top, prob []int32
	for _, t := range c.Top {
		if pr := int32(1000*math.Exp(float64(t.Logprob)) + .5); pr > 0 {
			top, prob = append(top, t.ID), append(prob, pr)
		}
	}
	st.IDs, st.Top, st.Prob = append(st.IDs, c.ID), append(st.Top, top), append(st.Prob, prob)
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
