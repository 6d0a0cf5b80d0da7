package convert

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
)

// TestScaledRotation writes what llama.cpp multiplies scaled rotations by, and
// reads it back from a file without our keys, into a folder too.
func TestScaledRotation(t *testing.T) {
	lists := map[string]any{"rope_type": "longrope", "rope_theta": 1e4, "short_factor": []float64{1, 1.1, 1.2, 1.3}, "long_factor": []float64{2, 3, 4, 5}, "original_max_position_embeddings": 16}
	yarn := map[string]any{"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}
	for name, c := range map[string]struct {
		scaling, more map[string]any
		want          map[string]any // of llama.rope.scaling; nil: not there
		told          string
	}{
		"yarn":           {yarn, nil, map[string]any{"type": "yarn", "factor": float32(4), "attn_factor": nil}, ""},
		"yarn, given":    {yarn, map[string]any{"attention_factor": 0.7}, map[string]any{"factor": float32(4), "attn_factor": float32(0.7 / 1.138629436)}, ""},
		"yarn, one":      {yarn, map[string]any{"attention_factor": 1.0}, map[string]any{"attn_factor": float32(1 / 1.138629436)}, ""},
		"yarn, ramp":     {yarn, map[string]any{"beta_fast": 2.0, "beta_slow": 0.1}, map[string]any{"attn_factor": nil}, "frequencies of the rotation"},
		"long":           {lists, nil, map[string]any{"type": "longrope", "attn_factor": float32(1.3228757), "original_context_length": uint32(16), "factor": nil}, "in a context of more than 16 tokens"},
		"long, factor":   {lists, map[string]any{"factor": 4.0}, map[string]any{"attn_factor": float32(1.2247449), "factor": nil}, "in a context of more than 16 tokens"},
		"long, one list": {lists, map[string]any{"long_factor": lists["short_factor"]}, map[string]any{"attn_factor": float32(1.3228757)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			scaling := maps.Clone(c.scaling)
			maps.Copy(scaling, c.more)
			dir := folderWithout(t, filepath.Join(zoo(t), "llama"), nil, map[string]any{"rope_parameters": scaling})
			want := rowsOf(t, dir, "logits")
			file, told := filepath.Join(t.TempDir(), "m.gguf"), ""
			if err := Run(dir, file, Options{Notice: func(s string) { told += s }}); err != nil {
				t.Fatal(err)
			}
			if (c.told == "") != (told == "") || !strings.Contains(told, c.told) {
				t.Errorf("told %q, want %q", told, c.told)
			}
			scalingKeys(t, file, c.want)
			near(t, rowsOf(t, file, "logits"), want)
			if c.told == "frequencies of the rotation" { // which the file alone says otherwise
				return
			}
			forgetOwn(t, file)
			back, _, _ := folderOf(t, file, Options{})
			near(t, rowsOf(t, file, "logits"), want)
			near(t, rowsOf(t, back, "logits"), want)
		})
	}
}

func scalingKeys(t *testing.T, path string, want map[string]any) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]any{}
	for k, v := range f.Meta.All() {
		if rest, ok := strings.CutPrefix(k, "llama.rope.scaling."); ok {
			got[rest] = v.Any()
		}
	}
	for k, v := range want {
		x, ok1 := got[k].(float32)
		y, ok2 := v.(float32)
		if got[k] != v && !(ok1 && ok2 && x-y < 1e-6 && y-x < 1e-6) {
			t.Errorf("%s is %v, want %v", k, got[k], v)
		}
	}
}

// forgetOwn takes from a file our own keys, and one that llama.cpp does not read.
func forgetOwn(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		raw = bytes.ReplaceAll(raw, []byte("inferflow.config"), []byte("inferflow.confiX"))
		raw = bytes.ReplaceAll(raw, []byte("yarn_attn_factor"), []byte("yarn_attn_factoX"))
		err = os.WriteFile(path, raw, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
