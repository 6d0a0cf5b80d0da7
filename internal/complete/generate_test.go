package complete

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

// generated is what PyTorch's implementation generates greedily from a source
// under settings; scripts/reference/generate.py makes it.
type generated struct {
	Family   string
	Settings map[string]any
	Source   []int32
	IDs      []int32
}

// zooModel is a model of the zoo with a generation_config.json of its own.
func zooModel(t *testing.T, family string, settings map[string]any) *model.Model {
	t.Helper()
	return zooModelWith(t, family, settings, model.Options{Threads: 2, Keys: "f32", Values: "f32", Context: 64, NoTokenizer: true})
}

func zooModelWith(t *testing.T, family string, settings map[string]any, o model.Options) *model.Model {
	t.Helper()
	zoo := os.Getenv("INFERFLOW_ZOO")
	if zoo == "" {
		zoo = filepath.Join("..", "..", "..", "shared", "zoo")
	}
	dir := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		raw, err := os.ReadFile(filepath.Join(zoo, family, name))
		if os.IsNotExist(err) {
			t.Skipf("the zoo of tiny models is not at %s; set INFERFLOW_ZOO to its folder", zoo)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(settings)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "generation_config.json"), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(dir, o)
	if err == nil {
		err = m.Load()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestGenerate holds the answers of encoder-decoders under the settings of
// generation_config.json against the reference's, two at a time.
func TestGenerate(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "generate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []generated
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Family, func(t *testing.T) {
			m := zooModel(t, c.Family, c.Settings)
			s := &Service{Model: m}
			s.settle()
			e := engine.New(m, options(m))
			defer e.Close()
			r, _ := s.request(c.Source, &Params{Sample: s.Defaults(), N: 2})
			other := r
			other.Source, other.N = c.Source[:5], 1
			if _, err := e.Submit(context.Background(), other); err != nil {
				t.Fatal(err)
			}
			st, err := e.Submit(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range read(t, st, 2) {
				if !slices.Equal(got, c.IDs) {
					t.Errorf("choice %d is\n%v, the reference's\n%v", i, got, c.IDs)
				}
			}
		})
	}
}

// options are those of an engine that runs m.
func options(m *model.Model) engine.Options {
	return engine.Options{Blocks: m.Limits.Blocks, Limits: sched.Limits{Rows: m.Limits.Rows, Seqs: m.Limits.Seqs, Tokens: m.Limits.Tokens, States: m.Limits.States, Source: m.Limits.Source}}
}

// read collects the ids of a stream's choices.
func read(t *testing.T, s *engine.Stream, n int) [][]int32 {
	t.Helper()
	out := make([][]int32, n)
	for range 1000 {
		ev, err := s.Next(context.Background())
		if err != nil {
			return out
		}
		if ev.Err != nil {
			t.Fatal(ev.Err)
		}
		out[ev.Choice] = append(out[ev.Choice], ev.ID)
	}
	return out
}

// TestBeginning checks what an answer begins with and how long it may be.
func TestBeginning(t *testing.T) {
	s := &Service{Model: &model.Model{Generation: model.Generation{Decoding: model.Decoding{Start: 4, First: []int32{9}, MaxLength: 10, Last: []int32{1}, LengthPenalty: 1}}}}
	p := Params{}
	s.decode(&p)
	if !slices.Equal(p.begin, []int32{4, 9}) || p.Max != 8 {
		t.Errorf("begins with %v, then at most %d", p.begin, p.Max)
	}
	if r := s.rules(nil, len(p.begin), &p, nil); r == nil || r.MaxLength != 10 {
		t.Errorf("rules %+v", r)
	}
	p = Params{Max: 3}
	s.decode(&p)
	if r := s.rules(nil, len(p.begin), &p, nil); p.Max != 3 || r.MaxLength != 5 {
		t.Errorf("at most %d, rules %+v", p.Max, r)
	}
	s.Model.Generation.Decoding = model.Decoding{Start: 4}
	p = Params{Sample: sample.Defaults()}
	s.decode(&p)
	if r := s.rules(nil, len(p.begin), &p, nil); r != nil || p.Max != 0 {
		t.Errorf("at most %d, rules %+v", p.Max, r)
	}
}
