package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/quant"
)

// TestTarget refuses places before any work is done.
func TestTarget(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"file", "model/config.json", "shards/config.json", "shards/model-00001-of-00002.safetensors", "notes/README.md", "x.gguf/a", "only/model.safetensors.index.json",
		"there.gguf", "shelf/other.gguf", "big/Other.GGUF", "checkpoint/training.pt", "words/tokenizer.json", "sentence/config_sentence_transformers.json", "single/model.safetensors"} {
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
		{"a.gguf", false, ""}, {"new", false, ""}, {"new-2.5B", false, ""}, {"new-v1.2", false, ""}, {"x.ggfu", false, "for a folder of that name"}, {"x.st", false, "x.st" + string(filepath.Separator)}, {"notes", false, ""}, {"deep/new/model.safetensors", false, ""},
		{"conv/a.gguf", false, "there is no folder " + filepath.Join(dir, "conv")},
		{"file/a.gguf", false, "file is not a folder"},
		{"x.gguf", false, "is a folder"},
		{"file", false, "is a file"},
		{"out.bin", false, "the form .bin"},
		{"model", false, "--force"}, {"model", true, ""}, {"model/w.safetensors", false, "--force"},
		{"there.gguf", false, "--force"}, {"there.gguf", true, ""}, {"shelf/new.gguf", false, ""}, {"shards/new.gguf", false, ""},
		{"shelf", false, "other.gguf would stay"}, {"shelf", true, "other.gguf would stay"}, {"shelf/new.safetensors", true, "other.gguf would stay"}, {"big", false, "would stay"},
		{"checkpoint", false, "training.pt would stay"}, {"words", false, "--force"}, {"words/new.safetensors", false, "--force"}, {"sentence", false, "--force"},
		{"single", false, "--force"}, {"single", true, ""}, {"single/model.safetensors", false, "--force"}, {"single/new.safetensors", true, "would stay"},
		{"shards", false, "--force"}, {"shards", true, "would stay"}, {"only", false, "would stay"},
	} {
		err := (&job{o: Options{Force: x.force}}).target(filepath.Join(dir, x.out))
		if x.say == "" && err == nil || x.say != "" && errors.Is(err, ErrConvert) && strings.Contains(err.Error(), x.say) {
			continue
		}
		t.Errorf("%s, force %v: %v, want %q", x.out, x.force, err, x.say)
	}
}

// TestWritten: the end of a conversion tells what was written, and what blocks
// were decoded; the folder that a file lies in is no target, nor is the file.
func TestWritten(t *testing.T) {
	dir := t.TempDir()
	var got Written
	o := Options{Done: func(w Written) { got = w }}
	for _, x := range []struct {
		in, out string
		want    Written
	}{
		{modeltest.Write(t, t.TempDir(), modeltest.Options{}), "same.gguf", Written{Path: "same.gguf", Type: quant.F32}},
		{modeltest.Write(t, t.TempDir(), modeltest.Options{Types: map[string]quant.Type{"": quant.Q8_0}}), "wide",
			Written{Path: filepath.Join("wide", weightsFile), Type: quant.F32, Decoded: true, From: quant.Q8_0}},
	} {
		if err := Run(x.in, filepath.Join(dir, x.out), o); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, x.want.Path))
		if err != nil || got.Bytes != info.Size() || got.Before <= 0 || x.want.Decoded != (got.Before < got.Bytes/2) {
			t.Errorf("%s: %+v of %v: %v", x.in, got, info, err)
		}
		x.want.Path, x.want.Bytes, x.want.Before = filepath.Join(dir, x.want.Path), got.Bytes, got.Before
		if got != x.want {
			t.Errorf("%s: %+v, want %+v", x.in, got, x.want)
		}
	}
	file := filepath.Join(dir, "same.gguf")
	for _, out := range []string{dir, filepath.Join(dir, "model.safetensors"), file} {
		if err := Run(file, out, Options{Force: true}); !errors.Is(err, ErrConvert) || !strings.Contains(err.Error(), "its own target") {
			t.Errorf("%s into %s: %v", file, out, err)
		}
	}
}

// TestNothingLeft: a folder that was made for a conversion that fails is removed, one
// that was there stays.
func TestNothingLeft(t *testing.T) {
	f16, dir := quant.F16, t.TempDir()
	in := modeltest.Write(t, t.TempDir(), modeltest.Options{Edit: func(name string, values []float32) {
		if name == "blk.1.ffn_down.weight" {
			values[3] = 1e6
		}
	}})
	there := filepath.Join(dir, "there")
	if err := os.Mkdir(there, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{"new/deep", "there/new", "there"} {
		if err := Run(in, filepath.Join(dir, out), Options{Type: &f16}); !errors.Is(err, ErrConvert) {
			t.Errorf("%s: %v", out, err)
		}
	}
	for folder, want := range map[string]int{dir: 1, there: 0} {
		if list, err := os.ReadDir(folder); err != nil || len(list) != want {
			t.Errorf("%s holds %v: %v", folder, list, err)
		}
	}
}
