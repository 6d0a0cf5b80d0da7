package complete

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
)

// Search asks for a search with beams. What is not said is as the model's files
// have it.
type Search struct {
	Beams         int // 1: none, whatever the files say; 0: not said
	LengthPenalty *float64
	Early         *sample.Early
}

// ParseEarly reads a value of early_stopping: true, false or never. The error
// wraps sample.ErrParams.
func ParseEarly(s string) (sample.Early, error) {
	switch strings.ToLower(s) {
	case "false", "":
		return sample.EarlyNo, nil
	case "true":
		return sample.EarlyYes, nil
	case "never":
		return sample.EarlyNever, nil
	}
	return 0, fmt.Errorf("complete: %w: early_stopping is %q; it must be true, false or never", sample.ErrParams, s)
}

// decode fills in what an encoder-decoder's files say of an answer.
func (s *Service) decode(p *Params) {
	if p.decoding == nil {
		p.decoding = &s.Model.Generation.Decoding
	}
	d := p.decoding
	if p.begin == nil {
		p.begin = slices.Clone(s.begin)
	}
	if p.begin == nil {
		p.begin, p.counted = append([]int32{d.Start}, d.First...), len(d.First)
	}
	if p.Max == 0 && d.MaxNew > p.counted {
		p.Max = d.MaxNew - p.counted
	} else if p.Max == 0 && d.MaxNew == 0 && d.MaxLength > len(p.begin) {
		p.Max = d.MaxLength - len(p.begin)
	}
}

// searched decides on a search: what the request asks for, else, where it says
// nothing of how tokens are drawn, what the files do.
func (s *Service) searched(to sample.Params, p *Params) (sample.Params, error) {
	d := p.decoding
	if to.Beams.N = p.Search.Beams; to.Beams.N == 0 && !p.Draws && !s.set && !d.Sampled {
		to.Beams.N = d.Beams
	}
	if !to.Beams.On() {
		// Clients send defaults; what says no more is no request for beams.
		if l, e := p.Search.LengthPenalty, p.Search.Early; l != nil && *l != 1 || e != nil && *e != sample.EarlyNo {
			return to, fmt.Errorf("complete: %w: length_penalty and early_stopping are for a search with beams, and none is made; ask for two beams or more", sample.ErrParams)
		}
		return to, nil
	}
	to.Beams.LengthPenalty = d.LengthPenalty
	if p.Search.LengthPenalty != nil {
		to.Beams.LengthPenalty = *p.Search.LengthPenalty
	}
	to.Beams.Early, _ = ParseEarly(d.Early)
	if p.Search.Early != nil {
		to.Beams.Early = *p.Search.Early
	}
	return to, nil
}

// rules are the restrictions of an answer to source that begins after length
// tokens; nil if there are none.
func (s *Service) rules(source []int32, length int, p *Params, end []int32) *sample.Rules {
	d := p.decoding
	r := &sample.Rules{NoRepeat: d.NoRepeat, Bad: d.Bad, Last: d.Last, End: end, MinLength: d.MinLength, Suppress: d.Suppress,
		SuppressFirst: d.SuppressFirst, FirstAt: length, Decay: d.Decay, DecayFrom: d.DecayFrom + length - p.counted, Renormalise: d.Renormalise}
	if d.MinNew > 0 {
		r.MinLength = length - p.counted + d.MinNew
	}
	for _, b := range d.Bias {
		r.Bias = append(r.Bias, sample.SequenceBias{IDs: b.IDs, Bias: float32(b.Bias)})
	}
	if d.NoRepeatSource > 0 {
		r.Source, r.NoRepeatSource = source, d.NoRepeatSource
	}
	if d.Lift > 0 {
		r.Lifted, r.Lift = slices.Clone(source), d.Lift
		slices.Sort(r.Lifted)
		r.Lifted = slices.Compact(r.Lifted)
	}
	if p.Max > 0 {
		r.MaxLength = length + p.Max
	}
	if r.Empty() {
		return nil
	}
	return r
}

// settleSearch passes over a search that makes no sense, and tells what is not done.
func (s *Service) settleSearch(d *model.Decoding) {
	p := sample.Defaults()
	p.Beams = sample.Beams{N: d.Beams, LengthPenalty: d.LengthPenalty}
	if err := p.Validate(); err != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("the search that the model's generation settings ask for is not made: %v", err))
		d.Beams, d.LengthPenalty = 0, 1
	}
	s.Notes = append(s.Notes, decodingNotes(*d)...)
}

// decodingNotes tells once what the files ask for and is not done.
func decodingNotes(d model.Decoding) (notes []string) {
	if d.Beams > 1 && d.Sampled {
		notes = append(notes, fmt.Sprintf("the model's files ask for %d beams that are drawn (do_sample); answers are drawn token by token, without beams", d.Beams))
	}
	if len(d.Unserved) > 0 {
		notes = append(notes, fmt.Sprintf("settings of the model's files that are not served and may change its answers: %s", strings.Join(d.Unserved, ", ")))
	}
	return notes
}
