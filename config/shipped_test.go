package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestShippedFiles reads every .ini file that the C++ Inferflow comes with
// (testdata/ini, as they are there): all models, templates and lists in it.
func TestShippedFiles(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "ini", "*.ini"))
	if err != nil || len(paths) != 7 {
		t.Fatalf("%d files: %v", len(paths), err)
	}
	strategies, models, queries := map[string]int{}, 0, 0
	for _, path := range paths {
		f, err := ReadINI(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(path, "client") {
			if _, err := f.Engine(); err == nil || !strings.Contains(err.Error(), "a client's file") {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		s, err := f.Engine()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range s.Notes {
			if strings.Contains(n, "no key") || strings.Contains(n, "no section") {
				t.Errorf("%s: %s", path, n)
			}
		}
		for _, sec := range f.Sections("model.") {
			m, err := f.model(strings.TrimPrefix(sec.Name, "model."), s)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			models++
			strategies[m.Strategy.Name]++
		}
		for _, sec := range f.Sections("query_list") {
			list, err := f.queryList(sec.Name)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			queries += len(list)
			if sec.Name == "query_list.facebook_m2m100" && (list[0].Encoder == nil || !slices.ContainsFunc(list[0].Encoder.Parts, func(p Part) bool { return p.Text == "__zh__" }) ||
				list[0].Decoder == nil || list[0].Decoder.Parts[0].ID != 2) {
				t.Errorf("%+v", list[0])
			}
		}
		if strings.Contains(path, "llm_inference") {
			if q, err := f.Queries(); err != nil || len(q.List) == 0 || q.Seed != 1 || q.Temperature != 0.7 {
				t.Errorf("%s: %+v, %v", path, q, err)
			}
		}
		if strings.Contains(path, "perplexity") {
			if p, err := f.Perplexity(); err != nil || p.Length != 512 || p.Stride != 512 || filepath.Base(p.Text) != "wiki.test.raw" {
				t.Errorf("%s: %+v, %v", path, p, err)
			}
		}
	}
	if models < 36 || queries < 35 || strategies["fsd"] < 4 || strategies["top_p"] < 10 || strategies["greedy"] != 3 {
		t.Errorf("%d models, %d queries, strategies %v", models, queries, strategies)
	}
}

// TestFramedQueries reads plain and framed queries.
func TestFramedQueries(t *testing.T) {
	for text, want := range map[string]Query{
		`Say{\n}it`:                        {Text: "Say\nit"},
		`{"text": "a\nb"}`:                 {Text: "a\nb"},
		`{"res_prefix": "It"}`:             {Prefix: "It"},
		`{"colour": "red"}`:                {Text: `{"colour": "red"}`},
		`{"text":"t","system_prompt":"s"}`: {Text: "t", System: "s"},
	} {
		if q, err := parseQuery(text); err != nil || q != want {
			t.Errorf("%s: %+v, %v", text, q, err)
		}
	}
	q, err := parseQuery(`{"text": "t", "encoder_input_template": "{__en__}{query}{</s>}", "decoder_input_template": "{#2}{__fr__}"}`)
	if err != nil || len(q.Encoder.Parts) != 3 || len(q.Decoder.Parts) != 2 {
		t.Errorf("%+v, %v", q, err)
	}
	for _, bad := range []string{`{"text": "t", "encoder_input_template": "{x}"}`, `{"text": "t", "decoder_input_template": "{#x}"}`} {
		if _, err := parseQuery(bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
