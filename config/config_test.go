package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const service = `; a comment
[main]
http_port = 8081
worker_count = 32
global_model_dir = ${data_root_dir}../models/

[transformer_engine]
;models = other
models = tiny
devices = 0&1;2&3
cpu_threads = 8
max_concurrent_queries = 6
colour = green

[model.tiny]
model_dir = ${global_model_dir}/${model_name}/
model_specification_file = ${data_root_dir}../models/$(model_name)/model_spec.json
device_weight_data_type = Q3H
device_weight_data_type.attn_wq = F16
device_kv_cache_data_type = Q8
max_context_len = 4096
decoding_strategy = {"name":"sample.top_p", "top_p":0.8}
prompt_template = chat.std

[prompt_template.chat.std]
line_count = 2
line1 = <|im_start|>{query}
line2 = {res_prefix}{eos}

[app_env.base]
data_root_dir = ${config_dir}../data/inferflow/
`

func TestService(t *testing.T) {
	f, err := ParseINI("/srv/bin/a.ini", []byte(service))
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Service()
	if err != nil {
		t.Fatal(err)
	}
	if s.Port != 8081 || s.Threads != 8 || s.Parallel != 6 || len(s.Models) != 1 {
		t.Errorf("%+v", s)
	}
	m := s.Models[0]
	if m.Name != "tiny" || m.Dir != filepath.Clean("/srv/data/models/tiny") || !strings.HasSuffix(m.SpecFile, "/models/tiny/model_spec.json") {
		t.Errorf("%+v", m)
	}
	if m.Context != 4096 || m.KVType != "q8" || m.Strategy.Name != "top_p" || m.Strategy.TopP == nil || *m.Strategy.TopP != 0.8 {
		t.Errorf("%+v", m)
	}
	want := []Part{{Kind: PartText, Text: "<|im_start|>"}, {Kind: PartQuery}, {Kind: PartText, Text: "\n"}, {Kind: PartAnswer}, {Kind: PartToken, Text: "eos"}}
	if !slices.Equal(m.Prompt.Parts, want) {
		t.Errorf("template %+v", m.Prompt.Parts)
	}
	for _, part := range []string{"devices = 0&1;2&3", "device_weight_data_type = Q3H", "worker_count", "colour is no key"} {
		if !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, part) }) {
			t.Errorf("no note of %q in %q", part, s.Notes)
		}
	}
	if slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "attn_wq") || strings.Contains(n, "global_model_dir") }) {
		t.Errorf("a note too much: %q", s.Notes)
	}
}

func TestServiceErrors(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"http_port = 8081", "http_port = 80810", "a.ini:3: http_port"},
		{"http_port = 8081", "http_port", "a.ini:3: the file is no configuration"},
		{"[main]", "[main", "a.ini:2"},
		{"[main]", "[main]\ntemperature = NaN", "temperature"},
		{"[main]", "[main]\ntemperature = 1e999", "temperature"},
		{"[main]", "[main]\ntemperature = -1", "temperature"},
		{"[main]", "[main]\nquery_random_seed = x", "query_random_seed"},
		{"models = tiny\n", "models = big\n", "no section [model.big]"},
		{"[transformer_engine]", "[engine]", "no section [transformer_engine]"},
		{"0&1;2&3", "0&1;2", "different sizes"},
		{"0&1;2&3", "gpu", `"gpu" is no device number`},
		{"\nmodel_dir = ", "\nmodel_folder = ", "needs model_dir"},
		{"${config_dir}", "${global_model_dir}", "leads back to itself"},
		{"${config_dir}", "${nowhere}", "defined nowhere"},
		{"${config_dir}", "${config_dir", "a.ini:"},
		{"line_count = 2", "line_count = 3", "line3 is missing"},
		{"{query}", "{hello}", "no place for the {query}"},
		{"chat.std\n", "chat.none\n", "no section [prompt_template.chat.none]"},
		{`"top_p":0.8`, `"top_p":8`, "it lies from 0 to 1"},
		{`"top_p":0.8`, `"top_p":`, "decoding_strategy"},
	} {
		text := strings.Replace(service, c.from, c.to, 1)
		if c.from == "models = tiny\n" {
			text = strings.Replace(service, "\nmodels = tiny\n", "\nmodels = big\n", 1)
		}
		f, err := ParseINI("a.ini", []byte(text))
		if err == nil {
			_, err = f.Service()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
		if err != nil && !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrValue) {
			t.Errorf("%s: %v is neither ErrSyntax nor ErrValue", c.to, err)
		}
	}
}

