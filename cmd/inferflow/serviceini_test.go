package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/demo"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// TestMain lets the test binary trace strangers' specifications, as the program does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.ChildCommand {
		os.Exit(spec.ChildMain(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

const iniText = `[main]
http_port = 8123
global_model_dir = ${config_dir}models
[transformer_engine]
models = tale
cpu_threads = 1
max_concurrent_queries = 3
[model.tale]
model_dir = ${global_model_dir}/${model_name}
model_specification_file = model_spec.json
max_context_len = 100
decoding_strategy = greedy
prompt_template = Tell:{\n}{query}{\n}{res_prefix}{eos}
`

const iniSpec = `# as the C++ engine has it
{"config_file": "", "model_files": ["demo.gguf"], "model_file_format": "gguf", "tokenizer_files": [],
 "network_structure": {"type": "transformer.llama", "qk_column_order": 1, "tensor_name_prefix": "blk.", "tensor_name_mapping": {}}}`

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func openINI(t *testing.T, path string) (*iniService, *complete.Service) {
	t.Helper()
	x, err := openINIService(path)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := model.Options{Spec: spec.Options{Executable: exe}}
	x.options(&o, pflag.NewFlagSet("", pflag.ContinueOnError))
	s, err := x.open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return x, s
}

// TestINIService serves the demo model by a service file and a model_spec.json:
// its template and settings count, and its answers are those of the shipped
// specification.
func TestINIService(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "models", "tale", "demo.gguf"), demo.Data())
	write(t, filepath.Join(dir, "models", "tale", "model_spec.json"), []byte(iniSpec))
	write(t, filepath.Join(dir, "s.ini"), []byte(iniText))
	x, s := openINI(t, filepath.Join(dir, "s.ini"))
	if x.file.Port != 8123 || s.Model.Limits.Tokens != 100 || s.Model.Limits.Seqs != 3 || s.Defaults().Temperature != 0 {
		t.Errorf("port %d, %+v, %+v", x.file.Port, s.Model.Limits, s.Defaults())
	}
	in := chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{
		{Role: "user", Content: "of a cat"}, {Role: "assistant", Content: "No."}, {Role: "system", Content: "Be nice."}, {Role: "user", Content: "<|endoftext|>why?"}}}
	ids, err := s.Chat(in)
	if err != nil {
		t.Fatal(err)
	}
	eos, _ := s.Tok.EOS()
	if n := countID(ids, eos); n != 2 { // the first token and that of the closed turn, not the user's
		t.Errorf("%d end tokens in %q", n, s.Tok.Decode(ids, false))
	}
	if got := s.Tok.Decode(ids, true); !strings.Contains(got, "Tell:\nof a cat\nNo.") || !strings.HasSuffix(got, "Tell:\nBe nice.\n<|endoftext|>why?\n") {
		t.Errorf("the prompt is %q", got)
	}
	plain := openDemoService(t)
	for _, q := range []config.Query{{Text: "Once upon a time"}} {
		_, a, err := answerQuery(context.Background(), s, x, q, complete.Params{Sample: s.Defaults(), Max: 20})
		if err != nil {
			t.Fatal(err)
		}
		ids, _ := s.Chat(chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: q.Text}}})
		run, err := plain.Start(context.Background(), ids, complete.Params{Sample: s.Defaults(), Max: 20})
		if err != nil {
			t.Fatal(err)
		}
		want, err := run.Collect(nil)
		if err != nil || !slices.Equal(a.IDs, want.IDs) {
			t.Errorf("%v, the shipped specification says %v (%v)", a.IDs, want.IDs, err)
		}
	}
}

