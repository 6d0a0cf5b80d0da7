package config

import (
	"path/filepath"
	"slices"
	"strconv"
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

// TestBombs: values that grow without end are errors, at once.
func TestBombs(t *testing.T) {
	var wide strings.Builder
	for i := range 20 {
		wide.WriteString("a" + strconv.Itoa(i) + " = " + strings.Repeat("${main/a"+strconv.Itoa(i+1)+"}", 10) + "\n")
	}
	for name, c := range map[string]struct{ text, want string }{
		"wide": {wide.String() + "a20 = x\nhttp_port = ${a0}\n", "macros"},
		"deep": {chain(60) + "http_port = ${a0}\n", "macros deep"},
		"loop": {wide.String() + "a20 = ${a0}\nhttp_port = ${a0}\n", "leads back to itself"},
		"long": {"http_port = " + strings.Repeat("1", 2<<20) + "\n", "more than 1048576 bytes"},
	} {
		f, err := ParseINI("a.ini", []byte("[main]\n"+c.text+"[transformer_engine]\nmodels = x\n"))
		if err == nil {
			_, err = f.Service()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseTemplate(strings.Repeat("{\\n}", 200000) + "{query}"); err == nil {
		t.Error("a template of 200,000 keys is accepted")
	}
}

// chain is keys each of which is a macro of the next.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("a" + strconv.Itoa(i) + " = ${a" + strconv.Itoa(i+1) + "}\n")
	}
	return b.String() + "a" + strconv.Itoa(n) + " = 1\n"
}