// TestMacroBomb: values that double at every step end in an error, not in memory.
func TestMacroBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("[main]\na0 = " + strings.Repeat("x", 1000) + "\n")
	for i := 1; i < 30; i++ {
		a := "${a" + string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10)) + "}"
		if i == 1 {
			a = "${a0}"
		}
		b.WriteString("a" + string(rune('0'+i/10)) + string(rune('0'+i%10)) + " = " + a + a + "\n")
	}
	f, err := ParseINI("a.ini", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Text(f.Section("main"), "a29", nil); !errors.Is(err, ErrValue) {
		t.Errorf("%v", err)
	}
}

// TestEmptyMacroBomb: values that stay empty are bounded by their number.
func TestEmptyMacroBomb(t *testing.T) {
	text := "[main]\na0 =\n"
	for i := 1; i < 6; i++ {
		text += fmt.Sprintf("a%d = %s\n", i, strings.Repeat(fmt.Sprintf("${a%d}", i-1), 100))
	}
	f, err := ParseINI("a.ini", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Text(f.Section("main"), "a5", nil); !errors.Is(err, ErrValue) {
		t.Errorf("%v", err)
	}
}

func TestQueries(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.ini"), []byte(service), 0o644); err != nil {
		t.Fatal(err)
	}
	text := "[main]\ninference_engine_config = ${config_dir}/s.ini\nquery_list = query_list.a\nquery_random_seed = 7\ntemperature = 0.7\n" +
		"[query_list.a]\nquery_count = 3\nquery1 = What is {it}?\nquery2 = {\"text\":\"Who?\",\"res_prefix\":\"He is\"}\nquery3 = {\"res_prefix\": broken\n"
	f, err := ParseINI(filepath.Join(dir, "q.ini"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	q, err := f.Queries()
	if err != nil {
		t.Fatal(err)
	}
	want := []Query{{Text: "What is {it}?"}, {Text: "Who?", Prefix: "He is"}, {Text: `{"res_prefix": broken`}}
	if !slices.Equal(q.List, want) || q.Seed != 7 || q.Temperature != 0.7 || q.Service.Models[0].Name != "tiny" {
		t.Errorf("%+v", q)
	}
	if _, err := (&INI{Path: "x"}).Queries(); err == nil {
		t.Error("an empty file is no list")
	}
}

func TestTemplate(t *testing.T) {
	tpl, err := ParseTemplate(`{bos}[INST] {system_prompt}{\n}{_query} {x}[/INST]{res_prefix}{#7}`)
	if err != nil {
		t.Fatal(err)
	}
	token := func(n string) (string, bool) { return map[string]string{"bos": "<s>", "x": "x"}[n], n != "gone" }
	id := func(n int) (string, bool) { return "it's\n", n == 7 }
	got, err := tpl.Jinja(token, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`{{- '<s>' -}}{{- '[INST] ' -}}{{- ns.system -}}{{- '\n' -}}{{- ' ' + query -}}{{- ' ' -}}{{- 'x' -}}{{- '[/INST]' -}}`, `{{- 'it\'s\n' -}}`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s\nis not in %s", part, got)
		}
	}
	bad, _ := ParseTemplate("{query}{gone}")
	if _, err := bad.Jinja(token, id); !errors.Is(err, ErrValue) {
		t.Errorf("an unknown token gives %v", err)
	}
	bad, _ = ParseTemplate("{query}{#8}")
	if _, err := bad.Jinja(token, id); !errors.Is(err, ErrValue) {
		t.Errorf("an unknown number gives %v", err)
	}
}

func FuzzService(f *testing.F) {
	f.Add([]byte(service))
	f.Add([]byte("[main]\nquery_list = q\n[q]\nquery_count = 99999\n[transformer_engine]\nmodels = a"))
	f.Add([]byte("[a]\nb = ${a/b}\n[transformer_engine]\nmodels=a,b\n[model.a]\nmodel_dir=$(x)"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ini, err := ParseINI("a.ini", data)
		if err != nil {
			return
		}
		if s, err := ini.Service(); err == nil && len(s.Models) == 0 {
			t.Error("a service without models")
		}
		ini.path()
	})
}

// path reads what a list of queries needs, without other files.
func (f *INI) path() {
	for _, s := range f.sections {
		_, _ = f.queryList(s.Name)
		for _, e := range s.Entries() {
			_, _, _ = f.Text(s, e.Key, nil)
			_, _ = f.template(e.Value, ParseFrame)
			_, _ = ParseStrategy(e.Value)
		}
	}
}
