package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReferenceVocabularies runs llama.cpp's own pairs of texts and ids.
func TestReferenceVocabularies(t *testing.T) {
	dir := testdata(t, "tok", "ggml-vocab")
	files, _ := filepath.Glob(filepath.Join(dir, "*.gguf"))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			tok, err := FromGGUF(readGGUF(t, file))
			if err != nil {
				t.Fatal(err)
			}
			input, err := os.ReadFile(file + ".inp")
			if err != nil {
				t.Logf("loads; no texts to compare")
				return
			}
			output, err := os.ReadFile(file + ".out")
			if err != nil {
				t.Fatal(err)
			}
			texts := strings.Split(string(input), "\n__ggml_vocab_test__\n")
			lines := strings.Split(string(output), "\n")
			for i, text := range texts {
				if i >= len(lines) {
					break
				}
				var want []int32
				for _, f := range strings.Fields(lines[i]) {
					n, _ := strconv.Atoi(f)
					want = append(want, int32(n))
				}
				got := tok.Encode(text, Options{ParseSpecial: false})
				if !slices.Equal(got, want) {
					t.Errorf("%q:\n got %v\nwant %v\n%s", text, got, want, pieces(tok, got, want))
				}
			}
		})
	}
}

// pieces shows the tokens around the first difference.
func pieces(tok *Tokenizer, got, want []int32) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	show := func(ids []int32) string {
		var b strings.Builder
		for _, id := range ids[min(i, len(ids)):min(i+6, len(ids))] {
			fmt.Fprintf(&b, " %q", tok.Text(id))
		}
		return b.String()
	}
	return fmt.Sprintf("at %d: got%s, want%s", i, show(got), show(want))
}
