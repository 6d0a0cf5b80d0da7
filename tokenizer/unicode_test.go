package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

type unicodeGolden struct {
	Ranges map[string][][2]rune         `json:"ranges"`
	Hashes map[string]map[string]string `json:"hashes"`
}

// isValidRune leaves out what is no character.
func isValidRune(r rune) bool { return r > 0 && (r < 0xd800 || r >= 0xe000) }

// splitsTo reports for a character between two texts whether a pre-tokenizer makes the words of it.
func splitsTo(t *testing.T, step, before, after string, want func(c string) []string) func(c string) bool {
	t.Helper()
	r := &jsonReader{t: &Tokenizer{}}
	list, err := r.preTokenizers(nil, step, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func(c string) bool {
		words, same, n := want(c), true, 0
		list.split(before+c+after, true, func(w string) {
			if w != "" {
				same = same && n < len(words) && words[n] == w
				n++
			}
		})
		return same && n == len(words)
	}
}

// TestUnicodeAges holds every character's properties against the reference, whose tables are of several ages (testdata/unicode.py).
func TestUnicodeAges(t *testing.T) {
	data, err := os.ReadFile("testdata/unicode.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden unicodeGolden
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	isolates := func(step string) func(c string) bool {
		return splitsTo(t, step, "a", "b", func(c string) []string { return []string{"a", c, "b"} })
	}
	removes := func(step string) func(c string) bool {
		return splitsTo(t, step, "a", "b", func(string) []string { return []string{"a", "b"} })
	}
	joins := func(step, before, after string) func(c string) bool {
		return splitsTo(t, step, before, after, func(c string) []string { return []string{before + c + after} })
	}
	tests := map[string]func(c string) bool{
		"mark": func(c string) bool {
			a, b := "a"+c+"\u0334", "a\u0301"+c
			return normalForm(norm.NFD, c) == c && (normalForm(norm.NFD, a) != a || normalForm(norm.NFD, b) != b)
		},
		"accent":                  func(c string) bool { return stripAccentsNormalizer{}.normalize("a"+c) == "a" },
		"clean accent":            func(c string) bool { return cleanNormalizer{accents: true}.normalize("a"+c) == "a" },
		"clean gone":              func(c string) bool { return cleanNormalizer{clean: true}.normalize("a"+c+"b") == "ab" },
		"clean space":             func(c string) bool { return c != " " && cleanNormalizer{clean: true}.normalize("a"+c+"b") == "a b" },
		"ideograph":               func(c string) bool { return cleanNormalizer{cjk: true}.normalize(c) == " "+c+" " },
		"nmt gone":                func(c string) bool { return nmtNormalizer{}.normalize("a"+c+"b") == "ab" },
		"nmt space":               func(c string) bool { return c != " " && nmtNormalizer{}.normalize("a"+c+"b") == "a b" },
		"strip":                   func(c string) bool { return stripNormalizer{true, true}.normalize(c) == "" },
		"clean words punctuation": isolates(`{"type":"BertPreTokenizer"}`),
		"clean words space":       removes(`{"type":"BertPreTokenizer"}`),
		"punctuation":             isolates(`{"type":"Punctuation","behavior":"Isolated"}`),
		"digit":                   isolates(`{"type":"Digits","individual_digits":true}`),
		"space":                   removes(`{"type":"WhitespaceSplit"}`),
		"word":                    joins(`{"type":"Whitespace"}`, "a", "b"),
		"word space":              removes(`{"type":"Whitespace"}`),
		"latin":                   joins(`{"type":"UnicodeScripts"}`, "a", "b"),
		"common":                  joins(`{"type":"UnicodeScripts"}`, "!", ""),
	}
	for name, want := range golden.Ranges {
		t.Run(name, func(t *testing.T) { checkRanges(t, tests[name], want) })
	}
	maps := map[string]func(string) string{"lower": lowercase}
	for name, form := range map[string]norm.Form{"nfc": norm.NFC, "nfd": norm.NFD, "nfkc": norm.NFKC, "nfkd": norm.NFKD} {
		maps[name] = formNormalizer{form}.normalize
	}
	for name, want := range golden.Hashes {
		t.Run(name, func(t *testing.T) { checkHashes(t, maps[name], want) })
	}
}

func checkRanges(t *testing.T, test func(c string) bool, want [][2]rune) {
	var bad [][2]rune
	for r, at := rune(1), 0; r < 0x110000; r++ {
		for at < len(want) && want[at][1] < r {
			at++
		}
		in := at < len(want) && want[at][0] <= r
		if !isValidRune(r) || test(string(r)) == in {
			continue
		}
		if n := len(bad); n > 0 && bad[n-1][1] == r-1 {
			bad[n-1][1] = r
		} else {
			bad = append(bad, [2]rune{r, r})
		}
	}
	if bad != nil {
		t.Errorf("%d ranges differ: %x", len(bad), bad)
	}
}

func checkHashes(t *testing.T, change func(string) string, want map[string]string) {
	for block, sum := range want {
		start, _ := strconv.ParseInt(block, 16, 32)
		var b strings.Builder
		for r := rune(start); r < rune(start)+1024; r++ {
			if isValidRune(r) {
				b.WriteString(change(string(r)) + "|")
			}
		}
		got := sha256.Sum256([]byte(b.String()))
		if hex.EncodeToString(got[:])[:8] != sum {
			t.Errorf("block %s differs", block)
		}
	}
}
