package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// iniModels says for each [model.NAME] of the C++ engine's inferflow_service.ini
// which tiny model stands in its folder. "zoo/…" lies in the zoo.
var iniModels = map[string]string{
	"gemma_2b_it": "zoo/gemma", "llama2_7b_hf": "zoo/llama", "llama2_7b_chat_hf": "zoo/llama", "llama2_13b_chat_hf": "zoo/llama", "open_llama_3b": "zoo/llama",
	"bloomz_3b": "zoo/bloom", "baichuan2_7b_chat": "predefined/baichuan2_7b", "baichuan2_13b_chat": "predefined/baichuan2_13b", "mistral_7b_instruct": "zoo/mistral",
	"mixtral_8x7b_instruct": "zoo/mixtral", "falcon_7b_instruct": "inferflow/models/falcon_7b", "falcon_40b_instruct": "zoo/falcon", "phi_2": "zoo/phi",
	"aquila_chat2_34b": "predefined/aquila", "chatglm2_6b": "predefined/chatglm2", "minicpm_2b_dpo_bf16": "predefined/minicpm", "xverse_13b_chat": "predefined/xverse",
	"yi_6b_200k": "zoo/llama", "yi_34b_chat": "zoo/llama", "qwen1.5_0.5b_chat": "zoo/qwen2", "qwen1.5_7b_chat": "zoo/qwen2", "internlm_chat_20b": "predefined/internlm",
	"fusellm_7b": "zoo/llama", "deepseek_moe_16b_base": "inferflow/models/deepseek_moe", "orion_14b_chat": "predefined/orion", "opt_350m": "zoo/opt",
	"opt_13b": "inferflow/models/opt_pre", "opt_iml_max_30b": "inferflow/models/opt_pre", "facebook_m2m100_418m": "zoo/m2m_100",
	"bert_base_multilingual_cased": "zoo/bert",
}

// tokensOfINI are the tokens that templates of the file name; the rest of a
// stand-in vocabulary is words.
var tokensOfINI = []string{"<unk>", "<s>", "</s>", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<reserved_106>", "<reserved_107>", "<|im_start|>", "<|im_end|>", "__zh__", "__en__", "the", "house"}

func testZoo(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("INFERFLOW_ZOO")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "zoo")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the zoo of tiny models is not at %s; set INFERFLOW_ZOO to its folder", dir)
	}
	return dir
}

