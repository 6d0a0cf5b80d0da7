package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

// translators are the zoo's encoder-decoders.
var translators = []string{"t5", "mt5", "longt5", "bart", "plbart", "pegasus", "blenderbot", "marian", "m2m_100", "nllb-moe"}

// sourceGolden is a reference output of an encoder-decoder: a row of logits for
// each of the decoder's ids.
type sourceGolden struct {
	IDs     []int32     `json:"input_ids"`
	Decoder []int32     `json:"decoder_input_ids"`
	Logits  [][]float32 `json:"logits"`
}

// TestZooSource holds every encoder-decoder against PyTorch's logits: exact,
// compiled, and node by node; with the decoder's ids at once, in chunks and one
// by one.
func TestZooSource(t *testing.T) {
	dir := zoo(t)
	for _, family := range translators {
		t.Run(family, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(dir, family, "golden.json"))
			var g sourceGolden
			if err == nil {
				err = json.Unmarshal(raw, &g)
			}
			if err != nil {
				t.Fatal(err)
			}
			testSource(t, filepath.Join(dir, family), g)
		})
	}
}

// TestSourceGGUF holds the GGUF binding of encoder-decoders against PyTorch's
// logits: files by llama.cpp's converter, made by scripts/reference/zoo_gguf.py.
func TestSourceGGUF(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "gguf-source", "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(strings.TrimSuffix(file, ".gguf") + ".json")
			var g sourceGolden
			if err == nil {
				err = json.Unmarshal(raw, &g)
			}
			if err != nil {
				t.Fatal(err)
			}
			testSource(t, file, g)
		})
	}
}

func testSource(t *testing.T, path string, g sourceGolden) {
	o := model.Options{Threads: 2, Keys: "f32", Values: "f32", Context: 128, NoTokenizer: true}
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x := m.Exact()
	if _, err := x.Run(source(g.IDs)); err != nil {
		t.Fatal(err)
	}
	exact, err := x.Run(sequence(g.Decoder, 0, len(g.Decoder)))
	if err != nil {
		t.Fatal(err)
	}
	within(t, "exact", exact, g.Logits, 1e-4)
	for _, unfused := range []bool{false, true} {
		o.Unfused = unfused
		m, err := model.Open(path, o)
		if err == nil {
			err = m.Load()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range []int{len(g.Decoder), 4, 1} {
			got := translate(t, m, g, chunk)
			within(t, fmt.Sprintf("compiled, chunks of %d, unfused %v", chunk, unfused), got, g.Logits, 1e-4)
			within(t, fmt.Sprintf("compiled against exact, chunks of %d, unfused %v", chunk, unfused), got, exact, 1e-5)
		}
		m.Close()
	}
}

// source is a batch that encodes ids, in blocks from 8 on.
func source(ids []int32) *batch.Batch {
	b := sequence(ids, 0, len(ids))
	b.Encode, b.Out = true, nil
	for i := range b.Seqs[0].Spans {
		b.Seqs[0].Spans[i].Block += 8
	}
	return b
}

func translate(t *testing.T, m *model.Model, g sourceGolden, chunk int) (out [][]float32) {
	t.Helper()
	e := source(g.IDs)
	if err := m.Forward(e); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(g.Decoder); at += chunk {
		n := min(chunk, len(g.Decoder)-at)
		b := sequence(g.Decoder, at, n)
		b.Seqs[0].Memory, b.Seqs[0].Counted = e.Seqs[0].Spans, int32(at)
		if err := m.Forward(b); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			out = append(out, append([]float32{}, m.Logits(i)...))
		}
	}
	return out
}

// TestSourceIsInvariant holds the promise of bits on encoder-decoders: alone or
// in company with other sources, with any number of threads, in two stages, as
// two answers that share a source, and after parking.
func TestSourceIsInvariant(t *testing.T) {
	dir := zoo(t)
	for _, family := range translators {
		t.Run(family, func(t *testing.T) {
			path := filepath.Join(dir, family)
			var want []string
			for _, v := range []struct {
				name             string
				threads, company int
				cut              []int
				blocks           int
			}{{"alone", 2, 0, nil, 80}, {"one thread", 1, 0, nil, 80}, {"in company", 3, 6, nil, 80}, {"two stages", 2, 3, []int{1}, 80},
				{"cut in the decoder", 2, 0, []int{3}, 80}, {"parked", 2, 4, nil, 9}} {
				m, err := model.Open(path, model.Options{Threads: v.threads, Cut: v.cut, NoTokenizer: true})
				if err != nil {
					t.Fatal(err)
				}
				if err = m.Reserve(context64, v.blocks); err == nil {
					err = m.Load()
				}
				if err != nil {
					t.Fatal(err)
				}
				got, parked := translations(t, m, v.company)
				if (parked > 0) != (v.name == "parked") {
					t.Errorf("%s: %d parked", v.name, parked)
				}
				m.Close()
				if want == nil {
					want = got
				}
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("%s: answer %d is\n%s\nalone\n%s", v.name, i, got[i], want[i])
					}
				}
			}
		})
	}
}

// translations are the answers to three sources, each drawn twice from one
// encoding, with others that come and go.
func translations(t *testing.T, m *model.Model, company int) (out []string, parked int) {
	t.Helper()
	e := engine.New(m, engine.Options{Blocks: m.Limits.Blocks, Limits: sched.Limits{Rows: 40, Seqs: 12, Tokens: m.Limits.Tokens, Source: m.Limits.Source}})
	defer e.Close()
	var streams []*engine.Stream
	for i, n := range []int{3, 21, 40} {
		p := sample.Defaults()
		p.TopLogprobs, p.Seed = 5, uint64(i)
		for k := range company {
			r := engine.Request{Source: tokens(100+k, 1+k*7%40, m.SourceEmbeds()), Prompt: tokens(k, 1+k%3, m.Embeds()), Params: p, Max: 12 + k}
			if _, err := e.Submit(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
		r := engine.Request{Source: tokens(i, n, m.SourceEmbeds()), Prompt: tokens(i, 1+i, m.Embeds()), Params: p, Max: 36, N: 2}
		s, err := e.Submit(context.Background(), r)
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
