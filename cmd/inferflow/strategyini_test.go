package main

import (
	"testing"

	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/sample"
)

// TestStrategyParams: each strategy is what the C++ engine's is, and valid.
func TestStrategyParams(t *testing.T) {
	for text, want := range map[string]func(*sample.Params){
		"":                         func(p *sample.Params) { p.TopP, p.TopK = 0.9, 8 },
		"sample.std":               func(p *sample.Params) { p.TopP, p.TopK = 0.9, 8 },
		"top_p":                    func(p *sample.Params) { p.TopP, p.TopK = 0.9, 8 },
		"top_k":                    func(p *sample.Params) { p.TopK = 8 },
		"greedy":                   func(p *sample.Params) { p.Temperature, p.Pool = 0, 0 },
		"min_p":                    func(p *sample.Params) { p.MinP = 0.05 },
		"typical":                  func(p *sample.Params) { p.TypicalP = 0.95 },
		"tfs":                      func(p *sample.Params) { p.TailFree = 0.95 },
		"mirostat":                 func(p *sample.Params) { p.Mirostat = sample.Mirostat{Version: 2, Tau: 5, Eta: 0.1} },
		"fsd":                      func(p *sample.Params) { p.FSD.Alpha = 0.5 },
		"random_fsd":               func(p *sample.Params) { p.FSD.Alpha, p.FSD.Random, p.TopP, p.TopK = 0.5, 10, 0.93, 8 },
		`{"name":"typical","p":0}`: func(p *sample.Params) { p.TypicalP = leastMass },
		`{"name":"std","max_k":0,"pool_size":9,"eos_bypassing_max":2}`: func(p *sample.Params) { p.TopP, p.TopK, p.Pool, p.PutOff = 0.9, 1, 9, 2 },
		`{"name":"fsd","k":4,"n":2,"alpha":0.4,"beta":0.5}`:            func(p *sample.Params) { p.FSD = sample.FSD{Alpha: 0.4, K: 4, N: 2, Beta: 0.5} },
	} {
		s, err := config.ParseStrategy(text)
		if err != nil {
			t.Fatal(err)
		}
		p := sample.Defaults()
		p.Pool = iniPool
		want(&p)
		got := strategyParams(s)
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got.Temperature != p.Temperature || got.TopP != p.TopP || got.TopK != p.TopK || got.MinP != p.MinP || got.TypicalP != p.TypicalP || got.TailFree != p.TailFree ||
			got.Pool != p.Pool || got.PutOff != p.PutOff || got.Mirostat != p.Mirostat || got.FSD != p.FSD {
			t.Errorf("%s: %+v, want %+v", text, got, p)
		}
	}
}
