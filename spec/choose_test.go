package spec

import (
	"os"
	"path/filepath"
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
