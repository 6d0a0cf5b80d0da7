package tokenizer

import (
	"errors"
	"strings"
	"testing"
)

// costly needs more steps on a long run of a than it may take, and matches all else rune by rune.
const costly = `(?:a{0,50}){0,50}c|[^a]`

func costlyTokenizer(t *testing.T, steps string) *Tokenizer {
	t.Helper()
	file := `{"added_tokens":[{"id":3,"content":"<x>","special":true,"normalized":false}],` + steps +
		`"model":{"type":"BPE","vocab":{"a":0,"b":1,"aa":2},"merges":["a a"]}}`
	tok, err := FromJSON([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestTooCostly: a pattern that is given up is an error, wherever it stands, and the ids are still those of the whole text.
func TestTooCostly(t *testing.T) {
	split := `{"type":"Split","pattern":{"Regex":"` + costly + `"},"behavior":"%","invert":true}`
	long := "b<x>" + strings.Repeat("a", 600) + "<x>b"
	for name, steps := range map[string]string{
		"isolated":   `"pre_tokenizer":` + strings.Replace(split, "%", "Isolated", 1) + `,`,
		"removed":    `"pre_tokenizer":` + strings.Replace(split, "%", "Removed", 1) + `,`,
		"chain":      `"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},` + strings.Replace(split, "%", "Removed", 1) + `]},`,
		"normalizer": `"normalizer":{"type":"Replace","pattern":{"Regex":"` + costly + `"},"content":"b"},`,
	} {
		tok := costlyTokenizer(t, steps)
		o := Options{ParseSpecial: true}
		if _, err := tok.TryEncode("b<x>ab", o); err != nil {
			t.Errorf("%s: a short text: %v", name, err)
		}
		ids, err := tok.TryEncode(long, o)
		if !errors.Is(err, ErrTooCostly) {
			t.Fatalf("%s: %v", name, err)
		}
		if text := err.Error(); len(text) > 500 || !strings.Contains(text, costly) {
			t.Errorf("%s: %s", name, text)
		}
		aa, b, x := 0, 0, 0
		for _, id := range ids {
			switch id {
			case 1:
				b++
			case 2:
				aa++
			case 3:
				x++
			}
		}
		if len(ids) < 302 || aa != 300 || x != 2 || name != "removed" && name != "chain" && b != 2 {
			t.Errorf("%s: %d ids, %d of a pair, %d of the added token, %d of b", name, len(ids), aa, x, b)
		}
		if got := tok.Encode(long, o); len(got) != len(ids) {
			t.Errorf("%s: Encode returns %d ids, TryEncode %d", name, len(got), len(ids))
		}
		if _, err := tok.TryEncodePieces([]Piece{{Text: long}}, false); !errors.Is(err, ErrTooCostly) {
			t.Errorf("%s: pieces: %v", name, err)
		}
	}
}