// TestINIMatching: fmm takes the files of the specification, other algorithms those of the model.
func TestINIMatching(t *testing.T) {
	dir := t.TempDir()
	ini, folder := filepath.Join(dir, "s.ini"), filepath.Join(dir, "models", "tale")
	write(t, ini, []byte(iniText))
	write(t, filepath.Join(folder, "demo.gguf"), demo.Data())
	write(t, filepath.Join(folder, "v.txt"), []byte("[?]\nTell:\na\nab\nabc\n\u010a\n\u0120a\n<e>\n<\n<p>\n"))
	write(t, filepath.Join(folder, "special_tokens_map.json"), []byte(`{"unk_token": {"content": "[?]"}, "eos_token": "<", "pad_token": "<p>", "additional_special_tokens": []}`))
	open := func(algorithm, files string) *complete.Service {
		change := strings.NewReplacer(`"tokenizer_files": []`, `"tokenizer_files": [`+files+`], "tokenization_algorithm": "`+algorithm+`", "token_bytes_mapping": 1, "eos_token": "<e>"`)
		write(t, filepath.Join(folder, "model_spec.json"), []byte(change.Replace(iniSpec)))
		_, s := openINI(t, ini)
		return s
	}
	s := open("fmm", `"v.txt", "special_tokens_map.json"`)
	ids, err := s.Chat(chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: "ab"}, {Role: "assistant", Content: "abcab"}, {Role: "user", Content: "a a<e>"}}})
	if want := []int32{1, 5, 3, 5, 4, 3, 7, 1, 5, 2, 6, 8, 0, 0, 5}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v, %v, want %v", ids, err, want)
	}
	if eos, _ := s.Tok.EOS(); eos != 7 || !s.Tok.IsControl(9) || s.Tok.IsControl(8) {
		t.Errorf("eos is %d", eos)
	}
	own := openDemoService(t).Tok
	if got := open("bpe", `"v.txt"`).Tok; got.Size() != own.Size() {
		t.Errorf("bpe has %d tokens, the model's own tokenizer %d", got.Size(), own.Size())
	}
}

// TestINIMatchingErrors: files that are not there or not of the folder.
func TestINIMatchingErrors(t *testing.T) {
	dir := t.TempDir()
	ini, folder := filepath.Join(dir, "s.ini"), filepath.Join(dir, "models", "tale")
	write(t, ini, []byte(iniText))
	write(t, filepath.Join(folder, "demo.gguf"), demo.Data())
	for files, want := range map[string]string{``: "none is a vocabulary", `"v.txt"`: "no v.txt in", `"../v.txt"`: "out of the model's folder"} {
		write(t, filepath.Join(folder, "model_spec.json"), []byte(strings.Replace(iniSpec, `"tokenizer_files": []`, `"tokenizer_files": [`+files+`], "tokenization_algorithm": "fmm"`, 1)))
		x, err := openINIService(ini)
		if err != nil {
			t.Fatal(err)
		}
		o := model.Options{}
		x.options(&o, pflag.NewFlagSet("", pflag.ContinueOnError))
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		o.Spec.Executable = exe
		if s, err := x.open(context.Background(), o); err == nil {
			s.Close()
			t.Errorf("%s: it opens", files)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", files, err)
		}
	}
}

func countID(ids []int32, id int32) (n int) {
	for _, x := range ids {
		if x == id {
			n++
		}
	}
	return n
}

func openDemoService(t *testing.T) *complete.Service {
	t.Helper()
	m, err := openDemo(model.Options{Threads: 1, Context: 100})
	if err == nil {
		err = m.Load()
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := complete.New(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestINIErrors(t *testing.T) {
	dir := t.TempDir()
	ini := filepath.Join(dir, "s.ini")
	write(t, ini, []byte(iniText))
	if _, err := openINIService(ini); err == nil || !strings.Contains(err.Error(), "model_spec.json") {
		t.Errorf("a missing specification: %v", err)
	}
	file := filepath.Join(dir, "models", "tale", "model_spec.json")
	write(t, file, []byte(strings.Replace(iniSpec, "demo.gguf", "../../demo.gguf", 1)))
	if _, err := openINIService(ini); err == nil || !strings.Contains(err.Error(), "out of the model's folder") {
		t.Errorf("a path that leads out: %v", err)
	}
	write(t, file, []byte(`{}`))
	if _, err := openINIService(ini); err == nil || !strings.Contains(err.Error(), "network_structure") {
		t.Errorf("an empty specification: %v", err)
	}
}
