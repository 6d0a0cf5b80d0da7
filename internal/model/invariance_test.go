package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/kv"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
	"github.com/inferflow/inferflow/quant"
)

// The promise of DESIGN.md, section 1: the answer to a request is the same in
// bits alone or in company, with any number of threads, however its prompt is
// cut, in one stage or several, as one prompt or as turns of a conversation.

// tinies are the models that the promise is held on, by the types of their weights.
var tinies = map[string]modeltest.Options{
	"F32":  {Types: map[string]quant.Type{"": quant.F32}},
	"F16":  {Types: map[string]quant.Type{"": quant.F16}},
	"Q4_0": {Types: map[string]quant.Type{"": quant.Q4_0, "token_embd": quant.Q8_0, "output": quant.Q8_0}, Heads: 6, KVHeads: 2, Dim: 96},
	"Q8_0": {Types: map[string]quant.Type{"": quant.Q8_0}, Layers: 3},
	"Q4_1": {Types: map[string]quant.Type{"": quant.Q4_1, "token_embd": quant.Q8_0}},
	"Q4_K_M": {Types: map[string]quant.Type{"": quant.Q4_K, "attn_v": quant.Q6_K, "ffn_down": quant.Q6_K, "output": quant.Q6_K},
		Dim: 256, Heads: 8, KVHeads: 2, FFN: 512},
	"Q3_K":  {Types: map[string]quant.Type{"": quant.Q3_K, "attn_v": quant.Q5_K, "output": quant.Q2_K}, Dim: 256, Heads: 4, KVHeads: 4, FFN: 256},
	"MXFP4": {Types: map[string]quant.Type{"": quant.MXFP4, "attn_k": quant.IQ4_NL, "attn_v": quant.Q5_1, "output": quant.BF16}},
}

// variant is a way to run a model that must change no bit.
type variant struct {
	name    string
	o       model.Options
	company int // further requests at the same time
	states  int // slots of recurrent states, where the model keeps some; 0: enough
}

var variants = []variant{
	{name: "alone, two threads", o: model.Options{Threads: 2}},
	{name: "one thread", o: model.Options{Threads: 1}},
	{name: "three threads", o: model.Options{Threads: 3}},
	{name: "batch of 16", o: model.Options{Threads: 2}, company: 15},
	{name: "batch of 16, one thread", o: model.Options{Threads: 1}, company: 15},
	{name: "chunks of 7", o: model.Options{Threads: 2, Rows: 7}},
	{name: "chunks of 7 in company", o: model.Options{Threads: 2, Rows: 7}, company: 4},
	{name: "two stages", o: model.Options{Threads: 2, Cut: []int{1}}},
	{name: "three states", o: model.Options{Threads: 2}, company: 5, states: 3},
	{name: "two stages in company", o: model.Options{Threads: 1, Cut: []int{1}, Rows: 33}, company: 15},
}

const (
	context64 = 64 // tokens of a sequence
	answer    = 14
)

func TestAnswerIsInvariant(t *testing.T) {
	for name, o := range tinies {
		t.Run(name, func(t *testing.T) {
			o.Context, o.Seed = 128, 7
			testInvariant(t, modeltest.Write(t, t.TempDir(), o), variants)
		})
	}
}

// kinds are families of the zoo that differ in what they keep of a sequence, in
// how they attend, or in what they mix: the promise is held on each.
var kinds = []string{"llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "phi3", "gpt2", "mixtral", "olmo2", "starcoder2", "gpt_oss",
	"bloom", "doge", "gemma3n_text", "gemma4_text", "ministral3", "opt", "exaone4", "llama4_text", "deepseek_v3", "glm_moe_dsa", "hy_v4", "jetmoe",
	"mamba2", "falcon_h1", "granitemoehybrid", "nemotron_h", "zamba2", "kimi_linear", "olmo_hybrid", "lfm2", "lfm2_moe", "qwen3_next", "qwen3_5_text",
	"qwen3_5_moe_text"}

// TestAnswerIsInvariantZoo holds the promise on them, also where there are fewer
// slots for recurrent states than requests.
func TestAnswerIsInvariantZoo(t *testing.T) {
	dir := zoo(t)
	for _, family := range kinds {
		t.Run(family, func(t *testing.T) { testInvariant(t, dir+"/"+family, brief) })
	}
}

// brief are the variants that differ most; the models of tinies run them all.
var brief = []variant{variants[0], variants[4], variants[6], variants[8], variants[9]}

func testInvariant(t *testing.T, path string, variants []variant) {
	var want []string
	var rows map[[2]int][]float32
	for _, v := range variants {
		m := load(t, path, v.o)
		got := answers(t, m, v.company, v.states)
		if want == nil {
			want = got
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: answer %d differs\n%s\n%s\nalone", v.name, i, got[i], want[i])
			}
		}
		if rows == nil {
			rows = together(t, m)
		}
		for name, schedule := range schedules {
			checkRows(t, m, v.name+", "+name, schedule, rows)
		}
		checkFork(t, m, v.name, rows)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func load(t *testing.T, path string, o model.Options) *model.Model {
	t.Helper()
	o.NoTokenizer = true
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Reserve(context64, 80), m.Load()); err != nil {
		t.Fatal(err)
	}
	return m
}

