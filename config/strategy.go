package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Strategy is a decoding strategy with its parameters; nil where the file gives none.
type Strategy struct {
	Name string // std, greedy, top_k, top_p, min_p, typical, tfs, mirostat, fsd, random_fsd; "" if none is given
	StrategyValues
	Notes []string
}

// StrategyValues are the parameters of strategies, under the names of the C++ engine.
type StrategyValues struct {
	TopP     *float64 `json:"top_p"`
	MaxK     *int     `json:"max_k"`
	Pool     *int     `json:"pool_size"`         // candidates at most
	Bypass   *int     `json:"eos_bypassing_max"` // ends that are put off
	MinP     *float64 `json:"min_p"`
	TypicalP *float64 `json:"p"` // of typical
	Z        *float64 `json:"z"` // of tfs
	Tau      *float64 `json:"tau"`
	Eta      *float64 `json:"eta"`
	K        *int     `json:"k"` // of fsd
	Alpha    *float64 `json:"alpha"`
	N        *int     `json:"n"`
	Beta     *float64 `json:"beta"`
}

// strategies are the names that are known, and the keys that each reads.
var strategies = map[string][]string{
	"std": {"top_p", "max_k"}, "top_p": {"top_p", "max_k"}, "top_k": {"max_k"}, "greedy": {}, "min_p": {"min_p"}, "typical": {"p"}, "tfs": {"z"},
	"mirostat": {"tau", "eta"}, "fsd": {"k", "alpha", "n", "beta"}, "random_fsd": {"k", "alpha", "n", "beta", "top_p", "max_k"},
}

// strategyCommon are the keys that every strategy reads. min_k is read by none,
// there or here.
var strategyCommon = []string{"name", "pool_size", "eos_bypassing_max", "min_k"}

// ParseStrategy reads a name, or JSON with a "name" and parameters.
func ParseStrategy(v string) (Strategy, error) {
	var s Strategy
	if v == "" {
		return s, nil
	}
	given := map[string]json.RawMessage{}
	name := v
	if strings.HasPrefix(v, "{") {
		var o struct {
			Name string `json:"name"`
			StrategyValues
		}
		err := json.Unmarshal([]byte(v), &o)
		if err == nil {
			err = json.Unmarshal([]byte(v), &given)
		}
		if err != nil {
			return s, fmt.Errorf("decoding_strategy: %w: %w", ErrValue, err)
		}
		name, s.StrategyValues = o.Name, o.StrategyValues
	}
	s.Name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "sample.")
	reads, ok := strategies[s.Name]
	if !ok {
		s.Notes = append(s.Notes, fmt.Sprintf("decoding_strategy %q is no known one; sample.std is used", clip(name)))
		s.Name, reads = "std", strategies["std"]
	}
	for _, key := range sortedKeys(given) {
		if !slices.Contains(strategyCommon, key) && !slices.Contains(reads, key) {
			s.Notes = append(s.Notes, fmt.Sprintf("decoding_strategy: %s has no effect with %s", clip(key), s.Name))
		}
	}
	return s, s.StrategyValues.check()
}

func sortedKeys(m map[string]json.RawMessage) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// check refuses numbers that cannot be.
func (v *StrategyValues) check() error {
	for _, f := range []struct {
		key    string
		x      *float64
		lo, hi float64
	}{{"top_p", v.TopP, 0, 1}, {"min_p", v.MinP, 0, 1}, {"p", v.TypicalP, 0, 1}, {"z", v.Z, 0, 1}, {"tau", v.Tau, 0, 100}, {"eta", v.Eta, 0, 100},
		{"alpha", v.Alpha, 0, 1}, {"beta", v.Beta, 0, 1}} {
		if f.x != nil && !(*f.x >= f.lo && *f.x <= f.hi) {
			return fmt.Errorf("decoding_strategy: %w: %s is %g; it lies from %g to %g", ErrValue, f.key, *f.x, f.lo, f.hi)
		}
	}
	for _, f := range []struct {
		key    string
		x      *int
		lo, hi int
	}{{"max_k", v.MaxK, 0, math.MaxInt32}, {"pool_size", v.Pool, 0, math.MaxInt32}, {"eos_bypassing_max", v.Bypass, 0, math.MaxInt32},
		{"k", v.K, 1, 1024}, {"n", v.N, 1, 16}} {
		if f.x != nil && (*f.x < f.lo || *f.x > f.hi) {
			return fmt.Errorf("decoding_strategy: %w: %s is %d; it lies from %d to %d", ErrValue, f.key, *f.x, f.lo, f.hi)
		}
	}
	return nil
}
