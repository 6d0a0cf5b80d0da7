package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTarget refuses places before any work is done.
func TestTarget(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"file", "model/config.json", "shards/config.json", "shards/model-00001-of-00002.safetensors", "notes/README.md", "x.gguf/a", "only/model.safetensors.index.json"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		out   string
		force bool
		say   string // "": it may be written
	}{
		{"a.gguf", false, ""}, {"new", false, ""}, {"new-2.5B", false, ""}, {"notes", false, ""}, {"deep/new/model.safetensors", false, ""},
		{"conv/a.gguf", false, "there is no folder " + filepath.Join(dir, "conv")},
		{"file/a.gguf", false, "file is not a folder"},
		{"x.gguf", false, "is a folder"},
		{"file", false, "is a file"},
		{"out.bin", false, "the form .bin"},
		{"model", false, "--force"}, {"model", true, ""}, {"model/w.safetensors", false, "--force"},
		{"shards", false, "--force"}, {"shards", true, "would stay"}, {"only", false, "would stay"},
	} {
		err := (&job{o: Options{Force: x.force}}).target(filepath.Join(dir, x.out))
		if x.say == "" && err == nil || x.say != "" && errors.Is(err, ErrConvert) && strings.Contains(err.Error(), x.say) {
			continue
		}
		t.Errorf("%s, force %v: %v, want %q", x.out, x.force, err, x.say)
	}
}
