package convert

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// folderWithout copies a folder without the tensors whose names have one of the
// endings, and with other settings.
func folderWithout(t *testing.T, from string, endings []string, set map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	f, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &safetensors.Writer{}
	for _, v := range f.Tensors() {
		if slices.ContainsFunc(endings, func(s string) bool { return strings.HasSuffix(v.Name, s) }) {
			continue
		}
		err := w.Add(v.Name, v.Type, v.Shape, func(out io.Writer) error { _, err := out.Write(v.Data); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	config := map[string]any{}
	text, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	for k, v := range set {
		config[k] = v
	}
	if err == nil {
		text, err = json.Marshal(config)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o666)
	}
	if err == nil {
		err = w.WriteFile(filepath.Join(dir, weightsFile))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFilled writes what llama.cpp wants of a model that has no such tensor: a
// head that repeats the embeddings, biases of zeros. They change no answer, and
// the way back leaves them out.
func TestFilled(t *testing.T) {
	ids := []int32{3, 14, 15, 92, 65, 35}
	for name, c := range map[string]struct {
		family string
		less   []string
		set    map[string]any
		filled []string
	}{
		"nothing": {"gpt_neox", nil, nil, nil},
		"head and biases": {"gpt_neox", []string{"embed_out.weight", "dense.bias", "query_key_value.bias"}, map[string]any{"tie_word_embeddings": true, "attention_bias": false},
			[]string{"output.weight", "blk.0.attn_qkv.bias", "blk.1.attn_qkv.bias", "blk.2.attn_qkv.bias", "blk.0.attn_output.bias", "blk.1.attn_output.bias", "blk.2.attn_output.bias"}},
		"head":        {"gpt_oss", []string{"lm_head.weight"}, map[string]any{"tie_word_embeddings": true}, []string{"output.weight"}},
		"of a choice": {"lfm2_moe", []string{"expert_bias"}, map[string]any{"use_expert_bias": false}, []string{"blk.1.exp_probs_b.bias", "blk.2.exp_probs_b.bias", "blk.3.exp_probs_b.bias"}},
		"of a convolution": {"granitemoehybrid", []string{"conv1d.bias"}, map[string]any{"mamba_conv_bias": false},
			[]string{"blk.0.ssm_conv1d.bias", "blk.2.ssm_conv1d.bias", "blk.3.ssm_conv1d.bias"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folderWithout(t, filepath.Join(zoo(t), c.family), c.less, c.set)
			file, back := filepath.Join(t.TempDir(), "m.gguf"), filepath.Join(t.TempDir(), "back")
			for _, step := range [][2]string{{dir, file}, {file, back}} {
				if err := Run(step[0], step[1], Options{}); err != nil {
					t.Fatal(err)
				}
			}
			holdsFilled(t, file, c.filled)
			want := golden{IDs: ids, Logits: logitsOf(t, dir, ids)}
			answers(t, file, want)
			answers(t, back, want)
			if got, had := namesOf(t, back), namesOf(t, dir); !slices.Equal(got, had) {
				t.Errorf("the folder has %v, want %v", got, had)
			}
		})
	}
}

// holdsFilled looks for tensors that repeat the embeddings, or are zeros for
// each row of a weight.
func holdsFilled(t *testing.T, file string, names []string) {
	t.Helper()
	f, err := gguf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var told []string
	if f.Meta.Has(spec.OwnFilledKey) {
		text, err := f.Meta.String(spec.OwnFilledKey)
		if err == nil {
			err = json.Unmarshal([]byte(text), &told)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if slices.Sort(told); !slices.Equal(told, slices.Sorted(slices.Values(names))) {
		t.Errorf("filled are %v, want %v", told, names)
	}
	for _, name := range names {
		got, ok := f.Tensor(name)
		if base, bias := strings.CutSuffix(name, ".bias"); bias {
			w, _ := f.Tensor(strings.Replace(base, "exp_probs_b", "ffn_gate_inp", 1) + ".weight")
			ok = ok && got.Shape.Equal(w.Shape[:1]) && len(bytes.Trim(got.Data, "\x00")) == 0
		} else {
			e, _ := f.Tensor("token_embd.weight")
			ok = ok && got.Shape.Equal(e.Shape) && bytes.Equal(got.Data, e.Data)
		}
		if !ok {
			t.Errorf("%s is %v, or has other values", name, got.Shape)
		}
	}
}

func logitsOf(t *testing.T, path string, ids []int32) [][]float32 {
	t.Helper()
	m, err := model.Open(path, model.Options{Threads: 2, NoTokenizer: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	rows, err := m.Exact().Run(sequence(ids))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func namesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	f, err := safetensors.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, v := range f.Tensors() {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names
}
