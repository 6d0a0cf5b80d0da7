package sample

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	if err := Defaults().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field  string
		change func(*Params)
	}{
		{"temperature", func(p *Params) { p.Temperature = -0.1 }},
		{"temperature", func(p *Params) { p.Temperature = nan }},
		{"temperature", func(p *Params) { p.Temperature = inf }},
		{"top_p", func(p *Params) { p.TopP = 0 }},
		{"top_p", func(p *Params) { p.TopP = 7 }},
		{"top_p", func(p *Params) { p.TopP = nan }},
		{"min_p", func(p *Params) { p.MinP = -1e-9 }},
		{"min_p", func(p *Params) { p.MinP = 1.5 }},
		{"typical_p", func(p *Params) { p.TypicalP = 0 }},
		{"repetition_penalty", func(p *Params) { p.RepetitionPenalty = 0 }},
		{"repetition_penalty", func(p *Params) { p.RepetitionPenalty = inf }},
		{"presence_penalty", func(p *Params) { p.PresencePenalty = 2.5 }},
		{"frequency_penalty", func(p *Params) { p.FrequencyPenalty = nan }},
		{"top_k", func(p *Params) { p.TopK = -2 }},
		{"penalty_window", func(p *Params) { p.PenaltyWindow = -1 }},
		{"top_logprobs", func(p *Params) { p.TopLogprobs = 21 }},
		{"num_beams", func(p *Params) { p.Beams.N = -1 }},
		{"num_beams", func(p *Params) { p.Beams.N = 65 }},
		{"length_penalty", func(p *Params) { p.Beams.N, p.Beams.LengthPenalty = 2, nan }},
		{"early_stopping", func(p *Params) { p.Beams.N, p.Beams.Early = 2, 3 }},
		{"top_logprobs", func(p *Params) { p.Beams.N, p.TopLogprobs = 2, 1 }},
		{"mirostat", func(p *Params) { p.Beams.N, p.Mirostat.Version = 2, 2 }},
		{"logit_bias", func(p *Params) { p.LogitBias = map[int32]float32{-1: 0} }},
		{"logit_bias", func(p *Params) { p.LogitBias = map[int32]float32{1: 101} }},
		{"logit_bias", func(p *Params) { p.LogitBias = map[int32]float32{1: float32(nan)} }},
		{"logit_bias", func(p *Params) { p.LogitBias = map[int32]float32{9: 0} }}, // outside the vocabulary
	} {
		_, err := NewSampler(params(c.change), 9, nil)
		if !errors.Is(err, ErrParams) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: error %v", c.field, err)
		}
	}
	if _, err := NewSampler(Defaults(), 0, nil); !errors.Is(err, ErrParams) {
		t.Errorf("an empty vocabulary: %v", err)
	}
	if a, b := RandomSeed(), RandomSeed(); a == b {
		t.Error("two random seeds are the same")
	}
}
