package server

import (
	"encoding/json"
	"strings"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/sample"
)

// beams are the fields of a request for a search with beams, under the names of
// transformers, and of vLLM, whose width is n.
type beams struct {
	NumBeams      *int            `json:"num_beams"`
	Beams         *int            `json:"beams"` // num_beams, by the name of the flag
	UseBeamSearch *bool           `json:"use_beam_search"`
	LengthPenalty *float64        `json:"length_penalty"`
	EarlyStopping json.RawMessage `json:"early_stopping"`
	BestOf        *int            `json:"best_of"` // the width, with use_beam_search
}

// searches says that the request asks for beams.
func (b *beams) searches() bool {
	return b.NumBeams != nil && *b.NumBeams > 1 || b.UseBeamSearch != nil && *b.UseBeamSearch
}

// wide says that best_of is the width of a search.
func (b *beams) wide() bool { return b.UseBeamSearch != nil && *b.UseBeamSearch && b.NumBeams == nil }

// search sets what the request says of a search with beams, and whether it says
// how tokens are drawn.
func (c *common) search(p *complete.Params) error {
	p.Draws = c.draws()
	if c.Beams != nil {
		if c.NumBeams != nil && *c.NumBeams != *c.Beams {
			return badRequest("beams", "beams: %d and %d num_beams contradict each other", *c.Beams, *c.NumBeams)
		}
		c.NumBeams = c.Beams
	}
	switch {
	case c.NumBeams != nil && (*c.NumBeams < 1 || *c.NumBeams > sample.MaxBeams):
		return badRequest("num_beams", "num_beams: %d is outside 1 to %d", *c.NumBeams, sample.MaxBeams)
	case c.UseBeamSearch != nil && c.NumBeams != nil && *c.UseBeamSearch != (*c.NumBeams > 1):
		return badRequest("use_beam_search", "use_beam_search: %t and %d num_beams contradict each other", *c.UseBeamSearch, *c.NumBeams)
	case c.NumBeams != nil:
		p.Search.Beams = *c.NumBeams
	case c.UseBeamSearch != nil && !*c.UseBeamSearch:
		p.Search.Beams = 1
	case c.UseBeamSearch != nil:
		name := "n"
		if p.Search.Beams = p.N; c.BestOf != nil {
			name, p.Search.Beams = "best_of", *c.BestOf
		}
		if p.Search.Beams < p.N || p.Search.Beams > sample.MaxBeams {
			return badRequest(name, "%s: %d beams; %d to %d are possible", name, p.Search.Beams, p.N, sample.MaxBeams)
		}
		if p.Search.Beams == 1 {
			p.Sample.Temperature = 0 // a single beam is the likeliest token each time
		}
	}
	if c.BestOf != nil && *c.BestOf != p.N && !c.wide() {
		return badRequest("best_of", "best_of: only the value of n (%d) is served without use_beam_search", p.N)
	}
	if name := c.clash(); name != "" && c.searches() {
		return badRequest(name, "%s: a search with beams draws no tokens; leave it out", name)
	}
	p.Search.LengthPenalty = c.LengthPenalty
	var err error
	p.Search.Early, err = earlyOf(c.EarlyStopping)
	return err
}

func earlyOf(raw json.RawMessage) (*sample.Early, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	e, err := complete.ParseEarly(strings.Trim(string(raw), `"`))
	if err != nil {
		return nil, badRequest("early_stopping", `early_stopping: true, false or "never" is expected`)
	}
	return &e, nil
}

// draws says whether the request names how tokens are drawn.
func (c *common) draws() bool {
	return c.Temperature != nil || c.TopP != nil || c.TopK != nil || c.MinP != nil || c.TypicalP != nil || c.strategies.named()
}

// clash names a field of the request by which tokens would be drawn.
func (c *common) clash() string {
	if c.Temperature != nil && *c.Temperature == 0 {
		return "" // nothing is drawn
	}
	for _, f := range []struct {
		name string
		v    *float64
		off  float64
	}{{"temperature", c.Temperature, 1}, {"top_p", c.TopP, 1}, {"min_p", c.MinP, 0}, {"typical_p", c.TypicalP, 1}, {"tfs_z", c.TailFree, 1}} {
		if f.v != nil && *f.v != f.off {
			return f.name
		}
	}
	for _, f := range []struct {
		name string
		v    *int
	}{{"top_k", c.TopK}, {"pool_size", c.Pool}, {"mirostat", c.Mirostat}} {
		if f.v != nil && *f.v > 0 {
			return f.name
		}
	}
	return ""
}
