package server

import "github.com/inferflow/inferflow/internal/sample"

// idle refuses fields of a request that would do nothing for want of another:
// whoever sends one expects something of it. Values that change nothing pass, as
// clients send them with every request, and so does what stands beside a switch
// that the request itself turns off.
func (c *common) idle(p *sample.Params) error {
	own := sample.Defaults()
	for _, f := range []struct {
		name    string
		set, on bool
		by      string
		off     bool // the request says so
	}{
		{"mirostat_tau", differs(c.MirostatTau, own.Mirostat.Tau), p.Mirostat.Version > 0, "mirostat", c.Mirostat != nil},
		{"mirostat_eta", differs(c.MirostatEta, own.Mirostat.Eta), p.Mirostat.Version > 0, "mirostat", c.Mirostat != nil},
		{"fsd_k", differs(c.FSDK, own.FSD.K), p.FSD.Alpha > 0, "fsd_alpha", c.FSDAlpha != nil},
		{"fsd_n", differs(c.FSDN, own.FSD.N), p.FSD.Alpha > 0, "fsd_alpha", c.FSDAlpha != nil},
		{"fsd_beta", differs(c.FSDBeta, own.FSD.Beta), p.FSD.Alpha > 0, "fsd_alpha", c.FSDAlpha != nil},
		{"fsd_random", differs(c.FSDRandom, own.FSD.Random), p.FSD.Alpha > 0, "fsd_alpha", c.FSDAlpha != nil},
	} {
		if f.set && !f.on && !f.off {
			return badRequest(f.name, "%s has no effect without %s; give both or leave it out", f.name, f.by)
		}
	}
	if p.Temperature == 0 {
		for _, f := range []struct {
			name string
			set  bool
		}{{"mirostat", differs(c.Mirostat, 0)}, {"fsd_alpha", differs(c.FSDAlpha, 0)}, {"tfs_z", differs(c.TailFree, 1)}, {"pool_size", differs(c.Pool, 0)}} {
			if f.set {
				return badRequest(f.name, "%s has no effect at temperature 0, where the likeliest token is taken; leave it out or give a temperature above 0", f.name)
			}
		}
	}
	if c.RepeatPenalty != nil && c.RepetitionPenalty != nil && *c.RepeatPenalty != *c.RepetitionPenalty {
		return badRequest("repeat_penalty", "repeat_penalty is another name of repetition_penalty; give one of them")
	}
	return nil
}

// differs says that a field was sent with a value other than v.
func differs[T comparable](field *T, v T) bool { return field != nil && *field != v }
