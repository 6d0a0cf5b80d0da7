package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestLongestMatch(t *testing.T) {
	none := MatchOptions{BOS: -1, EOS: -1, Unknown: 0}
	bytes := none
	bytes.ByteAlphabet = true
	for _, c := range []struct {
		name, data string
		o          MatchOptions
		text, want string
		back       string
	}{
		{"vocab.txt", "[UNK]\na\nab\nabc\nc\n", none, "abcabx你c", "[3 2 0 0 4]", "abcab[UNK][UNK]c"},
		{"vocab.json", `{"<unk>":0,"▁the":1,"▁":2,"t":3,"he":4}`, none, "the the", "[3 4 1]", "the the"},
		{"tokenizer.json", `{"version":"1.0","model":{"type":"BPE","vocab":{"<unk>":0,"Ġthe":1,"the":2,"é":3,"Ã©":4}}}`, bytes, "the theé", "[2 1 4]", "the theé"},
	} {
		tok, err := OpenLongestMatch(heldFiles{c.name: c.data}, c.name, c.o)
		if err != nil {
			t.Fatal(err)
		}
		ids := tok.Encode(c.text, Options{})
		if got := fmt.Sprint(ids); got != c.want || tok.Decode(ids, false) != c.back {
			t.Errorf("%s: %q is %s (%q), want %s (%q)", c.name, c.text, got, tok.Decode(ids, false), c.want, c.back)
		}
	}
	o := MatchOptions{BOS: 0, EOS: -1, Unknown: -1, Roles: map[string]string{"eos": "</s>", "bos": "<s>", "pad": "none"}}
	tok, err := OpenLongestMatch(heldFiles{"v.txt": "?\n<s>\n</s>\na\n<\n/s>\ns>"}, "v.txt", o)
	if err != nil {
		t.Fatal(err)
	}
	if bos, _ := tok.BOS(); bos != 1 || !tok.IsControl(2) || tok.IsControl(0) {
		t.Errorf("bos is %d", bos)
	}
	if got := fmt.Sprint(tok.EncodePieces([]Piece{{Text: "<s>", Special: true}, {Text: "a</s><s>"}, {Text: "</s>", Special: true}}, true)); got != "[1 3 4 5 4 6 2]" {
		t.Errorf("a prompt of pieces is %s", got)
	}
	for name, data := range map[string]string{"long.txt": strings.Repeat("a", maxPiece+1), "a.txt": "", "a.json": `{"a":4000000}`, "b.json": `[`, "a.model": "x"} {
		if _, err := OpenLongestMatch(heldFiles{name: data}, name, none); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenLongestMatch(heldFiles{}, "a.txt", none); !errors.Is(err, ErrNoTokenizer) {
		t.Errorf("no file: %v", err)
	}
	if _, err := OpenLongestMatch(heldFiles{"a.txt": "x"}, "a.txt", MatchOptions{EOS: 5}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an id out of range: %v", err)
	}
}