// standIn fills a model's folder: a tiny model's files and a tokenizer of words.
func standIn(t *testing.T, folder, from string) {
	t.Helper()
	for _, name := range []string{"config.json", "model.safetensors", "golden.json"} {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, name), raw)
	}
	vocab, added := map[string]int{}, []map[string]any{}
	for i, w := range tokensOfINI {
		vocab[w] = i
		if strings.ContainsAny(w, "<[_") {
			added = append(added, map[string]any{"id": i, "content": w, "special": true})
		}
	}
	raw, err := json.Marshal(map[string]any{"added_tokens": added, "pre_tokenizer": map[string]any{"type": "WhitespaceSplit"},
		"model": map[string]any{"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "tokenizer.json"), raw)
}

// reference is golden.json of a tiny model.
type reference struct {
	IDs     []int32     `json:"input_ids"`
	Decoder []int32     `json:"decoder_input_ids"`
	Logits  [][]float32 `json:"logits"`
}

// logProbs is the log-softmax of the last row.
func (r *reference) logProbs() []float64 {
	row := r.Logits[len(r.Logits)-1]
	top, sum := math.Inf(-1), 0.0
	for _, x := range row {
		top = max(top, float64(x))
	}
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	out := make([]float64, len(row))
	for i, x := range row {
		out[i] = float64(x) - top - math.Log(sum)
	}
	return out
}

// TestShippedINI serves every model of the file that the C++ engine comes with,
// from its folders, with tiny models in them: by its template, its strategy, its
// model_spec.json, and with PyTorch's logits.
func TestShippedINI(t *testing.T) {
	zoo, root := testZoo(t), t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "testdata", "ini", "inferflow_service.ini"))
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "{#64790}{#64792}", "{#1}{#2}", 1)) // numbers of a real vocabulary
	ini, err := config.ParseINI("x.ini", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, sec := range ini.Sections("model.") {
		name := strings.TrimPrefix(sec.Name, "model.")
		tiny, ok := iniModels[name]
		if !ok {
			if name != "test" && !strings.Contains(name, "gguf") && !strings.Contains(name, "llama2_c") { // files of those kinds are tried elsewhere
				t.Errorf("%s has no tiny model", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(root, "bin", name+".ini")
			write(t, path, []byte(strings.Replace(string(text), "\nmodels = gemma_2b_it", "\nmodels = "+name, 1)))
			s, err := config.ReadService(path)
			if err != nil {
				t.Fatal(err)
			}
			from, ok := strings.CutPrefix(tiny, "zoo/")
			if from = filepath.Join(zoo, from); !ok {
				from = filepath.Join("..", "..", "internal", "model", "testdata", tiny)
			}
			standIn(t, s.Models[0].Dir, from)
			write(t, s.Models[0].SpecFile, tinySpec(t, s.Models[0].SpecFile))
			serveShipped(t, path)
		})
	}
}

// tinySpec is the model_spec.json of that place, with the sizes of the tiny model.
func tinySpec(t *testing.T, place string) []byte {
	t.Helper()
	name := filepath.Base(filepath.Dir(place)) + strings.TrimPrefix(filepath.Base(place), "model_spec")
	raw, err := os.ReadFile(filepath.Join("..", "..", "internal", "model", "testdata", "inferflow", "specs", name))
	if err != nil {
		t.Fatal(err)
	}
	sizes := strings.NewReplacer(`"rope_dim": 64`, `"rope_dim": 4`, `expert_count": 64`, `expert_count": 6`, `expert_count": 8`, `expert_count": 4`, `"moe_top_k": 6`, `"moe_top_k": 2`)
	return []byte(sizes.Replace(string(raw)))
}

func serveShipped(t *testing.T, path string) {
	x, err := openINIService(path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(x.model.Dir, "golden.json"))
	var want reference
	if err == nil {
		err = json.Unmarshal(raw, &want)
	}
	exe, err2 := os.Executable()
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	o := model.Options{Spec: spec.Options{Executable: exe}}
	x.options(&o, pflag.NewFlagSet("", pflag.ContinueOnError))
	o.Keys, o.Values, o.Context = "f32", "f32", 64
	whole, err := x.whole(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if whole {
		fillShipped(t, x, o)
		return
	}
	s, err := x.open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := complete.Params{Sample: s.Defaults(), Max: 1, IgnoreEnd: true}
	p.Sample.Temperature, p.Sample.TopLogprobs = 0, 5
	if s.Encodes() {
		p.BeginWith(want.Decoder)
	}
	run, err := s.Start(t.Context(), want.IDs, p)
	if err != nil {
		t.Fatal(err)
	}
	c, err := run.Next()
	if err != nil || c.Err != nil {
		t.Fatal(err, c.Err)
	}
	probs := want.logProbs()
	for _, x := range c.Top {
		if d := math.Abs(probs[x.ID] - float64(x.Logprob)); !(d < 1e-3) {
			t.Errorf("token %d has the log-probability %g, PyTorch says %g", x.ID, x.Logprob, probs[x.ID])
		}
	}
	chatShipped(t, s)
}

// chatShipped has a conversation by the file's template and strategy.
func chatShipped(t *testing.T, s *complete.Service) {
	t.Helper()
	ids, err := s.Chat(chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: "the house"}}})
	if err != nil {
		t.Fatal(err)
	}
	run, err := s.Start(t.Context(), ids, complete.Params{Sample: s.Defaults(), Max: 6})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Collect(nil); err != nil {
		t.Error(err)
	}
}

// fillShipped fills a mask by the file's template.
func fillShipped(t *testing.T, x *iniService, o model.Options) {
	t.Helper()
	e, err := x.openTexts(t.Context(), o, embed.OutputLogits)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	enc, err := e.EncodeMasked("the [MASK] house")
	if err != nil || len(enc.IDs) != 5 || enc.IDs[0] != 4 || enc.IDs[4] != 5 || len(enc.Out) != 1 || enc.Out[0] != 2 {
		t.Fatalf("%+v, %v", enc, err)
	}
	if filled, err := e.Fill(t.Context(), enc, 3); err != nil || len(filled) != 1 || len(filled[0]) != 3 {
		t.Errorf("%v, %v", filled, err)
	}
}
