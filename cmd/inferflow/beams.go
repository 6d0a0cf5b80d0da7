package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/sample"
)

// beamFlags ask for a search with beams. Those that are not given leave what
// the model's own files say.
type beamFlags struct {
	fs            *pflag.FlagSet
	beams         int
	lengthPenalty float64
	early         string
}

func (f *beamFlags) add(fs *pflag.FlagSet) {
	f.fs = fs
	fs.IntVar(&f.beams, "beams", 0, "search the likeliest answer with so many beams, 1 to 64; 1: none (default: the model's; the answer comes at its end)")
	fs.Float64Var(&f.lengthPenalty, "length-penalty", 1, "with beams: divide an answer's score by its length to this power; above 0 favours long answers")
	fs.StringVar(&f.early, "early-stopping", "false", "with beams: end as soon as there are as many answers (true), when better ones are unlikely (false), or when there can be none (never)")
}

// apply merges the flags into p, whose sampling flags are s.
func (f *beamFlags) apply(s *samplingFlags, p *complete.Params) error {
	given := f.fs.Changed
	if given("beams") {
		if f.beams < 1 || f.beams > sample.MaxBeams {
			return usagef("--beams %d: 1 to %d are possible", f.beams, sample.MaxBeams)
		}
		p.Search.Beams = f.beams
		if clash := s.draws(); f.beams > 1 && len(clash) > 0 && p.Sample.Temperature != 0 {
			return usagef("--beams %d searches and draws no tokens, so --%s does not go with it", f.beams, strings.Join(clash, ", --"))
		}
	}
	if given("length-penalty") {
		p.Search.LengthPenalty = &f.lengthPenalty
	}
	if given("early-stopping") {
		e, err := complete.ParseEarly(f.early)
		if err != nil {
			return usagef("--early-stopping %q: want true, false or never", f.early)
		}
		p.Search.Early = &e
	}
	return nil
}
