package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/tokenizer"
)

// TestRealTokenizers writes the tokenizers of real models under GGUF's keys
// and holds what a reader makes of them against the originals.
func TestRealTokenizers(t *testing.T) {
	root := os.Getenv("INFERFLOW_TESTDATA")
	files, _ := filepath.Glob(filepath.Join(root, "tok", "*", "package", "models", "tokenizer.json"))
	if root == "" || len(files) == 0 {
		t.Skip("INFERFLOW_TESTDATA holds no tokenizers of real models")
	}
	for _, path := range files {
		name := strings.Split(strings.TrimPrefix(path, filepath.Join(root, "tok")), string(filepath.Separator))[1]
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			config, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "tokenizer_config.json"))
			tok, err := tokenizer.FromJSON(raw, config)
			if err != nil {
				t.Fatal(err)
			}
			var notes []string
			c := &job{o: Options{Notice: func(s string) { notes = append(notes, s) }}}
			set, err := c.bestTokenizer(tok, tok.Size())
			if errors.Is(err, tokenizer.ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range set {
				if s.key == "tokenizer.ggml.pre" || s.key == "tokenizer.ggml.model" {
					t.Log(s.key, s.value)
				}
			}
			// GGUF has no key for Unicode's normal forms, which these two ask for.
			if normal := name == "claude" || name == "qwen3"; len(notes) > 0 != normal {
				t.Error(notes)
			}
		})
	}
}
