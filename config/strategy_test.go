package config

import (
	"errors"
	"strings"
	"testing"
)

// TestStrategies reads names and parameters.
func TestStrategies(t *testing.T) {
	for _, c := range []struct{ text, name, notes string }{
		{"", "", ""},
		{"sample.std", "std", ""},
		{" Sample.FSD ", "fsd", ""},
		{"random_fsd", "random_fsd", ""},
		{"beam", "std", `"beam" is no known one`},
		{`{"name":"tfs", "z": 0.9, "pool_size": 20, "eos_bypassing_max": 2, "min_k": 1}`, "tfs", ""},
		{`{"name":"sample.fsd", "top_p":0.9}`, "fsd", "top_p has no effect with fsd"},
		{`{"name":"mirostat", "tau": 3, "eta": 0.2, "colour": 1}`, "mirostat", "colour has no effect"},
		{`{"top_p": 1}`, "std", `"" is no known one`},
	} {
		s, err := ParseStrategy(c.text)
		if notes := strings.Join(s.Notes, "; "); err != nil || s.Name != c.name || c.notes == "" && notes != "" || !strings.Contains(notes, c.notes) {
			t.Errorf("%s: %q, %q, %v", c.text, s.Name, notes, err)
		}
	}
	s, err := ParseStrategy(`{"name":"typical", "p": 0}`)
	if err != nil || s.TypicalP == nil || *s.TypicalP != 0 || s.Z != nil {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{`{`, `{"name": 3}`, `{"name":"fsd","k":0}`, `{"name":"fsd","n":17}`, `{"name":"fsd","alpha":1.5}`, `{"name":"tfs","z":-1}`,
		`{"name":"mirostat","tau":1e9}`, `{"name":"std","pool_size":-1}`, `{"name":"std","top_p":"x"}`} {
		if _, err := ParseStrategy(bad); !errors.Is(err, ErrValue) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
