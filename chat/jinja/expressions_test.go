package jinja

import (
	"encoding/json"
	"os"
	"path/filepath"
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

func readExpressions(t testing.TB, path string) (vars json.RawMessage, cases []expressionCase) {
	t.Helper()
	raw, err := os.ReadFile(path)
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
func TestExpressions(t *testing.T) { runExpressions(t, "testdata/expressions.json") }

// TestRandom does the same with random templates, of which
// testdata/make_random.py makes any number.
func TestRandom(t *testing.T) {
	path := filepath.Join(os.Getenv("INFERFLOW_TESTDATA"), "expressions.json")
	if _, err := os.Stat(path); err != nil {
		t.Skip("INFERFLOW_TESTDATA has no expressions.json (see testdata/make_random.py)")
	}
	runExpressions(t, path)
}

func runExpressions(t *testing.T, path string) {
	vars, cases := readExpressions(t, path)
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