// requests are three prompts, each asked greedily, drawn, and drawn twice at once.
func requests(m *model.Model) (out []engine.Request) {
	for i, n := range []int{3, 21, 40} {
		p := sample.Defaults()
		p.TopLogprobs, p.Seed = 20, uint64(i)
		greedy := p
		greedy.Temperature = 0
		for _, q := range []sample.Params{greedy, p} {
			out = append(out, engine.Request{Prompt: tokens(i, n, m.Vocab()), Params: q, Max: answer, PromptLogprobs: i == 1})
		}
		out = append(out, engine.Request{Prompt: tokens(i, n, m.Vocab()), Params: p, Max: answer, N: 2})
	}
	return out
}

func tokens(seed, n, vocab int) []int32 {
	rng := rand.New(rand.NewPCG(uint64(seed), 99))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.IntN(vocab))
	}
	return out
}

// answers runs each request, with others that come and go, and renders what it
// got to the last bit.
func answers(t *testing.T, m *model.Model, company, states int) []string {
	t.Helper()
	if states = min(states, m.Limits.States); states == 0 {
		states = m.Limits.States
	}
	e := engine.New(m, engine.Options{Limits: sched.Limits{Rows: m.Limits.Rows, Seqs: m.Limits.Seqs, Tokens: m.Limits.Tokens, States: states}, Blocks: m.Limits.Blocks})
	defer e.Close()
	var out []string
	for i, r := range requests(m) {
		ctx, stop := context.WithCancel(context.Background())
		for k := range company {
			o := r
			o.Prompt, o.Max, o.N, o.PromptLogprobs = tokens(100+k, 1+k*5%37, m.Vocab()), 3+k, 1, false
			if _, err := e.Submit(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
		s, err := e.Submit(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := render(s)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		stop()
		out = append(out, text)
	}
	return out
}

func render(s *engine.Stream) (string, error) {
	parts := map[int]string{}
	for {
		ev, err := s.Next(context.Background())
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Sprint(parts), nil
		case err != nil:
			return "", err
		case ev.Err != nil:
			return "", ev.Err
		}
		line := fmt.Sprintf("%d:%08x", ev.ID, math.Float32bits(ev.Logprob))
		for _, x := range ev.Top {
			line += fmt.Sprintf(",%d:%08x", x.ID, math.Float32bits(x.Logprob))
		}
		parts[ev.Choice] += line + string(ev.Finish) + "\n"
	}
}

// seats are sequences in blocks of a pool.
type seats struct {
	pool *kv.Pool
	seqs map[int]*kv.Sequence
	text func(seq int) []int32

	copies []batch.StateCopy // of forks, for the next batch; the slot of a sequence is its number
}

const (
	people = 3
	length = 45
)

func newSeats(m *model.Model) *seats {
	return &seats{pool: kv.NewPool(m.Limits.Blocks), seqs: map[int]*kv.Sequence{}, text: func(seq int) []int32 { return tokens(seq, length, m.Vocab()) }}
}

// run appends n tokens to each named sequence in one batch, in chunks that the
// model takes, and adds all their rows to got.
func (s *seats) run(t *testing.T, m *model.Model, got map[[2]int][]float32, parts ...[2]int) {
	t.Helper()
	b := &batch.Batch{Copies: s.copies}
	s.copies = nil
	for _, p := range parts {
		if s.seqs[p[0]] == nil {
			s.seqs[p[0]] = s.pool.NewSequence()
		}
		q := s.seqs[p[0]]
		start, row := q.Len(), b.Rows()
		if err := q.Grow(p[1]); err != nil {
			t.Fatal(err)
		}
		for i, id := range s.text(p[0])[start : start+p[1]] {
			b.Out = append(b.Out, int32(b.Rows()))
			b.Tokens, b.Pos = append(b.Tokens, id), append(b.Pos, int32(start+i))
		}
		b.Seqs = append(b.Seqs, batch.Seq{ID: int32(p[0]), Row: int32(row), N: int32(p[1]), Start: int32(start), State: int32(p[0]), Length: length, Spans: q.Spans()})
	}
	if err := m.Forward(b); err != nil {
		t.Fatal(err)
	}
	row := 0
	for i, p := range parts {
		for k := range p[1] {
			got[[2]int{p[0], int(b.Seqs[i].Start) + k}] = slices.Clone(m.Logits(row))
			row++
		}
	}
}

// together is the rows of all sequences, prefilled whole in one batch.
func together(t *testing.T, m *model.Model) map[[2]int][]float32 {
	got := map[[2]int][]float32{}
	newSeats(m).run(t, m, got, [2]int{0, length}, [2]int{1, length}, [2]int{2, length})
	return got
}

// schedules compute all positions of the three sequences in other ways.
var schedules = map[string]func(t *testing.T, m *model.Model, s *seats, got map[[2]int][]float32){
	"each alone": func(t *testing.T, m *model.Model, s *seats, got map[[2]int][]float32) {
		for q := range people {
			s.chunks(t, m, got, q, length, min(m.Limits.Rows, length))
		}
	},
	"chunks of 7": func(t *testing.T, m *model.Model, s *seats, got map[[2]int][]float32) {
		for q := range people {
			s.chunks(t, m, got, q, length, 7)
		}
	},
	"token by token": func(t *testing.T, m *model.Model, s *seats, got map[[2]int][]float32) {
		for range length {
			s.run(t, m, got, [2]int{2, 1}, [2]int{0, 1}, [2]int{1, 1})
		}
	},
	"two turns": func(t *testing.T, m *model.Model, s *seats, got map[[2]int][]float32) {
		for q := range people { // a prompt, its answer, the next prompt, the next answer
			for _, turn := range [][2]int{{12 + 3*q, 7}, {9, 1}, {10, 5}} {
				s.chunks(t, m, got, q, turn[0], turn[1])
			}
			s.chunks(t, m, got, q, length-s.seqs[q].Len(), 1)
		}
	},
}

func (s *seats) chunks(t *testing.T, m *model.Model, got map[[2]int][]float32, seq, n, step int) {
	t.Helper()
	for n > 0 {
		k := min(n, step)
		s.run(t, m, got, [2]int{seq, k})
		n -= k
	}
}

func checkRows(t *testing.T, m *model.Model, name string, schedule func(*testing.T, *model.Model, *seats, map[[2]int][]float32), want map[[2]int][]float32) {
	t.Helper()
	got := map[[2]int][]float32{}
	schedule(t, m, newSeats(m), got)
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows of %d", name, len(got), len(want))
	}
	sameRows(t, name, got, want)
}

func sameRows(t *testing.T, name string, got, want map[[2]int][]float32) {
	t.Helper()
	for at, row := range got {
		for k, v := range want[at] {
			if math.Float32bits(row[k]) != math.Float32bits(v) {
				t.Fatalf("%s: sequence %d, position %d, logit %d is %x, was %x", name, at[0], at[1], k, math.Float32bits(row[k]), math.Float32bits(v))
			}
		}
	}
}

// checkFork lets three sequences share a prompt that ends inside a tile of 16
// positions and holds each against one in blocks of its own.
func checkFork(t *testing.T, m *model.Model, name string, want map[[2]int][]float32) {
	t.Helper()
	const at = 21
	s, got := newSeats(m), map[[2]int][]float32{}
	s.chunks(t, m, got, 0, at, 7)
	sameRows(t, name+", forked", got, want)
	own := s.text
	for q := 1; q < people; q++ {
		s.seqs[q] = s.seqs[0].Fork()
		s.copies = append(s.copies, batch.StateCopy{From: 0, To: int32(q)})
	}
	s.text = func(seq int) []int32 { return slices.Concat(own(0)[:at], own(seq)[at:]) }
	for range 3 {
		s.run(t, m, got, [2]int{1, 1}, [2]int{0, 1}, [2]int{2, 2})
	}
	alone, fresh := map[[2]int][]float32{}, newSeats(m)
	fresh.text = s.text
	for q := range people {
		fresh.chunks(t, m, alone, q, s.seqs[q].Len(), min(m.Limits.Rows, length))
	}
	sameRows(t, name+", forked", got, alone)
}

// TestParking gives the engine too little memory for the requests at hand:
// some are parked and computed again, to the same bits.
func TestParking(t *testing.T) {
	path := modeltest.Write(t, t.TempDir(), modeltest.Options{Context: 128, Seed: 3, Types: map[string]quant.Type{"": quant.Q8_0}})
	m := load(t, path, model.Options{Threads: 2})
	defer m.Close()
	limits := sched.Limits{Rows: 64, Seqs: 16, Tokens: context64}
	run := func(blocks, company int) (out []string, parked int) {
		e := engine.New(m, engine.Options{Limits: limits, Blocks: blocks})
		defer e.Close()
		var streams []*engine.Stream
		for k := range 1 + company {
			p := sample.Defaults()
			p.TopLogprobs, p.Seed = 5, uint64(k)
			s, err := e.Submit(context.Background(), engine.Request{Prompt: tokens(k, 14, m.Vocab()), Params: p, Max: 40})
			if err != nil {
				t.Fatal(err)
			}
			streams = append(streams, s)
		}
		for _, s := range streams {
			text, err := render(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, text)
		}
		return out, e.Stats().Parked
	}
	want, parked := run(80, 7)
	if parked != 0 {
		t.Errorf("%d parked with memory for all", parked)
	}
	got, parked := run(9, 7)
	if parked == 0 {
		t.Error("none parked with memory for two")
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("answer %d differs after parking\n%s\n%s", i, got[i], want[i])
		}
	}
}
