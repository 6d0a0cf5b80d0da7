package tokenizer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// byteRanks is a tiktoken file of the 256 bytes.
func byteRanks(rank func(i int) int) string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), rank(i))
	}
	return b.String()
}

// TestRankTwice: a rank is an id, so no two tokens may have one.
func TestRankTwice(t *testing.T) {
	if _, err := Open(heldFiles{"qwen.tiktoken": byteRanks(func(i int) int { return i })}); err != nil {
		t.Errorf("256 ranks: %v", err)
	}
	for name, rank := range map[string]func(int) int{"all": func(int) int { return 0 }, "the last": func(i int) int { return i % 255 }} {
		if _, err := Open(heldFiles{"qwen.tiktoken": byteRanks(rank)}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "has already") {
			t.Errorf("%s: %v", name, err)
		}
	}
	tekken := `{"config":{"default_vocab_size":4,"default_num_special_tokens":2},"vocab":[{"rank":0,"token_bytes":"YQ=="},{"rank":0,"token_bytes":"Yg=="}],"special_tokens":[]}`
	if _, err := Open(heldFiles{"tekken.json": tekken}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "has already") {
		t.Errorf("tekken: %v", err)
	}
}

// TestManyOldAdded has more tokens in added_tokens.json than could each be looked for in a list of them.
func TestManyOldAdded(t *testing.T) {
	const n = 300_000
	var b strings.Builder
	b.WriteString(`{"<0>":256`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,"<%d>":%d`, i, 256+i)
	}
	f, err := openFolder(heldFiles{"added_tokens.json": b.String() + "}", "special_tokens_map.json": `{"eos_token":{"content":"<7>","lstrip":true},"pad_token":"<7>"}`})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.added) != n || f.added[n-1].Content != fmt.Sprintf("<%d>", n-1) || !f.added[7].Special || !f.added[7].Lstrip {
		t.Errorf("%d tokens, the eighth %+v", len(f.added), f.added[7])
	}
}

// TestWordPieceUnknown: the token for unknown words must be there, or they would vanish.
func TestWordPieceUnknown(t *testing.T) {
	file := func(unk, longest, added string) string {
		return `{"added_tokens":[` + added + `],"model":{"type":"WordPiece","unk_token":"` + unk + `","max_input_chars_per_word":` + longest + `,"vocab":{"u":0,"a":1,"##a":2}}}`
	}
	for _, c := range []struct{ file, says string }{
		{file("nope", "100", ""), "unk_token"},
		{file(strings.Repeat("x", 10_000), "100", ""), "unk_token"},
		{file("u", "-1", ""), "max_input_chars_per_word"},
	} {
		if _, err := FromJSON([]byte(c.file), nil); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 200 {
			t.Errorf("%.120s: %v", c.file, err)
		}
	}
	tok, err := FromJSON([]byte(file("x", "100", `{"id":3,"content":"x"}`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode("b", Options{}); fmt.Sprint(got) != "[3]" {
		t.Errorf("an unknown word becomes %v", got)
	}
}

// TestBriefErrors: no message is as long as what it quotes.
func TestBriefErrors(t *testing.T) {
	long := strings.Repeat("é", 1<<19)
	const model = `"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`
	for _, file := range []string{
		`{"decoder":{"type":"Strip","content":"` + long + `","start":-1},` + model,
		`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\p{` + long + `}"},"behavior":"Isolated"},` + model,
	} {
		if _, err := FromJSON([]byte(file), nil); err == nil || len(err.Error()) > maxMessage+4 || !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%.60s: %.600v", file, err)
		}
	}
}

// Tokens of the text as it came are looked for before those of normalized text, also
// where nothing normalizes: a mask takes all white space before it, of which three
// spaces are a token (ids of Hugging Face tokenizers 0.23.3).
func TestAddedTwice(t *testing.T) {
	tok := small(t, "bpe-gpt2")
	for text, want := range map[string][]int32{"a    <mask>b": {67, 600, 68}, "a     b": {67, 602, 223, 316}, "\n     <mask>": {600}} {
		if got := tok.Encode(text, Options{ParseSpecial: true}); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
