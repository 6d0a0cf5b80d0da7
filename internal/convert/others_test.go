package convert

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/spec"
)

// others are files of llama.cpp's own converter, which carry no keys of ours.
var others = filepath.Join("..", "model", "testdata", "gguf")

// folderOf converts a file and reads the config.json and shapes of the folder.
func folderOf(t *testing.T, file string, o Options) (dir string, config map[string]any, shapes map[string][]int) {
	t.Helper()
	dir, shapes = t.TempDir(), map[string][]int{}
	if err := Run(file, dir, o); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(raw, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(filepath.Join(dir, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, v := range f.Tensors() {
		shapes[v.Name] = v.Shape
	}
	return dir, config, shapes
}

// TestOthers makes folders of all files of llama.cpp's converter that are at
// hand: each gives PyTorch's logits.
func TestOthers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(others, "*.gguf"))
	if err != nil || len(files) < 25 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".gguf")
		t.Run(name, func(t *testing.T) {
			var cases []golden
			raw, err := os.ReadFile(filepath.Join(others, name+".json"))
			if err == nil {
				err = json.Unmarshal(raw, &cases)
			}
			if err != nil {
				t.Fatal(err)
			}
			out := t.TempDir()
			if err := Run(file, out, Options{}); err != nil {
				t.Fatal(err)
			}
			answers(t, out, cases[0])
		})
	}
}

