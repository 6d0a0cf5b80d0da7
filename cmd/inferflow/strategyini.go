package main

import (
	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/sample"
)

// Values of the C++ engine's strategies where a file gives none.
const (
	iniPool   = 50
	iniTopP   = 0.9
	iniMaxK   = 8
	iniMinP   = 0.05
	iniTail   = 0.95
	iniTau    = 5
	iniEta    = 0.1
	iniAlpha  = 0.5
	iniRandom = 10   // first tokens that random_fsd may draw
	iniDrawP  = 0.93 // and the mass that it draws them from
	leastMass = 1e-9 // a mass of nothing keeps the likeliest token
)

// strategyParams says what a decoding strategy of an .ini means; without a name
// it is std. All choose from a pool of the likeliest tokens, at the temperature.
func strategyParams(s config.Strategy) sample.Params {
	p := sample.Defaults()
	p.Pool, p.PutOff = orElse(s.Pool, iniPool), orElse(s.Bypass, 0)
	mass := func(v *float64, d float64) float64 { return max(orElse(v, d), leastMass) }
	switch s.Name {
	case "greedy":
		p.Temperature, p.Pool = 0, 0
	case "top_k":
		p.TopK = max(1, orElse(s.MaxK, iniMaxK))
	case "min_p":
		p.MinP = orElse(s.MinP, iniMinP)
	case "typical":
		p.TypicalP = mass(s.TypicalP, iniTail)
	case "tfs":
		p.TailFree = mass(s.Z, iniTail)
	case "mirostat":
		p.Mirostat = sample.Mirostat{Version: 2, Tau: orElse(s.Tau, iniTau), Eta: orElse(s.Eta, iniEta)}
	case "fsd", "random_fsd":
		d := p.FSD
		p.FSD = sample.FSD{Alpha: orElse(s.Alpha, iniAlpha), K: orElse(s.K, d.K), N: orElse(s.N, d.N), Beta: orElse(s.Beta, d.Beta)}
		if s.Name == "random_fsd" {
			p.FSD.Random = iniRandom
			p.TopP, p.TopK = mass(s.TopP, iniDrawP), max(1, orElse(s.MaxK, iniMaxK))
		}
	default:
		p.TopP, p.TopK = mass(s.TopP, iniTopP), max(1, orElse(s.MaxK, iniMaxK))
	}
	return p
}

func orElse[T any](v *T, d T) T {
	if v == nil {
		return d
	}
	return *v
}
