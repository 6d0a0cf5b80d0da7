package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/sample"
)

// samplingFlags are the flags that say how an answer is sampled. Those that
// are not given leave the model's own defaults.
type samplingFlags struct {
	fs    *pflag.FlagSet
	p     sample.Params
	max   int
	stop  []string
	bias  []string
	greed bool
	past  bool
}

func (f *samplingFlags) add(fs *pflag.FlagSet) {
	f.fs = fs
	fs.IntVarP(&f.max, "max-tokens", "n", 0, "tokens of the answer at most (0, the default: what the context holds)")
	fs.Float64Var(&f.p.Temperature, "temperature", 0, "temperature; 0 takes the likeliest token (default: the model's; explain shows it)")
	fs.BoolVar(&f.greed, "greedy", false, "the same as --temperature 0")
	fs.IntVar(&f.p.TopK, "top-k", 0, "keep the K likeliest tokens; 0: all")
	fs.Float64Var(&f.p.TopP, "top-p", 1, "keep the likeliest tokens up to this mass")
	fs.Float64Var(&f.p.MinP, "min-p", 0, "keep tokens at least this times as likely as the likeliest")
	fs.Float64Var(&f.p.TypicalP, "typical-p", 1, "keep the most typical tokens up to this mass")
	fs.Float64Var(&f.p.TailFree, "tfs-z", 1, "tail-free sampling: keep the likeliest tokens up to this share of the bends of their probabilities")
	fs.IntVar(&f.p.Mirostat.Version, "mirostat", 0, "steer the surprise of the tokens in place of the filters: version 1 or 2; 0: off")
	fs.Float64Var(&f.p.Mirostat.Tau, "mirostat-tau", 5, "the surprise that Mirostat aims at, in bits")
	fs.Float64Var(&f.p.Mirostat.Eta, "mirostat-eta", 0.1, "how fast Mirostat follows")
	fs.Float64Var(&f.p.FSD.Alpha, "fsd-alpha", 0, "take the token that is likely and repeats nothing (FSD): weight of the n-grams, up to 1; 0: off")
	fs.IntVar(&f.p.FSD.K, "fsd-k", 6, "likeliest tokens that FSD chooses from")
	fs.IntVar(&f.p.FSD.N, "fsd-n", 3, "length of FSD's n-grams")
	fs.Float64Var(&f.p.FSD.Beta, "fsd-beta", 0.9, "weight of FSD's longer n-grams before the shorter")
	fs.IntVar(&f.p.FSD.Random, "fsd-random", 0, "of the first so many tokens each is drawn with probability 1/2 in place of FSD")
	fs.IntVar(&f.p.Pool, "pool-size", 0, "first of all keep so many of the likeliest tokens, temperature first and --top-k last, as the C++ Inferflow does; 0: off")
	fs.IntVar(&f.p.PutOff, "eos-bypassing-max", 0, "put the answer's end off so many times")
	fs.Float64Var(&f.p.RepetitionPenalty, "repetition-penalty", 1, "divide the logits of tokens seen before")
	fs.Float64Var(&f.p.RepetitionPenalty, "repeat-penalty", 1, "the same as --repetition-penalty")
	fs.Float64Var(&f.p.PresencePenalty, "presence-penalty", 0, "subtract from the logits of tokens in the answer")
	fs.Float64Var(&f.p.FrequencyPenalty, "frequency-penalty", 0, "subtract for each time the answer has the token")
	fs.IntVar(&f.p.PenaltyWindow, "penalty-window", 0, "tokens that the penalties look back; 0: all")
	fs.Uint64Var(&f.p.Seed, "seed", 0, "seed of the draws (default: a random one)")
	fs.StringArrayVar(&f.stop, "stop", nil, "end the answer before this text (may be given several times)")
	fs.StringArrayVar(&f.bias, "logit-bias", nil, "ID=VALUE, added to the logit of a token; -inf forbids it")
	fs.BoolVar(&f.past, "ignore-end", false, "go on past the model's end tokens")
}

// params merges the flags over the model's defaults.
func (f *samplingFlags) params(defaults sample.Params) (complete.Params, error) {
	p := defaults
	given := func(name string) bool { return f.fs.Changed(name) }
	for _, v := range []struct {
		name     string
		dst, src *float64
	}{{"temperature", &p.Temperature, &f.p.Temperature}, {"top-p", &p.TopP, &f.p.TopP}, {"min-p", &p.MinP, &f.p.MinP},
		{"typical-p", &p.TypicalP, &f.p.TypicalP}, {"repetition-penalty", &p.RepetitionPenalty, &f.p.RepetitionPenalty}, {"repeat-penalty", &p.RepetitionPenalty, &f.p.RepetitionPenalty},
		{"presence-penalty", &p.PresencePenalty, &f.p.PresencePenalty}, {"frequency-penalty", &p.FrequencyPenalty, &f.p.FrequencyPenalty}} {
		if given(v.name) {
			*v.dst = *v.src
		}
	}
	f.strategies(&p)
	p.PenaltyWindow = f.p.PenaltyWindow
	p.Seed = sample.RandomSeed()
	if given("seed") {
		p.Seed = f.p.Seed
	}
	if f.greed {
		p.Temperature = 0
	}
	if f.greed && given("temperature") && f.p.Temperature != 0 {
		return complete.Params{}, usagef("--greedy and --temperature %g contradict each other", f.p.Temperature)
	}
	if err := f.idle(&p); err != nil {
		return complete.Params{}, err
	}
	for _, s := range f.stop {
		if s == "" {
			return complete.Params{}, usagef("--stop: the text is empty")
		}
	}
	if f.max < 0 {
		return complete.Params{}, usagef("--max-tokens must not be negative")
	}
	var err error
	if p.LogitBias, err = parseBias(f.bias); err != nil {
		return complete.Params{}, err
	}
	if err := p.Validate(); err != nil {
		return complete.Params{}, usageError{err}
	}
	return complete.Params{Sample: p, Max: f.max, Stop: f.stop, IgnoreEnd: f.past, Draws: len(f.draws()) > 0}, nil
}

