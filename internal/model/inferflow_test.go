package model_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// specModels says which tiny model is of the shape that each model_spec.json of
// the C++ Inferflow describes. All of them are in testdata/inferflow/specs, as
// they are there.
var specModels = map[string]string{
	"aquila_chat2_34b": "predefined/aquila", "baichuan2_13b_chat": "predefined/baichuan2_13b", "baichuan2_7b_chat": "predefined/baichuan2_7b",
	"bert_base_multilingual_cased": "zoo/bert", "bloomz_3b.pickle": "zoo/bloom", "bloomz_3b.safetensors": "zoo/bloom", "chatglm2_6b": "predefined/chatglm2",
	"deepseek_moe_16b_base": "inferflow/models/deepseek_moe", "facebook_m2m100_418m": "zoo/m2m_100", "falcon_40b_instruct": "zoo/falcon",
	"falcon_7b_instruct": "inferflow/models/falcon_7b", "fusellm_7b": "zoo/llama", "gemma_2b_it": "zoo/gemma", "internlm_chat_20b": "predefined/internlm",
	"llama2.c_110m": "llama2c/legacy.bin", "llama2.c_15m": "llama2c/legacy.bin", "llama2_13b_chat_hf": "zoo/llama", "llama2_7b_chat.gguf": "zoo/gguf/llama.gguf",
	"llama2_7b_chat_hf": "zoo/llama", "llama2_7b_hf": "zoo/llama", "minicpm_2b_dpo_bf16": "predefined/minicpm", "mistral_7b_instruct_v0.2": "zoo/mistral",
	"mistral_7b_instruct_v0.2.safetensors": "zoo/mistral", "mixtral_8x7b_instruct_v0.1.safetensors": "zoo/mixtral", "open_llama_3b": "zoo/llama",
	"opt_13b": "inferflow/models/opt_pre", "opt_350m": "zoo/opt", "opt_iml_max_30b": "inferflow/models/opt_pre", "orion_14b_chat": "predefined/orion",
	"phi_2.safetensors": "zoo/phi", "qwen1.5_0.5b_chat": "zoo/qwen2", "qwen1.5_7b_chat": "zoo/qwen2", "xverse_13b_chat": "predefined/xverse",
	"yi_34b_chat": "zoo/llama", "yi_6b_200k": "zoo/llama",
}

// specSizes are numbers of a model_spec.json that belong to its real model, and
// those of the tiny one.
var specSizes = map[string]*strings.Replacer{
	"chatglm2_6b":                            strings.NewReplacer(`"rope_dim": 64`, `"rope_dim": 4`),
	"deepseek_moe_16b_base":                  strings.NewReplacer(`"expert_count": 64`, `"expert_count": 6`, `"using_expert_count": 64`, `"using_expert_count": 6`, `"moe_top_k": 6`, `"moe_top_k": 2`),
	"mixtral_8x7b_instruct_v0.1.safetensors": strings.NewReplacer(`"expert_count": 8`, `"expert_count": 4`, `"using_expert_count": 8`, `"using_expert_count": 4`),
}

// specModel finds a tiny model and its reference.
func specModel(t *testing.T, name string) (path, goldenPath string) {
	t.Helper()
	if rest, ok := strings.CutPrefix(name, "zoo/"); ok {
		path = filepath.Join(zoo(t), rest)
		return path, filepath.Join(zoo(t), strings.TrimSuffix(filepath.Base(rest), ".gguf"), "golden.json")
	}
	if rest, ok := strings.CutPrefix(name, "llama2c/"); ok {
		dir := filepath.Join("..", "..", "format", "llama2c", "testdata")
		return filepath.Join(dir, rest), filepath.Join(dir, "golden.json")
	}
	path = filepath.Join("testdata", name)
	return path, filepath.Join(path, "golden.json")
}

// TestInferflowSpecs runs every model_spec.json of the C++ Inferflow on a tiny
// model of that shape, as it is and imported to Starlark, exact and compiled,
// and holds the logits against PyTorch's.
func TestInferflowSpecs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "inferflow", "specs", "*.json"))
	if err != nil || len(files) != len(specModels) {
		t.Fatalf("%d files for %d models: %v", len(files), len(specModels), err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			path, goldenPath := specModel(t, specModels[name])
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if r := specSizes[name]; r != nil {
				raw = []byte(r.Replace(string(raw)))
			}
			s, err := spec.ParseModelSpec(raw)
			if err != nil {
				t.Fatal(err)
			}
			asItIs := filepath.Join(t.TempDir(), "model_spec.json")
			if err := os.WriteFile(asItIs, raw, 0o644); err != nil {
				t.Fatal(err)
			}
			imported := filepath.Join(t.TempDir(), name+".star")
			if err := os.WriteFile(imported, []byte(s.Starlark(name)), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, specFile := range []string{asItIs, imported} {
				o := model.Options{Threads: 2, Keys: "f32", Values: "f32", Context: 128, NoTokenizer: true, KVMemory: 64 << 20}
				o.Spec = spec.Options{SpecFile: specFile, Executable: exe}
				m, err := model.Open(path, o)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				runSpec(t, m, goldenPath)
			}
		})
	}
}

// specGolden reads a reference, of which one file may hold several models'.
func specGolden(t *testing.T, path, goldenPath string) golden {
	t.Helper()
	raw, err := os.ReadFile(goldenPath)
	if err != nil {
		t.Fatal(err)
	}
	var many struct {
		IDs    []int32                `json:"input_ids"`
		Logits map[string][][]float32 `json:"logits"`
	}
	if json.Unmarshal(raw, &many) == nil {
		return golden{IDs: many.IDs, Logits: many.Logits[filepath.Base(path)]}
	}
	return readGolden(t, goldenPath)
}

// runSpec holds a model against its reference.
func runSpec(t *testing.T, m *model.Model, goldenPath string) {
	t.Helper()
	g := specGolden(t, m.Path, goldenPath)
	if m.Whole() {
		exact, err := m.Exact().Run(packed(g.IDs))
		if err != nil {
			t.Fatal(err)
		}
		within(t, "exact", exact, g.Logits, 1e-4)
		if err := m.Load(); err != nil {
			t.Fatal(err)
		}
		within(t, "compiled", rowsOf(t, m, packed(g.IDs), 0, len(g.IDs)), g.Logits, 1e-4)
		return
	}
	last := func(rows [][]float32) [][]float32 { return rows[max(0, len(rows)-len(g.Logits)):] } // a reference may hold the last row alone
	within(t, "exact", last(exactRows(t, m, g)), g.Logits, 1e-4)
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	within(t, "compiled", last(newPlayer(t, m).alone(g, len(g.sequence(m)))), g.Logits, 1e-4)
}
