package jinja

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// now is the clock of the goldens.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type expressionCase struct {
	Source string  `json:"source"`
	Text   *string `json:"text"`
	Error  string  `json:"error"`
}

func readExpressions(t testing.TB) (vars json.RawMessage, cases []expressionCase) {
	t.Helper()
	raw, err := os.ReadFile("testdata/expressions.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vars  json.RawMessage  `json:"vars"`
		Cases []expressionCase `json:"cases"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Vars, file.Cases
}

func renderSource(source string, vars json.RawMessage, lim Limits) (Str, error) {
	tpl, err := Parse(source, lim)
	if err != nil {
		return Str{}, err
	}
	v, err := FromJSON(vars, true)
	if err != nil {
		return Str{}, err
	}
	pieces, err := tpl.Render(v.(*Dict), now)
	var b strBuilder
	for _, p := range pieces {
		b.addText(p.Text, p.User)
	}
	return b.str(), err
}

// TestExpressions holds small templates against what Jinja2 3.1.6 makes of them
// (testdata/make_expressions.py).
func TestExpressions(t *testing.T) {
	vars, cases := readExpressions(t)
	for _, c := range cases {
		got, err := renderSource(c.Source, vars, Limits{})
		switch {
		case c.Text == nil && err == nil:
			t.Errorf("%s\n got %q\nwant error %s", c.Source, got.s, c.Error)
		case c.Text != nil && err != nil:
			t.Errorf("%s\n got %v\nwant %q", c.Source, err, *c.Text)
		case c.Text != nil && got.s != *c.Text:
			t.Errorf("%s\n got %q\nwant %q", c.Source, got.s, *c.Text)
		}
	}
}
