package complete

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
)

// searchedFor is what PyTorch's implementation finds with beams under settings;
// scripts/reference/beams.py makes it.
type searchedFor struct {
	Family   string
	Settings map[string]any
	Source   []int32
	Answers  []struct {
		IDs   []int32
		Score float64
	}
}

// TestBeams holds the answers and scores of searches with beams against the
// reference's, beside another request.
func TestBeams(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "beams.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []searchedFor
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		t.Run(fmt.Sprint(i, c.Family), func(t *testing.T) {
			m := zooModelWith(t, c.Family, c.Settings, model.Options{Threads: 2, Keys: "f32", Values: "f32", Context: 96, KVMemory: 1 << 20, NoTokenizer: true})
			s := &Service{Model: m}
			s.settle()
			e := engine.New(m, options(m))
			defer e.Close()
			sp := s.Defaults()
			sp.Temperature = 0 // a case without beams is greedy
			r, _ := s.request(c.Source, &Params{Sample: sp, N: len(c.Answers), Max: most(m.Encodes(), c.Settings)})
			if want := c.Settings["num_beams"].(float64); r.Params.Beams.On() != (want > 1) {
				t.Fatalf("beams %+v", r.Params.Beams)
			}
			other, _ := s.request(c.Source[:5], &Params{Sample: sp, Max: 20})
			if _, err := e.Submit(context.Background(), other); err != nil {
				t.Fatal(err)
			}
			st, err := e.Submit(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			got, scores := found(t, st, r.N)
			for i, a := range c.Answers {
				if !slices.Equal(got[i], a.IDs) || math.Abs(scores[i]-a.Score) > 1e-4 {
					t.Errorf("answer %d is\n%v, %.5f; the reference's\n%v, %.5f", i, got[i], scores[i], a.IDs, a.Score)
				}
			}
		})
	}
}

// most is what a user of a decoder says with max_new_tokens.
func most(encodes bool, settings map[string]any) int {
	if n, ok := settings["max_new_tokens"].(float64); ok && !encodes {
		return int(n)
	}
	return 0
}

// found collects the ids and scores of a search.
func found(t *testing.T, s *engine.Stream, n int) (ids [][]int32, scores []float64) {
	t.Helper()
	ids, scores = make([][]int32, n), make([]float64, n)
	for {
		ev, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return ids, scores
		}
		if err == nil {
			err = ev.Err
		}
		if err != nil {
			t.Fatal(err)
		}
		ids[ev.Choice] = append(ids[ev.Choice], ev.ID)
		if ev.Finish != engine.FinishNone {
			scores[ev.Choice] = float64(ev.Score)
		}
	}
}

// TestSearched says when a search is made, and with what.
func TestSearched(t *testing.T) {
	own := model.Decoding{Beams: 4, LengthPenalty: 0.6, Early: "true"}
	penalty, plain, early, no := 2.0, 1.0, sample.EarlyNever, sample.EarlyNo
	for _, c := range []struct {
		name string
		p    Params
		d    model.Decoding
		set  bool
		want sample.Beams
		bad  bool
	}{
		{"the files'", Params{}, own, false, sample.Beams{N: 4, LengthPenalty: 0.6, Early: sample.EarlyYes}, false},
		{"the request draws", Params{Draws: true}, own, false, sample.Beams{LengthPenalty: 1}, false},
		{"the service's settings draw", Params{}, own, true, sample.Beams{LengthPenalty: 1}, false},
		{"the files draw", Params{}, model.Decoding{Beams: 4, Sampled: true}, false, sample.Beams{LengthPenalty: 1}, false},
		{"none", Params{Search: Search{Beams: 1}}, own, false, sample.Beams{N: 1, LengthPenalty: 1}, false},
		{"the request's", Params{Draws: true, Search: Search{Beams: 8, LengthPenalty: &penalty, Early: &early}}, own, true, sample.Beams{N: 8, LengthPenalty: 2, Early: sample.EarlyNever}, false},
		{"the number alone", Params{Search: Search{Beams: 2}}, own, false, sample.Beams{N: 2, LengthPenalty: 0.6, Early: sample.EarlyYes}, false},
		{"all but the number", Params{Search: Search{LengthPenalty: &plain, Early: &no}}, own, false, sample.Beams{N: 4, LengthPenalty: 1}, false},
		{"defaults without beams", Params{Search: Search{LengthPenalty: &plain, Early: &no}}, model.Decoding{LengthPenalty: 1}, false, sample.Beams{LengthPenalty: 1}, false},
		{"a penalty without beams", Params{Search: Search{LengthPenalty: &penalty}}, model.Decoding{LengthPenalty: 1}, false, sample.Beams{}, true},
		{"an end without beams", Params{Search: Search{Beams: 1, Early: &early}}, own, false, sample.Beams{}, true},
	} {
		c.p.decoding = &c.d
		got, err := (&Service{set: c.set}).searched(sample.Defaults(), &c.p)
		if (err != nil) != c.bad || errors.Is(err, sample.ErrParams) != c.bad || !c.bad && got.Beams != c.want {
			t.Errorf("%s: %+v, %v", c.name, got.Beams, err)
		}
	}
	if _, err := ParseEarly("soon"); !errors.Is(err, sample.ErrParams) {
		t.Error(err)
	}
	hostile := &model.Model{Generation: model.Generation{Decoding: model.Decoding{Beams: 1 << 30, LengthPenalty: 1e300}}}
	s := &Service{Model: hostile}
	if s.settle(); len(s.Notes) != 1 || hostile.Generation.Decoding.Beams != 0 {
		t.Errorf("notes %q, %+v", s.Notes, hostile.Generation.Decoding)
	}
	if n := decodingNotes(model.Decoding{Beams: 4, Sampled: true, Unserved: []string{"guidance_scale"}}); len(n) != 2 {
		t.Errorf("notes %q", n)
	}
}

// TestOldFolder: without a generation_config.json the same settings count in
// config.json, but not in one beside it.
func TestOldFolder(t *testing.T) {
	settings := map[string]any{"num_beams": 5, "max_length": 40, "early_stopping": true, "no_repeat_ngram_size": 2, "forced_bos_token_id": 101, "length_penalty": 1.5, "repetition_penalty": 1.2}
	m := zooModel(t, "m2m_100", map[string]any{"decoder_start_token_id": 2})
	dir := m.Path
	m.Close()
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	maps.Copy(config, settings)
	if raw, err = json.Marshal(config); err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	request := func() engine.Request {
		m, err := model.Open(dir, model.Options{Threads: 1, Context: 64, NoTokenizer: true})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := &Service{Model: m}
		s.settle()
		r, err := s.request([]int32{5, 6, 7}, &Params{Sample: s.Defaults()})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := request(); r.Params.Beams.On() || r.Params.Rules != nil || len(r.Prompt) != 1 || r.Params.Temperature != 0 {
		t.Errorf("config.json counts beside generation_config.json: %+v", r)
	}
	if err := os.Remove(filepath.Join(dir, "generation_config.json")); err != nil {
		t.Fatal(err)
	}
	want := sample.Beams{N: 5, LengthPenalty: 1.5, Early: sample.EarlyYes}
	if r := request(); r.Params.Beams != want || r.Params.RepetitionPenalty != 1.2 || r.Params.Rules == nil || r.Params.Rules.NoRepeat != 2 || !slices.Equal(r.Prompt, []int32{2, 101}) || r.Counted != 1 || r.Max != 38 {
		t.Errorf("config.json alone: %+v, rules %+v", r, r.Params.Rules)
	}
}
