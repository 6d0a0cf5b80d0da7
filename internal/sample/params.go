package sample

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrParams is wrapped by every error that Params.Validate returns.
var ErrParams = errors.New("invalid sampling parameter")

// MaxTopLogprobs is the largest number of alternatives that Params.TopLogprobs
// may ask for: OpenAI's limit.
const MaxTopLogprobs = 20

// Params says how a token is chosen. The zero value is not valid (its TopP is
// 0); start from Defaults.
//
// The filters run in llama.cpp's order, each on what the one before it left:
// penalties, logit bias, mask, (greedy choice if Temperature is 0), TopK,
// TailFree, TypicalP, TopP, MinP, Temperature, draw. Hugging Face's transformers
// applies the temperature first, so there a high temperature also widens TopP;
// here TopP, TailFree, TypicalP and MinP see the distribution at temperature 1.
// Pool changes this order. Mirostat and FSD choose in other ways: where one of
// them is on, only Pool and the Temperature stand before it.
type Params struct {
	// Temperature divides the logits before the draw; 0 is greedy. [0, ∞)
	Temperature float64
	// TopK keeps the K likeliest tokens; 0 or -1 is off.
	TopK int
	// TopP keeps the smallest set of the likeliest tokens whose probabilities
	// sum to at least TopP; 1 is off. (0, 1] (Holtzman et al., 2019)
	TopP float64
	// MinP keeps tokens at least MinP times as likely as the likeliest; 0 is
	// off. [0, 1] (Nguyen et al., 2024)
	MinP float64
	// TypicalP keeps the tokens whose surprise is nearest to the entropy, up to
	// a mass of TypicalP; 1 is off. (0, 1] (Meister et al., 2022)
	TypicalP float64

	// TailFree keeps the likeliest tokens up to where the bends of the sorted
	// probabilities sum to TailFree of all bends; 1 is off. (0, 1] (Phénix and
	// Egan, "Tail free sampling", 2019; tfs_z of llama.cpp)
	TailFree float64
	// Pool keeps the Pool likeliest tokens before all else, and orders the chain
	// as the C++ Inferflow does: the temperature comes first, and TopK last, so
	// that the mass of TopP is the pool's; 0 is off.
	Pool int
	// Mirostat steers the surprise of the tokens (Basu et al., 2021) in place of
	// the filters: 1 or 2 is the version of the algorithm; 0 is off.
	Mirostat Mirostat
	// FSD is contrastive decoding against the n-grams of the text so far, in
	// place of a draw.
	FSD FSD
	// PutOff is how many times the likeliest other token is taken where one of
	// End would end the answer; 0 is off.
	PutOff int
	// End are the tokens that PutOff is about.
	End []int32

	// RepetitionPenalty divides positive and multiplies negative logits of
	// tokens in the prompt or the answer; 1 is off. (0, ∞) (Keskar et al., 2019)
	RepetitionPenalty float64
	// PresencePenalty is subtracted once from the logit of every token in the
	// answer; 0 is off. [-2, 2] (OpenAI's API)
	PresencePenalty float64
	// FrequencyPenalty is subtracted once for each time the answer has the
	// token; 0 is off. [-2, 2] (OpenAI's API)
	FrequencyPenalty float64
	// PenaltyWindow limits the three penalties to the last tokens of prompt and
	// answer together; 0 is all of them.
	PenaltyWindow int

	// LogitBias is added to the logits of single tokens after the penalties.
	// [-100, 100], or -Inf to forbid a token.
	LogitBias map[int32]float32

	// Beams searches the likeliest answers in place of drawing one; see Search.
	Beams Beams

	// Rules restrict the form of the answer; nil: none.
	Rules *Rules

	// Seed keys the generator; see RandomSeed for requests that name none.
	Seed uint64

	// Logprobs asks for the log-probability of the chosen token.
	Logprobs bool
	// TopLogprobs asks for the likeliest tokens as well (it implies Logprobs).
	// [0, 20]
	TopLogprobs int
}

// Defaults returns temperature 1 with every filter, penalty and bias off and
// seed 0: the distribution that the model defines.
func Defaults() Params {
	return Params{Temperature: 1, TopP: 1, TypicalP: 1, TailFree: 1, RepetitionPenalty: 1,
		Mirostat: Mirostat{Tau: 5, Eta: 0.1}, FSD: FSD{K: 6, N: 3, Beta: 0.9}, Beams: Beams{LengthPenalty: 1}}
}

