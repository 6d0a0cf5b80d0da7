package convert

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// TestMain lets this program trace specifications as the real one does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.ChildCommand {
		os.Exit(spec.ChildMain(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// TestOwnKeys reads files whose keys of our own say what cannot be.
func TestOwnKeys(t *testing.T) {
	config := map[string]any{spec.OwnConfigKey: "{}"}
	for what, c := range map[string]struct {
		arch string
		set  map[string]any
		say  string
	}{
		"no configuration": {spec.OwnArchitecture, nil, "no JSON object"},
		"no object":        {spec.OwnArchitecture, map[string]any{spec.OwnConfigKey: "[1"}, "no JSON object"},
		"no list":          {"x", map[string]any{model.OwnTensorsKey: "{"}, model.OwnTensorsKey},
		"type":             {"x", map[string]any{model.OwnTensorsKey: `[{"name":"a","type":"Q9","shape":[1]}]`}, "Q9"},
		"no bytes":         {"x", map[string]any{model.OwnTensorsKey: `[{"name":"a","type":"F32","shape":[4]}]`}, "0 bytes"},
		"too few bytes":    {"x", map[string]any{model.OwnTensorsKey: `[{"name":"a","type":"F32","shape":[4,2]}]`, model.OwnTensorPrefix + "a": make([]byte, 31)}, "31 bytes"},
		"overflow":         {"x", map[string]any{model.OwnTensorsKey: `[{"name":"a","type":"F32","shape":[4611686018427387904,4611686018427387904,4]}]`, model.OwnTensorPrefix + "a": make([]byte, 32)}, "32 bytes"},
		"negative":         {"x", map[string]any{model.OwnTensorsKey: `[{"name":"a","type":"F32","shape":[-2,-4]}]`, model.OwnTensorPrefix + "a": make([]byte, 32)}, "32 bytes"},
		"twice":            {"x", map[string]any{model.OwnTensorsKey: `[{"name":"t","type":"F32","shape":[1]}]`, model.OwnTensorPrefix + "t": make([]byte, 4)}, "twice"},
		"names":            {"x", map[string]any{model.OwnNamesKey: []string{"long"}}, "inferflow.0"},
	} {
		t.Run(what, func(t *testing.T) {
			w := &gguf.Writer{}
			path := filepath.Join(t.TempDir(), "m.gguf")
			err := w.Set("general.architecture", c.arch)
			if c.arch == "x" {
				c.set[spec.OwnConfigKey] = config[spec.OwnConfigKey]
			}
			for k, v := range c.set {
				if err == nil {
					err = w.Set(k, v)
				}
			}
			if err == nil {
				err = w.Add("t", 0, []int{1}, func(out io.Writer) error {
					_, err := out.Write(make([]byte, 4))
					return err
				})
			}
			if err == nil {
				err = w.WriteFile(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			f, err := model.OpenStored(path)
			if err == nil {
				f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.say) {
				t.Errorf("got %v, want an error that says %q", err, c.say)
			}
		})
	}
}

// copyFolder copies a model's two files and writes others beside them.
func copyFolder(t *testing.T, from string, more map[string]string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		if _, given := more[name]; given {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		more[name] = string(raw)
	}
	for name, text := range more {
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestPrompts keeps lengths and prompts of sentence-transformers in both forms
// of GGUF file, and says that llama.cpp will not put the prompt.
func TestPrompts(t *testing.T) {
	dir := zoo(t)
	for _, family := range []string{"bert", "roberta"} {
		in := copyFolder(t, filepath.Join(dir, family), map[string]string{
			"modules.json":                      `[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}]`,
			"1_Pooling/config.json":             `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false,"include_prompt":false}`,
			"config_sentence_transformers.json": `{"prompts":{"query":"find: "},"default_prompt_name":"query"}`,
			"sentence_bert_config.json":         `{"max_seq_length": 7}`,
		})
		out := t.TempDir()
		file, back, told := filepath.Join(out, "m.gguf"), filepath.Join(out, "back"), ""
		if err := Run(in, file, Options{Notice: func(s string) { told += s }}); err != nil {
			t.Fatal(err)
		}
		if family == "bert" && !strings.Contains(told, "find: ") {
			t.Errorf("told %q", told)
		}
		if err := Run(file, back, Options{}); err != nil {
			t.Fatal(err)
		}
		want := rowsOf(t, in, spec.OutputEmbedding)
		for _, path := range []string{file, back} {
			near(t, rowsOf(t, path, spec.OutputEmbedding), want)
			m, err := model.Open(path, model.Options{NoTokenizer: true, Output: spec.OutputEmbedding})
			if err != nil {
				t.Fatal(err)
			}
			if s := m.Sentence; s.MaxTokens != 7 || s.Prompts["query"] != "find: " || s.DefaultPrompt != "query" || s.IncludePrompt {
				t.Errorf("%s: %+v", path, s)
			}
			m.Close()
		}
	}
}

// TestForeign carries a specification that is not shipped inside the file.
func TestForeign(t *testing.T) {
	kite := filepath.Join("..", "..", "docs", "kite")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Spec: spec.Options{SpecFile: filepath.Join(kite, "kite.star"), Executable: program}}
	file := filepath.Join(t.TempDir(), "m.gguf")
	if err := Run(kite, file, o); err != nil {
		t.Fatal(err)
	}
	f, err := model.OpenStored(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := f.Spec(spec.Options{Executable: program})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trace(f); err != nil || !s.Foreign {
		t.Errorf("%v, foreign %v", err, s.Foreign)
	}
	var list map[string]any
	if raw := f.Kept("config.json"); json.Unmarshal(raw, &list) != nil || list["model_type"] == nil {
		t.Errorf("config.json is %.80q", raw)
	}
}
