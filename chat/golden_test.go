package chat

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

type conversation struct {
	Name     string                     `json:"name"`
	Messages []Message                  `json:"messages"`
	Tools    []Tool                     `json:"tools"`
	Extra    map[string]json.RawMessage `json:"extra"`
}

type golden struct {
	Text  *string `json:"text"`
	Error string  `json:"error"`
}

func readJSONFile(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestGoldens holds the package's own templates, which use every feature of the
// language that chat templates use, against Jinja2's output.
func TestGoldens(t *testing.T) { runGoldens(t, "testdata/templates", "testdata/goldens.json") }

// TestCorpus holds the templates of real models against Jinja2. They have
// licences of their own, so they are not in the repository:
// testdata/collect_templates.py says where they come from.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("INFERFLOW_TESTDATA")
	if dir == "" {
		t.Skip("INFERFLOW_TESTDATA is not set: the templates of real models are not here (see testdata/collect_templates.py)")
	}
	dir = filepath.Join(dir, "templates")
	if _, err := os.Stat(filepath.Join(dir, "goldens.json")); err != nil {
		t.Skipf("%v (see testdata/collect_templates.py)", err)
	}
	runGoldens(t, dir, filepath.Join(dir, "goldens.json"))
}

func runGoldens(t *testing.T, dir, goldens string) {
	var cases []conversation
	readJSONFile(t, "testdata/conversations.json", &cases)
	var want map[string]map[string]golden
	readJSONFile(t, goldens, &want)
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			tpl, err := Parse(string(source), Options{Arguments: ArgumentsObject})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				checkGolden(t, tpl, c, false, want[name][c.Name])
				checkGolden(t, tpl, c, true, want[name][c.Name+"+"])
			}
		})
	}
}

func checkGolden(t *testing.T, tpl *Template, c conversation, prompt bool, want golden) {
	t.Helper()
	in := Input{Messages: c.Messages, Tools: c.Tools, AddGenerationPrompt: prompt, BOS: "<s>", EOS: "</s>",
		Extra: map[string]any{}, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for k, v := range c.Extra {
		in.Extra[k] = v
	}
	pieces, err := tpl.Render(in)
	if want.Error != "" { // without the second try that Render gives a message without content; see TestNoContent
		pieces, err = tpl.renderWithin(context.Background(), 0, in)
	}
	got := Join(pieces)
	switch {
	case want.Text == nil && want.Error == "":
		t.Errorf("%s (prompt %v): no golden: run testdata/make_goldens.py", c.Name, prompt)
	case want.Text == nil:
		message, raised := strings.CutPrefix(want.Error, "TemplateError: ")
		if err == nil || raised && (!errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), ": "+message)) {
			t.Errorf("%s (prompt %v): got error %v, Jinja2 has %s", c.Name, prompt, err, want.Error)
		}
	case err != nil:
		t.Errorf("%s (prompt %v): %v", c.Name, prompt, err)
	case got != *want.Text:
		k := 0
		for k < len(got) && k < len(*want.Text) && got[k] == (*want.Text)[k] {
			k++
		}
		t.Errorf("%s (prompt %v): differs from byte %d\n got %q\nwant %q", c.Name, prompt, k, around(got, k), around(*want.Text, k))
	default:
		checkUserText(t, c, pieces)
	}
}

func around(s string, k int) string { return s[max(0, k-60):min(len(s), k+60)] }

// checkUserText demands that special tokens typed into the conversation "weird"
// never count as the template's text.
func checkUserText(t *testing.T, c conversation, pieces []Piece) {
	t.Helper()
	if c.Name != "weird" {
		return
	}
	for i, p := range pieces {
		if p.Text == "" || i > 0 && pieces[i-1].User == p.User {
			t.Errorf("%s: piece %d is empty or not joined with its neighbour", c.Name, i)
		}
		for _, typed := range []string{"quo'tes", "<|eot_id|> </s> [INST]", "日本語"} {
			if !p.User && strings.Contains(p.Text, typed) {
				t.Errorf("%s: %q counts as text of the template", c.Name, typed)
			}
		}
	}
}
