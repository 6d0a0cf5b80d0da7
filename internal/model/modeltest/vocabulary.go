package modeltest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Kinds of tokens, as tokenizer.ggml.token_type numbers them.
const (
	normal  = 1
	unknown = 2
	control = 3
	unused  = 5
	single  = 6
)

// vocabulary lists the tokens of a model and where its story is among them.
type vocabulary struct {
	texts  []string
	kinds  []int32
	scores []float32
	merges []string
	ids    map[string]int
	story  []int
	end    int
	spell  func(string) []string // the symbols of a text
}

// middle is the part of a tensor's name that says which matrix it is.
func middle(name string) string {
	name = strings.TrimSuffix(name, ".weight")
	return name[strings.LastIndexByte(name, '.')+1:]
}

func newVocabulary(o Options) *vocabulary {
	v := &vocabulary{ids: map[string]int{}, spell: spellBytes}
	if o.Pieces {
		v.spell = spellRunes
		v.add("<unk>", unknown)
		v.add("<s>", control)
		v.end = v.add("</s>", control)
	} else {
		v.end = v.add("<|endoftext|>", control)
	}
	v.add("<|im_start|>", control)
	v.add("<|im_end|>", control)
	for b := 0; b < 256; b++ {
		if o.Pieces {
			v.add(fmt.Sprintf("<0x%02X>", b), single)
		} else {
			v.add(string(alphabet(byte(b))), normal)
		}
	}
	if o.Pieces {
		v.add("▁", normal)
		for c := ' ' + 1; c < 127; c++ {
			v.add(string(c), normal)
		}
	}
	for _, s := range o.Story {
		v.story = append(v.story, v.word(s))
	}
	for n := 0; len(v.texts) < o.Vocab; n++ {
		v.add(fmt.Sprintf("<unused%d>", n), unused)
	}
	return v
}

func (v *vocabulary) add(text string, kind int32) int {
	if id, ok := v.ids[text]; ok {
		return id
	}
	id := len(v.texts)
	v.ids[text] = id
	v.texts, v.kinds = append(v.texts, text), append(v.kinds, kind)
	v.scores = append(v.scores, -float32(id))
	return id
}

// word adds a token with the tokens that its merges pass through.
func (v *vocabulary) word(s string) int {
	if id, ok := v.ids[s]; ok {
		return id
	}
	if len(s) == 1 && s[0] >= utf8.RuneSelf {
		if id, ok := v.ids[fmt.Sprintf("<0x%02X>", s[0])]; ok {
			return id
		}
	}
	parts := v.spell(s)
	sum := parts[0]
	id := v.add(sum, normal)
	for _, p := range parts[1:] {
		v.add(p, normal)
		if _, ok := v.ids[sum+p]; !ok {
			v.merges = append(v.merges, sum+" "+p)
		}
		sum += p
		id = v.add(sum, normal)
	}
	return id
}

func spellRunes(s string) []string {
	return strings.Split(strings.ReplaceAll(s, " ", "▁"), "")
}

func spellBytes(s string) (out []string) {
	for i := range len(s) {
		out = append(out, string(alphabet(s[i])))
	}
	return out
}

// alphabet gives a byte the printable character that byte-level vocabularies
// write it with: itself, or the next free one above U+00FF.
// Source: github.com/openai/gpt-2, src/encoder.py, bytes_to_unicode.
func alphabet(b byte) rune {
	printable := func(c int) bool { return c >= '!' && c <= '~' || c >= 0xA1 && c <= 0xAC || c >= 0xAE }
	if printable(int(b)) {
		return rune(b)
	}
	r := rune(256)
	for c := 0; c < int(b); c++ {
		if !printable(c) {
			r++
		}
	}
	return r
}
