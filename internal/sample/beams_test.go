package sample

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func beamParams(n int, change func(p *Params)) Params {
	return params(func(p *Params) {
		p.Beams = Beams{N: n, LengthPenalty: 1}
		if change != nil {
			change(p)
		}
	})
}

// runSearch gives each beam the logits of its last token, scoring the beams from
// the last to the first.
func runSearch(t *testing.T, s *Search, after map[int32][]float32) int {
	t.Helper()
	for n := 1; n < 100; n++ {
		for i := s.Running() - 1; i >= 0; i-- {
			said := s.running[i].said
			if err := s.Score(i, after[said[len(said)-1]]); err != nil {
				t.Fatal(err)
			}
		}
		if _, over := s.Advance(); over {
			return n
		}
	}
	t.Fatal("no end")
	return 0
}

// TestSearchFinds: a token that is not the likeliest leads to the likeliest answer.
func TestSearchFinds(t *testing.T) {
	ln := func(p ...float64) (l []float32) {
		for _, x := range p {
			l = append(l, float32(math.Log(x)))
		}
		return l
	}
	after := map[int32][]float32{ // tokens: 0 ends, 1, 2
		9: ln(0.001, 0.6, 0.399),
		1: ln(0.4, 0.3, 0.3),
		2: ln(0.9, 0.05, 0.05),
	}
	for _, end := range [][]int32{{0}, {0, 0, 77}} {
		s, err := NewSearch(beamParams(2, func(p *Params) { p.Logprobs = true }), 3, []int32{9}, 0, 8, end)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // it may be begun again
			runSearch(t, s, after)
			a, ok := s.Best(0)
			if !ok || !slices.Equal(a.IDs, []int32{2, 0}) || !a.Ended || math.Abs(float64(a.Score)-math.Log(0.399*0.9)/2) > 1e-6 {
				t.Errorf("%+v", a)
			}
			if len(a.Logprobs) != 2 || math.Abs(float64(a.Logprobs[1])-math.Log(0.9)) > 1e-6 {
				t.Errorf("log-probabilities %v", a.Logprobs)
			}
			b, _ := s.Best(1)
			if _, more := s.Best(2); more || b.Score > a.Score || b.Logprobs == nil {
				t.Errorf("then %+v, more: %t", b, more)
			}
			s.Reset()
		}
	}
}

// TestSearchTies: equal scores go to the lower beam, then the lower id, in
// whatever order the beams are scored.
func TestSearchTies(t *testing.T) {
	s, err := NewSearch(beamParams(3, nil), 4, []int32{1}, 0, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	flat := make([]float32, 4)
	runSearch(t, s, map[int32][]float32{0: flat, 1: flat, 2: flat, 3: flat})
	for k, want := range [][]int32{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}} {
		if a, _ := s.Best(k); !slices.Equal(a.IDs, want) || a.Ended {
			t.Errorf("answer %d is %v", k, a.IDs)
		}
	}
}

// TestSearchFew: rules that leave fewer continuations than beams are no error,
// until they leave none.
func TestSearchFew(t *testing.T) {
	s, err := NewSearch(beamParams(4, func(p *Params) { p.Rules = &Rules{Suppress: []int32{0, 1, 2}} }), 4, []int32{1}, 0, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	flat := make([]float32, 4)
	runSearch(t, s, map[int32][]float32{0: flat, 1: flat, 2: flat, 3: flat})
	if a, ok := s.Best(0); !ok || !slices.Equal(a.IDs, []int32{3, 3, 3}) {
		t.Errorf("%v", a)
	}
	if _, ok := s.Best(1); ok {
		t.Error("there is one answer only")
	}
	for row, want := range map[float32]error{float32(math.NaN()): ErrNonFinite, float32(math.Inf(1)): ErrNonFinite, float32(math.Inf(-1)): ErrNoCandidate} {
		s.Reset()
		if err := s.Score(0, []float32{row, row, row, row}); !errors.Is(err, want) {
			t.Errorf("%g: %v", row, err)
		}
	}
	if err := s.Score(0, flat[:2]); err == nil {
		t.Error("too few logits are no error")
	}
	for _, bad := range []func() (*Search, error){
		func() (*Search, error) { return NewSearch(beamParams(1, nil), 4, []int32{1}, 0, 3, nil) },
		func() (*Search, error) { return NewSearch(beamParams(2, nil), 4, []int32{1}, 1, 3, nil) },
		func() (*Search, error) { return NewSearch(beamParams(2, nil), 4, []int32{1}, 0, 0, nil) },
		func() (*Search, error) { return NewSearch(beamParams(2, nil), 0, []int32{1}, 0, 3, nil) },
	} {
		if _, err := bad(); !errors.Is(err, ErrParams) {
			t.Errorf("%v", err)
		}
	}
}

// TestSearchPenalties: each beam is penalised for what it has said itself, as a
// Sampler would be.
func TestSearchPenalties(t *testing.T) {
	for _, window := range []int{0, 3} {
		p := beamParams(3, func(p *Params) {
			p.RepetitionPenalty, p.FrequencyPenalty, p.PenaltyWindow = 1.5, 0.4, window
			p.LogitBias = map[int32]float32{2: 0.3}
			p.Rules = &Rules{NoRepeat: 3}
		})
		prompt := []int32{1, 4}
		s, err := NewSearch(p, 5, prompt, 0, 6, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw := []float32{1, 0.9, 0.8, 0.7, 0.6}
		for step := range 5 {
			for i := range s.Running() {
				if err := s.Score(i, raw); err != nil {
					t.Fatal(err)
				}
				a, err := NewSampler(p, 5, prompt)
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range s.running[i].said[len(prompt):] {
					a.Accept(id)
				}
				norm := a.memory().logSumExp(raw, 1)
				want := make([]float32, 5)
				for id := range want {
					want[id] = float32(float64(raw[id]) - norm)
				}
				if a.change(want); !slices.Equal(want, s.a.memory().logits) {
					t.Fatalf("step %d, beam %d (%v): %v, a sampler has %v", step, i, s.running[i].said, s.a.memory().logits, want)
				}
			}
			s.Advance()
		}
	}
}
