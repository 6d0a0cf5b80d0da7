package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Strategy is a decoding strategy with its parameters.
type Strategy struct {
	Name string // std, greedy, top_k, top_p, min_p, typical, tfs, mirostat, fsd, random_fsd; "" if none is given
	// Parameters of the std family; 0 where not given.
	TopP   float64
	MaxK   int
	Pool   int // candidates at most
	Bypass int // ends that are put off (eos_bypassing_max)
	Notes  []string
}

// strategies are the names that are accepted beside their own, and what they stand for.
var strategies = map[string]string{
	"std": "std", "greedy": "greedy", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "typical": "typical",
	"tfs": "tfs", "mirostat": "mirostat", "fsd": "fsd", "random_fsd": "random_fsd",
}

// ParseStrategy reads a name, or JSON with a "name" and parameters.
func ParseStrategy(v string) (Strategy, error) {
	if v == "" {
		return Strategy{}, nil
	}
	o := struct {
		Name   string  `json:"name"`
		TopP   float64 `json:"top_p"`
		MaxK   int     `json:"max_k"`
		Pool   int     `json:"pool_size"`
		Bypass int     `json:"eos_bypassing_max"`
		MinK   int     `json:"min_k"`
	}{Name: v}
	if strings.HasPrefix(v, "{") {
		o.Name = ""
		if err := json.Unmarshal([]byte(v), &o); err != nil {
			return Strategy{}, fmt.Errorf("decoding_strategy: %w: %w", ErrValue, err)
		}
	}
	s := Strategy{TopP: o.TopP, MaxK: o.MaxK, Pool: o.Pool, Bypass: o.Bypass}
	name, ok := strategies[strings.TrimPrefix(strings.ToLower(strings.TrimSpace(o.Name)), "sample.")]
	if !ok {
		name = "std"
		s.Notes = append(s.Notes, fmt.Sprintf("decoding_strategy %q is no known one; sample.std is used", clip(o.Name)))
	}
	s.Name = name
	if s.TopP < 0 || s.TopP > 1 || s.MaxK < 0 || s.Pool < 0 || s.Bypass < 0 {
		return s, fmt.Errorf("decoding_strategy: %w: top_p lies in [0, 1], max_k, pool_size and eos_bypassing_max are not negative", ErrValue)
	}
	return s, nil
}
