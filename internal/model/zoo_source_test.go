package model_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

// translators are the zoo's encoder-decoders.
var translators = []string{"t5", "mt5", "longt5", "bart", "plbart", "pegasus", "blenderbot", "marian", "m2m_100", "nllb-moe"}

// TestSourceGGUF holds the GGUF binding of encoder-decoders against PyTorch's
// logits: files by llama.cpp's converter, made by scripts/reference/zoo_gguf.py.
func TestSourceGGUF(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "gguf-source", "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			testFamily(t, file, readGolden(t, strings.TrimSuffix(file, ".gguf")+".json"))
		})
	}
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
