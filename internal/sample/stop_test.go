package sample

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func stopper(t testing.TB, include bool, words ...string) *Stopper {
	t.Helper()
	s, err := NewStopper(words, []int32{2, 7}, include)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStopperStream(t *testing.T) {
	for _, c := range []struct {
		name    string
		words   []string
		include bool
		push    string // chunks divided by |
		want    string // outputs divided by |, the last is Flush's
		word    string
	}{
		{"no stop strings", nil, false, "ab|c", "ab|c|", ""},
		{"held and given back", []string{"###"}, false, "a#|#|b", "a||##b|", ""},
		{"held at the end", []string{"###"}, false, "a##", "a|##", ""},
		{"matched over chunks", []string{"\n\nUser:"}, false, "Hi.\n|\nUs|er: x", "Hi.|||", "\n\nUser:"},
		{"kept", []string{"END"}, true, "xE|NDy", "x|END|", "END"},
		{"overlapping itself", []string{"aab"}, false, "aa|ab", "|a|", "aab"},
		{"the first complete wins", []string{"bcd", "abcde"}, false, "abcde", "a|", "bcd"},
		{"the longest at one byte", []string{"c", "abc"}, false, "xab|c", "x||", "abc"},
		{"a rune in two", []string{"x"}, false, "é\xe2\x82|\xacz", "é|€z|", ""},
		{"a rune never completed", []string{"x"}, false, "a\xe2\x82", "a|\xe2\x82", ""},
		{"stop in another script", []string{"。終"}, false, "完。|終り", "完||", "。終"},
	} {
		s := stopper(t, c.include, c.words...)
		var got []string
		for _, chunk := range strings.Split(c.push, "|") {
			out, _ := s.Push(chunk)
			got = append(got, out)
		}
		got = append(got, s.Flush())
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q", c.name, strings.Join(got, "|"), c.want)
		}
		if stopped, word, token := s.Stopped(); word != c.word || stopped != (c.word != "") || token != -1 {
			t.Errorf("%s: stopped %v by %q, token %d", c.name, stopped, word, token)
		}
		if out, stopped := s.Push("more"); c.word != "" && (out != "" || !stopped) {
			t.Errorf("%s: text after the end: %q", c.name, out)
		}
	}
}

func TestStopTokens(t *testing.T) {
	s := stopper(t, false, "abc")
	if out, _ := s.Push("xab"); out != "x" || s.Token(3) {
		t.Fatalf("out %q", out)
	}
	if !s.Token(7) || s.Flush() != "ab" {
		t.Error("a stop token must end the answer and give back the text held")
	}
	if stopped, word, token := s.Stopped(); !stopped || word != "" || token != 7 {
		t.Errorf("stopped %v by %q, %d", stopped, word, token)
	}
}

func TestStopperRefuses(t *testing.T) {
	for name, words := range map[string][]string{
		"empty": {"a", ""}, "not UTF-8": {"\xff"}, "too long": {strings.Repeat("a", MaxStopBytes+1)}, "too many": make([]string, MaxStopStrings+1),
	} {
		if _, err := NewStopper(words, nil, false); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// naiveStop returns the text up to the stop string that is complete first.
func naiveStop(text string, words []string, include bool) (string, bool) {
	for end := 1; end <= len(text); end++ {
		longest := ""
		for _, w := range words {
			if strings.HasSuffix(text[:end], w) && len(w) > len(longest) {
				longest = w
			}
		}
		if longest != "" && include {
			return text[:end], true
		} else if longest != "" {
			return text[:end-len(longest)], true
		}
	}
	return text, false
}

func FuzzStopper(f *testing.F) {
	f.Add("the end is near", "end", "e n", []byte{1, 2, 3}, false)
	f.Add("aaaabaaab", "aab", "aaab", []byte{1}, true)
	f.Add("日本語。日本", "。日", "語。日", []byte{1, 1, 4}, false)
	f.Add("abababac", "ababac", "abc", []byte{2, 0, 5}, false)
	f.Add("\xe2\x82x\xff", "x", "yy", []byte{1}, false)
	f.Fuzz(func(t *testing.T, text, w1, w2 string, cuts []byte, include bool) {
		words := []string{w1, w2}
		s, err := NewStopper(words, nil, include)
		if err != nil {
			return
		}
		want, match := naiveStop(text, words, include)
		whole := utf8.ValidString(text)
		got, pushed, stopped := "", 0, false
		for i := 0; pushed < len(text) && !stopped; i++ {
			n := 1
			if len(cuts) > 0 {
				n += int(cuts[i%len(cuts)]) % 7
			}
			n = min(n, len(text)-pushed)
			var out string
			out, stopped = s.Push(text[pushed : pushed+n])
			pushed += n
			got += out
			if whole && !utf8.ValidString(out) {
				t.Fatalf("half a rune in %q", out)
			}
			if held := pushed - len(got); !stopped && held > max(len(w1), len(w2), utf8.UTFMax)-1 {
				t.Fatalf("%d bytes held back", held)
			}
		}
		got += s.Flush()
		if got != want || stopped != match {
			t.Fatalf("%q, stopped %v; want %q, %v", got, stopped, want, match)
		}
	})
}
