package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/internal/complete"
)

// setting is a value that /set changes.
type setting struct {
	name    string
	allowed string
	show    func(p *complete.Params) string
	set     func(p *complete.Params, value string) bool // false where the value is no number of this kind
}

func realSetting(name, allowed string, field func(p *complete.Params) *float64) setting {
	return setting{name, allowed,
		func(p *complete.Params) string { return strconv.FormatFloat(*field(p), 'g', 6, 64) },
		func(p *complete.Params, value string) bool {
			x, err := strconv.ParseFloat(value, 64)
			*field(p) = x
			return err == nil
		}}
}

func wholeSetting(name, allowed string, low int, field func(p *complete.Params) *int) setting {
	return setting{name, allowed,
		func(p *complete.Params) string { return strconv.Itoa(*field(p)) },
		func(p *complete.Params, value string) bool {
			n, err := strconv.Atoi(value)
			*field(p) = n
			return err == nil && n >= low && n <= math.MaxInt32
		}}
}

// settings in the order in which they are shown.
var settings = []setting{
	realSetting("temperature", "0 (always the likeliest token) or more", func(p *complete.Params) *float64 { return &p.Sample.Temperature }),
	wholeSetting("top-k", "0 (all tokens) or more, a whole number", 0, func(p *complete.Params) *int { return &p.Sample.TopK }),
	realSetting("top-p", "above 0, at most 1 (all tokens)", func(p *complete.Params) *float64 { return &p.Sample.TopP }),
	realSetting("min-p", "0 (all tokens) to 1", func(p *complete.Params) *float64 { return &p.Sample.MinP }),
	realSetting("typical-p", "above 0, at most 1 (all tokens)", func(p *complete.Params) *float64 { return &p.Sample.TypicalP }),
	realSetting("tfs-z", "above 0, at most 1 (all tokens)", func(p *complete.Params) *float64 { return &p.Sample.TailFree }),
	wholeSetting("mirostat", "1, 2 or 0 (off)", 0, func(p *complete.Params) *int { return &p.Sample.Mirostat.Version }),
	realSetting("mirostat-tau", "0 to 100 bits", func(p *complete.Params) *float64 { return &p.Sample.Mirostat.Tau }),
	realSetting("mirostat-eta", "0 to 100", func(p *complete.Params) *float64 { return &p.Sample.Mirostat.Eta }),
	realSetting("fsd-alpha", "0 (off) to 1", func(p *complete.Params) *float64 { return &p.Sample.FSD.Alpha }),
	wholeSetting("fsd-k", "1 to 1024", 1, func(p *complete.Params) *int { return &p.Sample.FSD.K }),
	wholeSetting("fsd-n", "1 to 16", 1, func(p *complete.Params) *int { return &p.Sample.FSD.N }),
	realSetting("fsd-beta", "0 to 1", func(p *complete.Params) *float64 { return &p.Sample.FSD.Beta }),
	wholeSetting("fsd-random", "0 or more, a whole number", 0, func(p *complete.Params) *int { return &p.Sample.FSD.Random }),
	wholeSetting("pool-size", "0 (off) or more, a whole number", 0, func(p *complete.Params) *int { return &p.Sample.Pool }),
	wholeSetting("eos-bypassing-max", "0 or more, a whole number", 0, func(p *complete.Params) *int { return &p.Sample.PutOff }),
	realSetting("repetition-penalty", "above 0; 1 is none", func(p *complete.Params) *float64 { return &p.Sample.RepetitionPenalty }),
	realSetting("presence-penalty", "-2 to 2; 0 is none", func(p *complete.Params) *float64 { return &p.Sample.PresencePenalty }),
	realSetting("frequency-penalty", "-2 to 2; 0 is none", func(p *complete.Params) *float64 { return &p.Sample.FrequencyPenalty }),
	wholeSetting("penalty-window", "0 (all tokens) or more, a whole number", 0, func(p *complete.Params) *int { return &p.Sample.PenaltyWindow }),
	{"seed", "0 or more, a whole number",
		func(p *complete.Params) string { return strconv.FormatUint(p.Sample.Seed, 10) },
		func(p *complete.Params, value string) bool {
			n, err := strconv.ParseUint(value, 10, 64)
			p.Sample.Seed = n
			return err == nil
		}},
	wholeSetting("max-tokens", "0 (what the context holds) or more, a whole number", 0, func(p *complete.Params) *int { return &p.Max }),
}

// set changes a setting and says so; with a name alone it shows the setting,
// without one all of them.
func (t *talk) set(arg string) error {
	name, value, _ := strings.Cut(strings.Replace(arg, "=", " ", 1), " ")
	value = strings.TrimSpace(value)
	if name == "" {
		t.showSettings()
		return nil
	}
	for _, s := range settings {
		if s.name != strings.ReplaceAll(name, "_", "-") {
			continue
		}
		if value == "" {
			fmt.Fprintf(t.notes, "%s is %s; allowed: %s\n", s.name, s.show(&t.p), s.allowed)
			return nil
		}
		p := t.p
		if !s.set(&p, value) || p.Sample.Validate() != nil {
			return fmt.Errorf("%s cannot be %q; allowed: %s", s.name, value, s.allowed)
		}
		p.Draws = p.Draws || slices.Contains(drawing, s.name)
		before := s.show(&t.p)
		t.p = p
		fmt.Fprintf(t.notes, "%s is %s now (was %s)\n", s.name, s.show(&t.p), before)
		return nil
	}
	return fmt.Errorf("there is no setting %q; /set lists them", name)
}

func (t *talk) showSettings() {
	for _, s := range settings {
		fmt.Fprintf(t.notes, "  %-18s %-10s %s\n", s.name, s.show(&t.p), s.allowed)
	}
}