// idle refuses flags that steer a way of choosing which is not on.
func (f *samplingFlags) idle(p *sample.Params) error {
	for _, x := range []struct {
		on    bool
		by    string
		flags []string
	}{
		{p.Mirostat.Version != 0, "--mirostat 2", []string{"mirostat-tau", "mirostat-eta"}},
		{p.FSD.Alpha != 0, "--fsd-alpha", []string{"fsd-k", "fsd-n", "fsd-beta", "fsd-random"}},
	} {
		for _, name := range x.flags {
			if !x.on && f.fs.Changed(name) {
				return usagef("--%s has no effect without %s", name, x.by)
			}
		}
	}
	for _, x := range []struct {
		name string
		on   bool
	}{{"mirostat", p.Mirostat.Version != 0}, {"fsd-alpha", p.FSD.Alpha != 0}, {"tfs-z", p.TailFree != 1}, {"pool-size", p.Pool != 0}} {
		if p.Temperature == 0 && x.on && f.fs.Changed(x.name) {
			return usagef("--%s has no effect at temperature 0, where the likeliest token is taken", x.name)
		}
	}
	if f.fs.Changed("repetition-penalty") && f.fs.Changed("repeat-penalty") {
		return usagef("--repeat-penalty is --repetition-penalty; give one of them")
	}
	return nil
}

// drawing are the settings that say how tokens are drawn.
var drawing = []string{"temperature", "greedy", "top-k", "top-p", "min-p", "typical-p", "tfs-z", "mirostat", "fsd-alpha", "pool-size", "eos-bypassing-max"}

// draws lists the flags given of those.
func (f *samplingFlags) draws() (given []string) {
	for _, name := range drawing {
		if f.fs.Changed(name) {
			given = append(given, name)
		}
	}
	return given
}

// strategies merges the flags that are whole numbers, and those of the ways to
// choose beside the usual filters.
func (f *samplingFlags) strategies(p *sample.Params) {
	for _, v := range []struct {
		name     string
		dst, src *float64
	}{{"tfs-z", &p.TailFree, &f.p.TailFree}, {"mirostat-tau", &p.Mirostat.Tau, &f.p.Mirostat.Tau}, {"mirostat-eta", &p.Mirostat.Eta, &f.p.Mirostat.Eta},
		{"fsd-alpha", &p.FSD.Alpha, &f.p.FSD.Alpha}, {"fsd-beta", &p.FSD.Beta, &f.p.FSD.Beta}} {
		if f.fs.Changed(v.name) {
			*v.dst = *v.src
		}
	}
	for _, v := range []struct {
		name     string
		dst, src *int
	}{{"top-k", &p.TopK, &f.p.TopK}, {"mirostat", &p.Mirostat.Version, &f.p.Mirostat.Version}, {"fsd-k", &p.FSD.K, &f.p.FSD.K}, {"fsd-n", &p.FSD.N, &f.p.FSD.N},
		{"fsd-random", &p.FSD.Random, &f.p.FSD.Random}, {"pool-size", &p.Pool, &f.p.Pool}, {"eos-bypassing-max", &p.PutOff, &f.p.PutOff}} {
		if f.fs.Changed(v.name) {
			*v.dst = *v.src
		}
	}
}

func parseBias(list []string) (map[int32]float32, error) {
	var out map[int32]float32
	for _, s := range list {
		k, v, ok := strings.Cut(s, "=")
		id, err1 := strconv.ParseInt(k, 10, 32)
		x, err2 := strconv.ParseFloat(v, 32)
		if !ok || err1 != nil || err2 != nil || math.IsNaN(x) {
			return nil, usagef("--logit-bias %q: want ID=VALUE, such as 42=-5 or 42=-inf", s)
		}
		if out == nil {
			out = map[int32]float32{}
		}
		out[int32(id)] = float32(x)
	}
	return out, nil
}

// rate renders tokens per second.
func rate(tokens int, seconds float64) string {
	if seconds <= 0 || tokens <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f tokens/s", float64(tokens)/seconds)
}
