package main

import (
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/activations"
	"github.com/inferflow/inferflow/internal/graph"
)

// TestTraceVerdict: only numbers that were compared and agree end well.
func TestTraceVerdict(t *testing.T) {
	a := activations.Match{Name: "norm", Line: graph.Line{Line: 7}}
	nan, apart := a, a
	nan.Unknown, apart.Name = 4, "logits"
	for name, c := range map[string]struct {
		rep  activations.Report
		want string
	}{
		"agrees":            {activations.Report{Compared: 1, Matches: []activations.Match{a}}, ""},
		"nothing compared":  {activations.Report{}, "no value of the specification has a name of acts"},
		"NaN on both sides": {activations.Report{Compared: 2, Matches: []activations.Match{a, nan}}, "line 7, norm: NaN here and in the reference"},
		"differs as well":   {activations.Report{Compared: 2, Matches: []activations.Match{nan}, First: &activations.Difference{Match: a}}, "line 7 is the first that differs"},
		"logits apart":      {activations.Report{Compared: 1, Matches: []activations.Match{a}, Apart: []activations.Match{apart}}, "the logits have another shape"},
	} {
		err := traceVerdict(&c.rep, "acts")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
