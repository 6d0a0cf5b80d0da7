package modeltest

import (
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tokenizer"
)

var words = []string{"Once", " upon", " a", " time", ",", " caf", "\xc3", "\xa9", "!", "<|im_end|>"}

// TestTokens holds the story's tokens against what the tokenizer makes of them.
func TestTokens(t *testing.T) {
	for _, pieces := range []bool{false, true} {
		path := Write(t, t.TempDir(), Options{Story: words, Pieces: pieces, Vocab: 500})
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		tok, err := tokenizer.FromGGUF(&f.Meta)
		if err != nil {
			t.Fatal(err)
		}
		if tok.Size() != 500 || tok.AddsBOS() != pieces {
			t.Errorf("pieces %t: %d tokens, adds BOS: %t", pieces, tok.Size(), tok.AddsBOS())
		}
		ids := newVocabulary(Options{Story: words, Pieces: pieces}).story
		d := tok.ContinueDecoder(true)
		text := ""
		for _, id := range ids {
			text += d.Next(int32(id))
		}
		if text += d.Flush(); text != "Once upon a time, café!" {
			t.Errorf("pieces %t: the story reads %q", pieces, text)
		}
		if got := tok.Encode(" upon a", tokenizer.Options{}); !pieces && (len(got) != 2 || int(got[0]) != ids[1] || int(got[1]) != ids[2]) {
			t.Errorf("encodes to %v, want %v", got, ids[1:3])
		}
	}
}

func TestTypes(t *testing.T) {
	types := map[string]quant.Type{"": quant.Q8_0, "attn_v": quant.Q6_K, "ffn_down": quant.Q4_K, "token_embd": quant.F16}
	f, err := gguf.Open(Write(t, t.TempDir(), Options{Dim: 256, FFN: 256, Types: types, Layers: 11}))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]quant.Type{"blk.10.attn_q.weight": quant.Q8_0, "blk.0.attn_v.weight": quant.Q6_K,
		"blk.1.ffn_down.weight": quant.Q4_K, "token_embd.weight": quant.F16, "output_norm.weight": quant.F32} {
		if v, ok := f.Tensor(name); !ok || v.Type != want {
			t.Errorf("%s is %v, want %v", name, v.Type, want)
		}
	}
}