// TestClassWants holds what a class of transformers asks of config.json or of a
// tensor's shape, though a specification takes it from the tensors.
func TestClassWants(t *testing.T) {
	for _, c := range []struct {
		file   string
		config map[string]any
		shapes map[string][]int
	}{
		// One number where GGUF has a list by layer with zeros; sizes of convolutions and of a decay.
		{"kimi_linear", map[string]any{"num_key_value_heads": 6.0, "linear_num_heads": 6.0, "num_shared_experts": 1.0, "first_k_dense_replace": 1.0},
			map[string][]int{"model.layers.0.self_attn.q_conv1d.weight": {48, 1, 4}, "model.layers.0.self_attn.A_log": {1, 1, 6, 1}}},
		{"nemotron_h", map[string]any{"num_key_value_heads": 2.0, "mamba_head_dim": 16.0, "intermediate_size": 112.0, "layers_block_type": []any{"linear_attention", "moe", "full_attention", "mlp"}}, nil},
		{"granitemoehybrid", map[string]any{"num_key_value_heads": 2.0, "shared_intermediate_size": 40.0, "layer_types": []any{"linear_attention", "full_attention", "linear_attention", "linear_attention"}}, nil},
		// Widths of heads by kind of layer, a rotation that leaves most pairs still, a tensor without .weight.
		{"gemma4_text", map[string]any{"head_dim": 8.0, "global_head_dim": 16.0, "vocab_size_per_layer_input": 199.0, "rope_parameters": map[string]any{
			"full_attention":    map[string]any{"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 1e4}}}, map[string][]int{"model.layers.1.layer_scalar": {1}}},
		{"hy_v4", map[string]any{"num_shared_experts": 1.0}, map[string][]int{"model.hc_head.hc_head_fn": {4, 192}, "model.layers.1.self_attn.learnable_sink_param": {6}}},
		// A name of the folder for two of GGUF.
		{"bailing_hybrid", map[string]any{"num_shared_experts": 1.0}, map[string][]int{"model.layers.2.self_attn.g_proj.weight": {4, 48}, "model.layers.0.self_attn.g_proj.weight": {64, 48}}},
		// Widths of feed-forwards under the names that the class has for each kind of them.
		{"minimax_m3_vl_text", map[string]any{"dense_intermediate_size": 72.0, "intermediate_size": 24.0, "shared_intermediate_size": 24.0}, nil},
		{"dots3_note_text", map[string]any{"shared_experts_intermediate_size": 20.0}, nil},
		// Numbers of heads and rotations by kind of layer.
		{"laguna", map[string]any{"num_attention_heads": 6.0, "num_attention_heads_per_layer": []any{6.0, 4.0, 4.0, 4.0}, "mlp_layer_types": []any{"dense", "sparse", "sparse", "sparse"}, "rope_parameters": map[string]any{
			"full_attention":    map[string]any{"rope_type": "yarn", "rope_theta": 500000.0, "factor": 4.0, "original_max_position_embeddings": 32.0, "partial_rotary_factor": 0.5},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0}}}, nil},
		// The class of the model_type, and no head of its own.
		{"mistral4", map[string]any{"architectures": []any{"Mistral4ForCausalLM"}}, nil},
		{"falcon_mamba", map[string]any{"architectures": []any{"FalconMambaForCausalLM"}, "model_type": "falcon_mamba"}, nil},
		// What the converter writes whatever the model has gives way to the tensors.
		{"phi", map[string]any{"intermediate_size": 112.0}, nil},
		{"cohere", map[string]any{"rope_scaling": nil}, nil},
		{"phi3", map[string]any{"sliding_window": nil}, nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			_, config, shapes := folderOf(t, filepath.Join(others, c.file+".gguf"), Options{})
			for k, want := range c.config {
				if !reflect.DeepEqual(config[k], want) {
					t.Errorf("%s is %v, want %v", k, config[k], want)
				}
			}
			for name, want := range c.shapes {
				if fmt.Sprint(shapes[name]) != fmt.Sprint(want) {
					t.Errorf("%s is %v, want %v", name, shapes[name], want)
				}
			}
		})
	}
}

// TestSet gives a value that GGUF has no key for, which a notice names without it.
func TestSet(t *testing.T) {
	file := filepath.Join(others, "gemma2.gguf")
	for set, say := range map[string]string{"": "query_pre_attn_scalar: 10", "query_pre_attn_scalar": "", "no_such_key": "nothing of this program reads it"} {
		t.Run(set, func(t *testing.T) {
			var notes []string
			o := Options{Notice: func(s string) { notes = append(notes, s) }}
			if set != "" {
				o.Spec.Set = map[string]any{set: 13.0}
			}
			_, config, _ := folderOf(t, file, o)
			text := strings.Join(notes, "; ")
			if say != "" && !strings.Contains(text, say) || say == "" && strings.Contains(text, "query_pre_attn_scalar") {
				t.Errorf("the notices are %q, want %q", text, say)
			}
			if set != "" && config[set] != 13.0 {
				t.Errorf("%s is %v", set, config[set])
			}
		})
	}
	if err := Run(file, filepath.Join(t.TempDir(), "m.gguf"), Options{Spec: spec.Options{Set: map[string]any{"a": 1.0}}}); err == nil || !strings.Contains(err.Error(), "settings") {
		t.Errorf("settings for a GGUF file: %v", err)
	}
}

// TestSetTyped: numbers stand in config.json as they were typed, inside lists and
// objects too; keys that name the class, and values with which the folder would
// not open, are refused, and of keys that are read elsewhere no notice says otherwise.
func TestSetTyped(t *testing.T) {
	file := filepath.Join(others, "mistral.gguf")
	typed := func(s string) (v any) {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var notes []string
	o := Options{Notice: func(s string) { notes = append(notes, s) }}
	o.Spec.Set = map[string]any{"eos_token_id": typed("[1, 2]"), "extra": typed(`{"a": [3, 2.50]}`), "rope_theta": typed("20000"), "pad_token_id": typed("3")}
	dir, _, _ := folderOf(t, file, o)
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	text := strings.Join(strings.Fields(string(raw)), "")
	for _, want := range []string{`"eos_token_id":[1,2]`, `"extra":{"a":[3,2.50]}`, `"rope_theta":20000,`, `"pad_token_id":3,`} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: no %s in %s", err, want, raw)
		}
	}
	if told := strings.Join(notes, "; "); strings.Contains(told, "eos_token_id") || !strings.Contains(told, "--set extra") {
		t.Errorf("told %q", told)
	}
	for key, c := range map[string]struct {
		v   any
		say string
	}{"model_type": {"llama", "model_type"}, "architectures": {[]any{"LlamaForCausalLM"}, "architectures"}, "quantization_config.quant_method": {"exotic", "is quantised"}} {
		out := filepath.Join(t.TempDir(), "out")
		err := Run(file, out, Options{Spec: spec.Options{Set: map[string]any{key: c.v}}})
		if _, left := os.Stat(out); err == nil || !strings.Contains(err.Error(), c.say) || left == nil {
			t.Errorf("--set %s: %v, left %v", key, err, left)
		}
	}
}
