package convert

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tokenizer"
)

// ggufTokenizer is the tokenizer under GGUF's keys. A model without one gets
// none, so that it speaks ids. The files' own tokenizer is kept beside, for
// GGUF's reader follows it only as far as its keys go.
func (c *job) ggufTokenizer(r *spec.Rebound) ([]setting, error) {
	tok, err := c.files.Tokenizer()
	if errors.Is(err, tokenizer.ErrNoTokenizer) {
		return []setting{{"tokenizer.ggml.model", "none"}}, nil
	}
	if err != nil {
		return nil, err
	}
	rows, _ := r.Metadata[r.Architecture+".vocab_size"].(uint32)
	set, err := c.bestTokenizer(tok, int(rows))
	if errors.Is(err, tokenizer.ErrUnsupported) {
		c.o.Notice(fmt.Sprintf("%v; the file has no tokenizer for other programs", err))
		set = []setting{{"tokenizer.ggml.model", "none"}}
	} else if err != nil {
		return nil, err
	}
	text, err := c.files.Template()
	if err != nil {
		return nil, err
	}
	if text != "" {
		set = append(set, setting{"tokenizer.chat_template", text})
	}
	return set, nil
}

// probes are texts whose ids tell pre-tokenizers apart.
var probes = []string{
	"Hello, World! It's we're I'LL they'd  don't", "   leading and   inner\tspaces \n\n new\r\nlines \n \n", "1 12 123 1234 12345678 3.14159 2024-01-31",
	"äöü ÀÉÎ ñandú naïve Straße", "Привет мир, как дела?", "你好，世界！日本語のテキスト 한국어", "مرحبا بالعالم שלום", "🙂👍🏽 👩‍👩‍👧 ✅",
	"func main() { fmt.Println(\"x\") } // a_b-c/d\\e", "snake_case CamelCase HTTPServer x86_64 1st v2.0", "...!!!??? ---- ==== ((())) [[]] {{}}", "a\u00a0b\u2003c\u200bd", "\u0301combining e\u0301",
	// The text of llama.cpp's converter (conversion/base.py, get_vocab_base_pre).
	"\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n🚀 (normal) 😶‍🌫️ (multiple emojis concatenated) ✅ 🦙🦙 3 33 333 3333 33333 333333 3333333 33333333 3.3 3..3 3...3 កាន់តែពិសេសអាច😁 ?我想在apple工作1314151天～ ------======= нещо на Български ```````\"\"\"\"......!!!!!!?????? I've been 'told he's there, 'RE you sure? 'M not sure I'll make it, 'D you like some tea? We'Ve a'lL",
}

// maxAddedProbes bounds the texts with added tokens.
const maxAddedProbes = 8

// addedProbes are texts with added tokens between words and spaces: whether
// such a token takes the spaces beside it GGUF cannot say.
func addedProbes(tok *tokenizer.Tokenizer) (list []string) {
	for id := int32(tok.Size()) - 1; id >= 0 && len(list) < maxAddedProbes; id-- {
		if text := tok.Text(id); tok.IsAdded(id) && text != "" {
			list = append(list, "a "+text+"  b"+text+"c")
		}
	}
	return list
}

// bestTokenizer picks the pre-tokenizer under which GGUF's reader gives the
// same ids as the model's own tokenizer; where none does it says so.
func (c *job) bestTokenizer(tok *tokenizer.Tokenizer, rows int) ([]setting, error) {
	names, err := tokenizer.GGUFPreTokenizers()
	if err != nil {
		return nil, err
	}
	var best []setting
	probes := append(slices.Clone(probes), addedProbes(tok)...)
	least := len(probes) + 1
	for _, pre := range names {
		list, err := tok.GGUF(pre, rows)
		if err != nil {
			return nil, err
		}
		hasPre := slices.ContainsFunc(list, func(s tokenizer.Setting) bool { return s.Key == "tokenizer.ggml.pre" })
		var set []setting
		for _, s := range list {
			set = append(set, setting{s.Key, s.Value})
		}
		other, err := readBack(set)
		if err != nil {
			return nil, err
		}
		wrong := 0
		for _, p := range probes {
			o := tokenizer.Options{AddSpecial: true, ParseSpecial: true}
			if !slices.Equal(tok.Encode(p, o), other.Encode(p, o)) {
				wrong++
			}
		}
		if wrong < least {
			best, least = set, wrong
		}
		if least == 0 || !hasPre {
			break
		}
	}
	if least > 0 {
		c.o.Notice(fmt.Sprintf("GGUF cannot say this tokenizer in full: other programs will cut %d of %d probing texts into other ids; the model's own tokenizer is kept in %s", least, len(probes), model.OwnTokenizerKey))
	}
	return best, nil
}

// readBack is the tokenizer that a reader makes of GGUF's keys.
func readBack(set []setting) (*tokenizer.Tokenizer, error) {
	w := &gguf.Writer{}
	for _, s := range set {
		if err := w.Set(s.key, s.value); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return nil, err
	}
	g, err := gguf.Parse("tokenizer", b.Bytes())
	if err != nil {
		return nil, err
	}
	return tokenizer.FromGGUF(&g.Meta)
}