// RandomSeed returns an unpredictable seed for a request that names none.
func RandomSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails: it aborts the program instead
	return binary.LittleEndian.Uint64(b[:])
}

// Validate returns an error that wraps ErrParams and names the first field
// outside its range with the value and the range.
func (p Params) Validate() error {
	inf := math.Inf(1)
	for _, f := range []struct {
		name    string
		v       float64
		lo, hi  float64
		openLo  bool
		allowed string
	}{
		{"temperature", p.Temperature, 0, inf, false, "a finite number of at least 0"},
		{"top_p", p.TopP, 0, 1, true, "above 0 and at most 1"},
		{"min_p", p.MinP, 0, 1, false, "from 0 to 1"},
		{"typical_p", p.TypicalP, 0, 1, true, "above 0 and at most 1"},
		{"tfs_z", p.TailFree, 0, 1, true, "above 0 and at most 1"},
		{"mirostat_tau", p.Mirostat.Tau, 0, 100, false, "from 0 to 100"},
		{"mirostat_eta", p.Mirostat.Eta, 0, 100, false, "from 0 to 100"},
		{"fsd_alpha", p.FSD.Alpha, 0, 1, false, "from 0 to 1"},
		{"fsd_beta", p.FSD.Beta, 0, 1, false, "from 0 to 1"},
		{"repetition_penalty", p.RepetitionPenalty, 0, inf, true, "a finite number above 0"},
		{"presence_penalty", p.PresencePenalty, -2, 2, false, "from -2 to 2"},
		{"frequency_penalty", p.FrequencyPenalty, -2, 2, false, "from -2 to 2"},
	} {
		// Written so that NaN, which compares false, is refused.
		ok := f.v >= f.lo && f.v <= f.hi && !math.IsInf(f.v, 0)
		if !ok || (f.openLo && f.v == f.lo) {
			return fmt.Errorf("sample: %w: %s is %v; it must be %s", ErrParams, f.name, f.v, f.allowed)
		}
	}
	for _, f := range []struct {
		name   string
		v      int
		lo, hi int
	}{
		{"top_k", p.TopK, -1, math.MaxInt32},
		{"pool_size", p.Pool, 0, math.MaxInt32},
		{"mirostat", p.Mirostat.Version, 0, 2},
		{"fsd_k", p.FSD.K, fsdLeast(p.FSD), maxFSDCandidates},
		{"fsd_n", p.FSD.N, fsdLeast(p.FSD), maxFSDOrder},
		{"fsd_random", p.FSD.Random, 0, math.MaxInt32},
		{"eos_bypassing_max", p.PutOff, 0, math.MaxInt32},
		{"penalty_window", p.PenaltyWindow, 0, math.MaxInt32},
		{"top_logprobs", p.TopLogprobs, 0, MaxTopLogprobs},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("sample: %w: %s is %d; it must be from %d to %d", ErrParams, f.name, f.v, f.lo, f.hi)
		}
	}
	if p.Mirostat.Version > 0 && p.FSD.on() {
		return fmt.Errorf("sample: %w: mirostat and fsd_alpha are both on; each chooses the token alone", ErrParams)
	}
	if err := p.Beams.validate(&p); err != nil {
		return err
	}
	return p.validateBias()
}

func (p Params) validateBias() error {
	for id, b := range p.LogitBias {
		if id < 0 {
			return fmt.Errorf("sample: %w: logit_bias: token id %d is negative", ErrParams, id)
		}
		forbidden := math.IsInf(float64(b), -1)
		if !forbidden && !(b >= -100 && b <= 100) {
			return fmt.Errorf("sample: %w: logit_bias of token %d is %v; it must be from -100 to 100", ErrParams, id, b)
		}
	}
	return nil
}

// penalised reports whether the history of tokens matters.
func (p *Params) penalised() bool {
	return p.RepetitionPenalty != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

// filtered reports whether any step cuts the candidates down before the draw.
func (p *Params) filtered() bool {
	return p.Pool > 0 || p.TopK > 0 || p.TailFree < 1 || p.TypicalP < 1 || p.TopP < 1 || p.MinP > 0
}
