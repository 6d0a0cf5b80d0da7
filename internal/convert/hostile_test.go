package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
)

// ownFile writes a GGUF file that claims to be of our own making, with an
// architecture that need not be served.
func ownFile(t *testing.T, arch, config string, set map[string]any) string {
	t.Helper()
	w := &gguf.Writer{}
	path := filepath.Join(t.TempDir(), "m.gguf")
	err := errors.Join(w.Set("general.architecture", arch), w.Set(spec.OwnConfigKey, config))
	for k, v := range set {
		err = errors.Join(err, w.Set(k, v))
	}
	err = errors.Join(err, w.Add("t", 0, []int{1}, func(out io.Writer) error { _, err := out.Write(make([]byte, 4)); return err }))
	if err := errors.Join(err, w.WriteFile(path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHostileModules reads modules that no conversion of ours writes, in both
// forms of file: each is an error that says which, and none a panic.
func TestHostileModules(t *testing.T) {
	bad := map[string]string{
		"kind is a list":        `[{"kind":[1]}]`,
		"kind is an object":     `[{"kind":{"a":1}}]`,
		"kind is a number":      `[{"kind":1}]`,
		"kind is unknown":       `[{"kind":"x"}]`,
		"no object":             `[[]]`,
		"how is an object":      `[{"kind":"pooling","how":{}}]`,
		"how of a list":         `[{"kind":"pooling","how":[[1]]}]`,
		"how of an object":      `[{"kind":"pooling","how":[{}]}]`,
		"how is empty":          `[{"kind":"pooling","how":[]}]`,
		"how is long":           `[{"kind":"pooling","how":["cls","cls","cls","cls","cls","cls","cls"]}]`,
		"prompt":                `[{"kind":"pooling","how":["cls"],"include_prompt":[]}]`,
		"activation is a list":  `[{"kind":"dense","name":"a.b","bias":true,"activation":[1]}]`,
		"activation is unknown": `[{"kind":"dense","name":"a.b","bias":true,"activation":"x"}]`,
		"bias":                  `[{"kind":"dense","name":"a.b","bias":{},"activation":"tanh"}]`,
		"name":                  `[{"kind":"layer_norm","name":{}}]`,
		"long name":             `[{"kind":"layer_norm","name":"` + strings.Repeat("a", 1000) + `"}]`,
		"65 modules":            `[` + strings.Repeat(`{"kind":"normalize"},`, 64) + `{"kind":"normalize"}]`,
		"200000 modules":        `[` + strings.Repeat(`{"kind":"normalize"},`, 199999) + `{"kind":"normalize"}]`,
	}
	for _, arch := range []string{"x", spec.OwnArchitecture} {
		for what, list := range bad {
			t.Run(arch+" "+what, func(t *testing.T) {
				err := Run(ownFile(t, arch, `{"sentence_transformers":`+list+`}`, nil), filepath.Join(t.TempDir(), "f"), Options{})
				if !errors.Is(err, ErrConvert) || !strings.Contains(err.Error(), "module") || len(err.Error()) > 400 {
					t.Errorf("got %.500v", err)
				}
			})
		}
		for what, value := range map[string]string{"settings of scores": `{"activation_fn":"x"}`, "64 modules": `[` + strings.Repeat(`{"kind":"normalize"},`, 63) + `{"kind":"normalize"}]`} {
			f, err := model.OpenStored(ownFile(t, arch, `{"sentence_transformers":`+value+`}`, nil))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.OwnModules(); err != nil {
				t.Errorf("%s: %s: %v", arch, what, err)
			}
			f.Close()
		}
	}
}

// TestLengthFiles takes of what a file carries, and of what lies in a folder,
// only plain names of small objects with max_seq_length.
func TestLengthFiles(t *testing.T) {
	good, long := `{"max_seq_length": 7}`, "sentence_"+strings.Repeat("x", 5000)+"_config.json"
	names := map[string]any{"sentence_a-b_config.json": good, "sentence_other_config.json": `{"x":1}`, "sentence_text_config.json": "root:x:0:0", "sentence_list_config.json": "[1]",
		"sentence_large_config.json": `{"max_seq_length": 7` + strings.Repeat(" ", 1<<20) + `}`, `sentence_\..\..\x_config.json`: good, "sentence_/../../x_config.json": good,
		"sentence_:_config.json": good, "sentence_\x00_config.json": good, "sentence_\n_config.json": good, "sentence__config.json": good, long: good}
	set, dir := map[string]any{}, t.TempDir()
	for name, text := range names {
		set[model.OwnFilePrefix+name] = text
		if filepath.Base(name) == name && !strings.ContainsAny(name, "\\:\x00\n") && len(name) < 200 {
			writeText(t, filepath.Join(dir, name), text.(string))
		}
	}
	file := ownFile(t, spec.OwnArchitecture, `{}`, set)
	copyModel(t, file, dir)
	for _, path := range []string{file, dir} {
		if got, err := lengthsOf(t, path); err != nil || fmt.Sprint(got) != "[sentence_a-b_config.json]" {
			t.Errorf("%s: %.200q, %v", path, got, err)
		}
	}
	for i := range 20000 {
		set[fmt.Sprintf("%ssentence_%d_config.json", model.OwnFilePrefix, i)] = good
	}
	for i := range 20 {
		writeText(t, filepath.Join(dir, fmt.Sprintf("sentence_%d_config.json", i)), good)
	}
	for _, path := range []string{ownFile(t, spec.OwnArchitecture, `{}`, set), dir} {
		if got, err := lengthsOf(t, path); err == nil || !strings.Contains(err.Error(), "more than 16") {
			t.Errorf("%s: %.200q, %.200v", path, got, err)
		}
	}
}

func lengthsOf(t *testing.T, path string) ([]string, error) {
	t.Helper()
	f, err := model.OpenStored(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.LengthFiles()
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// copyModel makes a folder of the small files of a file, as a conversion does,
// and of weights that no family has.
func copyModel(t *testing.T, file, dir string) {
	t.Helper()
	f, err := model.OpenStored(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, texts := &job{files: f, o: Options{Notice: func(string) {}}}, map[string][]byte{"config.json": []byte("{}")}
	if err := c.besides(texts); err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		writeText(t, filepath.Join(dir, name), string(text))
	}
	w := &safetensors.Writer{}
	err = w.Add("t", quant.F32, []int{1}, func(out io.Writer) error { _, err := out.Write(make([]byte, 4)); return err })
	if err := errors.Join(err, w.WriteFile(filepath.Join(dir, weightsFile))); err != nil {
		t.Fatal(err)
	}
}

// TestUnservedConfig refuses to make a folder of a file whose carried
// config.json claims what cannot be.
func TestUnservedConfig(t *testing.T) {
	for _, name := range []string{"qwen3", "opt"} { // in llama.cpp's form, and as a folder stands
		file := filepath.Join(t.TempDir(), "m.gguf")
		if err := Run(filepath.Join(zoo(t), name), file, Options{}); err != nil {
			t.Fatal(err)
		}
		for key, v := range map[string]any{"model_type": 7, "num_hidden_layers": 100000000, "vocab_size": 1000000000} {
			bad := claiming(t, file, key, v)
			out := filepath.Join(t.TempDir(), "out")
			err := Run(bad, out, Options{})
			if _, there := os.Stat(out); err == nil || there == nil {
				t.Errorf("%s, %s: %v", name, key, err)
			}
		}
	}
}

// claiming is a copy of a file with another value in the config.json that it carries.
func claiming(t *testing.T, file, key string, v any) string {
	t.Helper()
	f, err := model.OpenStored(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var config map[string]any
	if err := json.Unmarshal(f.Kept("config.json"), &config); err != nil {
		t.Fatal(err)
	}
	config[key] = v
	text, err := json.Marshal(config)
	w := &gguf.Writer{}
	for k, v := range f.Meta().All() {
		if k != spec.OwnConfigKey {
			err = errors.Join(err, w.Set(k, v))
		}
	}
	err = errors.Join(err, w.Set(spec.OwnConfigKey, string(text)))
	for _, v := range f.Tensors() {
		err = errors.Join(err, w.Add(v.Name, v.Type, v.Shape, func(out io.Writer) error { _, err := out.Write(v.Data); return err }))
	}
	path := filepath.Join(t.TempDir(), "bad.gguf")
	if err := errors.Join(err, w.WriteFile(path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCarryObjects leaves out what a folder holds under a name of its own
// that is no JSON object: a link may lead to any file.
func TestCarryObjects(t *testing.T) {
	in := copyFolder(t, filepath.Join(zoo(t), "roberta"), map[string]string{"generation_config.json": "root:x:0:0", "config_sentence_transformers.json": `["secret"]`,
		"sentence_x_config.json": "root:x:0:0", "sentence_y_config.json": `{"max_seq_length":5}`})
	out := filepath.Join(t.TempDir(), "m.gguf")
	told := ""
	if err := Run(in, out, Options{Notice: func(s string) { told += s }}); err != nil {
		t.Fatal(err)
	}
	f, err := model.OpenStored(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"generation_config.json", "config_sentence_transformers.json", "sentence_x_config.json"} {
		if raw := f.Kept(name); raw != nil {
			t.Errorf("%s is carried: %q", name, raw)
		}
	}
	if f.Kept("sentence_y_config.json") == nil || !strings.Contains(told, "generation_config.json") {
		t.Errorf("the length is lost, or not told: %q", told)
	}
}
