package convert

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/model"
)

// TestCarried opens a folder and the GGUF file made of it: what the folder says
// of classes, tasks and generation is the same.
func TestCarried(t *testing.T) {
	for _, family := range []string{"bert", "qwen3", "t5"} {
		t.Run(family, func(t *testing.T) {
			from := filepath.Join(zoo(t), family)
			text, err := os.ReadFile(filepath.Join(from, "config.json"))
			var raw map[string]any
			if err == nil {
				err = json.Unmarshal(text, &raw)
			}
			if err != nil {
				t.Fatal(err)
			}
			raw["id2label"] = map[string]any{"0": "calm", "2": "loud"}
			raw["problem_type"] = "multi_label_classification"
			raw["eos_token_id"] = 7
			raw["task_specific_params"] = map[string]any{"summarization": map[string]any{"prefix": "sum up: ", "max_length": 9}}
			if text, err = json.Marshal(raw); err != nil {
				t.Fatal(err)
			}
			dir := copyFolder(t, from, map[string]string{
				"config.json":            string(text),
				"generation_config.json": `{"temperature": 0.25, "top_k": 5, "do_sample": true, "eos_token_id": [7, 9], "no_repeat_ngram_size": 3}`,
			})
			file := filepath.Join(t.TempDir(), "m.gguf")
			if err := Run(dir, file, Options{}); err != nil {
				t.Fatal(err)
			}
			want, got := carriedBy(t, dir), carriedBy(t, file)
			for k := range want {
				if !reflect.DeepEqual(got[k], want[k]) {
					t.Errorf("%s: %v, the folder has %v", k, got[k], want[k])
				}
			}
		})
	}
}

// carriedBy is what a model's files say beside the weights.
func carriedBy(t *testing.T, path string) map[string]any {
	t.Helper()
	m, err := model.Open(path, model.Options{NoTokenizer: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := m.Generation
	return map[string]any{"labels": m.Labels()[:3], "independent": m.Independent(), "tasks": m.FolderTasks(), "end": g.EndTokens,
		"temperature": g.Temperature, "top_k": g.TopK, "greedy": g.Greedy, "decoding": g.Decoding}
}

// TestClasses names the class in a folder that is made of a file without our keys.
func TestClasses(t *testing.T) {
	for family, want := range map[string]string{"llama": "LlamaForCausalLM", "bert": "BertModel", "t5": "T5ForConditionalGeneration", "mamba2": "Mamba2ForCausalLM"} {
		dir := t.TempDir()
		file, back := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "back")
		if err := Run(filepath.Join(zoo(t), family), file, Options{}); err != nil {
			t.Fatal(family, err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raw = bytes.ReplaceAll(raw, []byte("inferflow.config"), []byte("inferflow.confiX"))
		raw = bytes.ReplaceAll(raw, []byte("inferflow.tensors"), []byte("inferflow.tensorX"))
		if err := os.WriteFile(file, raw, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Run(file, back, Options{}); err != nil {
			t.Fatal(family, err)
		}
		text, err := os.ReadFile(filepath.Join(back, "config.json"))
		var config struct {
			Architectures []string `json:"architectures"`
		}
		if err != nil || json.Unmarshal(text, &config) != nil || len(config.Architectures) != 1 || config.Architectures[0] != want {
			t.Errorf("%s: %v, %v; want %s", family, config.Architectures, err, want)
		}
	}
}

// TestTextPart: a model with sight is converted without it, and a notice counts
// what does not go along.
func TestTextPart(t *testing.T) {
	inner := filepath.Join(zoo(t), "llama")
	raw, err := os.ReadFile(filepath.Join(inner, "config.json"))
	var config map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	outer, err := json.Marshal(map[string]any{"model_type": "seer", "architectures": []string{"SeerForConditionalGeneration"}, "text_config": config})
	if err != nil {
		t.Fatal(err)
	}
	dir := copyFolder(t, inner, map[string]string{"config.json": string(outer)})
	f, err := safetensors.Open(filepath.Join(inner, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &safetensors.Writer{}
	for _, v := range f.Tensors() {
		write := func(out io.Writer) error { _, err := out.Write(v.Data); return err }
		if err := w.Add("language_model."+v.Name, v.Type, v.Shape, write); err != nil {
			t.Fatal(err)
		}
	}
	v := f.Tensors()[0]
	for _, name := range []string{"vision_tower.patch.weight", "multi_modal_projector.linear.weight"} {
		if err := w.Add(name, v.Type, v.Shape, func(out io.Writer) error { _, err := out.Write(v.Data); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, weightsFile)); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(filepath.Join(dir, weightsFile)); err != nil {
		t.Fatal(err)
	}
	var notes []string
	if err := Run(dir, filepath.Join(t.TempDir(), "m.gguf"), Options{Notice: func(s string) { notes = append(notes, s) }}); err != nil {
		t.Fatal(err)
	}
	if told := strings.Join(notes, "; "); !strings.Contains(told, "only the text model is converted, the one of text_config; 2 tensors of other parts do not go along (such as ") {
		t.Errorf("told %q", told)
	}
}
