package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChoose: a name is a file where it exists, else a shipped specification.
func TestChoose(t *testing.T) {
	t.Chdir(t.TempDir())
	for ref, want := range map[string]Options{
		"":          {},
		"llama":     {Name: "llama"},
		"my.star":   {SpecFile: "my.star"},
		"dir/llama": {SpecFile: "dir/llama"},
	} {
		if o := Choose(ref); o.Name != want.Name || o.SpecFile != want.SpecFile {
			t.Errorf("%q: %+v", ref, o)
		}
	}
	if err := os.WriteFile(filepath.Join(".", "llama"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := Choose("llama"); o.SpecFile != "llama" || o.Name != "" {
		t.Errorf("a file of that name is there: %+v", o)
	}
}

// TestCarriedModelType finds the specification of a file by the model_type of
// the config.json that it carries: a rule may name no architecture of its own.
func TestCarriedModelType(t *testing.T) {
	for _, c := range []struct{ arch, own, want string }{
		{"granite", "granite4_vision_text", "granite"},
		{"granite", "hyperclovax", "granite"},
		{"phi3", "phi4_multimodal", "phi3"},
		{"llama", "internlm3", "llama"},
		{"xverse", "internlm3", "llama"}, // as written before
		{"granite", "internlm3", ""},
		{"phi2", "phi4_multimodal", ""},
	} {
		f := &mirror{binding: GGUF, arch: c.arch, config: map[string]any{OwnConfigKey: `{"model_type": "` + c.own + `"}`}}
		if got, err := matching(f); err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s of %s: %q, %v; want %q", c.own, c.arch, got, err, c.want)
		}
	}
}
