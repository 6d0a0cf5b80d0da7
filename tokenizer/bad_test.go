package tokenizer

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// goodMeta is the smallest GGUF vocabulary with merges.
func goodMeta() fakeMeta {
	return fakeMeta{
		ggml + "model": "gpt2", ggml + "pre": "gpt-2",
		ggml + "tokens":     []string{"a", "b", "c", "ab", "abc", "<|end|>"},
		ggml + "token_type": []int64{1, 1, 1, 1, 1, 3},
		ggml + "merges":     []string{"a b", "ab c"},
	}
}

func TestBadGGUF(t *testing.T) {
	if tok, err := FromGGUF(goodMeta()); err != nil {
		t.Fatal(err)
	} else if got := tok.Encode("abcab<|end|>", Options{ParseSpecial: true}); fmt.Sprint(got) != "[4 3 5]" {
		t.Errorf("encodes to %v", got)
	}
	for _, c := range []struct {
		key   string
		value any // nil deletes
		want  error
		says  string
	}{
		{"model", nil, ErrNoTokenizer, "model"},
		{"model", uint64(1), ErrInvalid, "model"},
		{"model", "nonsense", ErrUnsupported, "nonsense"},
		{"model", "llama", ErrInvalid, "scores"},
		{"model", "t5", ErrInvalid, "scores"},
		{"pre", "nonsense", ErrUnsupported, "nonsense"},
		{"tokens", nil, ErrNoTokenizer, "tokens"},
		{"tokens", "abc", ErrInvalid, "tokens"},
		{"tokens", []string{}, ErrInvalid, "tokens"},
		{"tokens", make([]string, maxVocab+1), ErrInvalid, "entries"},
		{"token_type", []int64{1}, ErrInvalid, "token_type"},
		{"token_type", "x", ErrInvalid, "token_type"},
		{"scores", []float64{1}, ErrInvalid, "scores"},
		{"merges", []string{"ab"}, ErrInvalid, "no space"},
		{"merges", []string{""}, ErrInvalid, "no space"},
		{"merges", []string{"a z"}, ErrInvalid, "entry 0"},
		{"merges", []string{"a b", "a c"}, ErrInvalid, "entry 1"},
		{"merges", "a b", ErrInvalid, "merges"},
		{"add_bos_token", "yes", ErrInvalid, "add_bos_token"},
	} {
		m := maps.Clone(goodMeta())
		if c.value == nil {
			delete(m, ggml+c.key)
		} else {
			m[ggml+c.key] = c.value
		}
		if c.key == "add_bos_token" {
			m[ggml+"bos_token_id"] = uint64(5)
		}
		_, err := FromGGUF(m)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "tokenizer: ") {
			t.Errorf("%s = %.40v: %v", c.key, c.value, err)
		}
	}
}

func TestBadJSON(t *testing.T) {
	const bpe = `"type":"BPE","vocab":{"a":0,"b":1,"ab":2}`
	good := `{"model":{` + bpe + `,"merges":["a b"]}}`
	if tok, err := FromJSON([]byte(good), nil); err != nil {
		t.Fatal(err)
	} else if got := tok.Encode("abba", Options{}); fmt.Sprint(got) != "[2 1 0]" {
		t.Errorf("encodes to %v", got)
	}
	for _, c := range []struct {
		file string
		want error
	}{
		{``, ErrInvalid}, {`[]`, ErrInvalid}, {`{`, ErrInvalid}, {`{}`, ErrNoTokenizer}, {`{"model":null}`, ErrNoTokenizer}, {`{"model":3}`, ErrInvalid}, {good + `x`, ErrInvalid},
		{`{"model":{}}`, ErrInvalid}, {`{"model":{"vocab":3}}`, ErrInvalid}, {`{"model":{"vocab":{"a":-1}}}`, ErrInvalid}, {`{"model":{"vocab":{"a":99999999999}}}`, ErrInvalid},
		{`{"model":{"vocab":{"a":4000000}}}`, ErrInvalid}, {`{"model":{"vocab":{"a":0 "b":1}}}`, ErrInvalid}, {`{"model":{"vocab":{"a":"b"}}}`, ErrInvalid}, {`{"model":{"vocab":{"a`, ErrInvalid},
		{`{"model":{"type":"Nonsense","vocab":{}}}`, ErrUnsupported}, {`{"model":{` + bpe + `,"merges":["a z"]}}`, ErrInvalid}, {`{"model":{` + bpe + `,"merges":["ab"]}}`, ErrInvalid},
		{`{"model":{` + bpe + `,"merges":[["a"]]}}`, ErrInvalid}, {`{"model":{` + bpe + `,"merges":[["a","b","ab"]]}}`, ErrInvalid}, {`{"model":{` + bpe + `,"merges":7}}`, ErrInvalid},
		{`{"model":{"type":"Unigram","vocab":[["a"]]}}`, ErrInvalid}, {`{"model":{"type":"Unigram","vocab":[["a",0,1]]}}`, ErrInvalid}, {`{"model":{"type":"Unigram","vocab":[["a",1e999]]}}`, ErrInvalid},
		{`{"model":{"type":"Unigram","unk_id":5,"vocab":[["a",0]]}}`, ErrInvalid},
		{`{"normalizer":{"type":"Nonsense"},"model":{` + bpe + `}}`, ErrUnsupported}, {`{"normalizer":{"type":"Replace","content":""},"model":{` + bpe + `}}`, ErrInvalid},
		{`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAA"},"model":{` + bpe + `}}`, ErrInvalid}, {`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="},"model":{` + bpe + `}}`, ErrInvalid},
		{`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"},"model":{` + bpe + `}}`, ErrUnsupported},
		{`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Nonsense"},"model":{` + bpe + `}}`, ErrInvalid},
		{`{"pre_tokenizer":{"type":"Nonsense"},"model":{` + bpe + `}}`, ErrUnsupported}, {`{"decoder":{"type":"Nonsense"},"model":{` + bpe + `}}`, ErrUnsupported}, {`{"decoder":{"type":"Strip"},"model":{` + bpe + `}}`, ErrInvalid},
		{`{"post_processor":{"type":"Nonsense"},"model":{` + bpe + `}}`, ErrUnsupported}, {`{"post_processor":{"type":"BertProcessing","sep":["x",9],"cls":["x",0]},"model":{` + bpe + `}}`, ErrInvalid},
		{`{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],"special_tokens":{}},"model":{` + bpe + `}}`, ErrInvalid},
		{`{"post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}},"model":{` + bpe + `}}`, ErrUnsupported},
		{`{"added_tokens":[{"id":-1,"content":"x"}],"model":{` + bpe + `}}`, ErrInvalid}, {`{"added_tokens":[{"id":3000000,"content":"x"}],"model":{` + bpe + `}}`, ErrInvalid}, {`{"added_tokens":5,"model":{` + bpe + `}}`, ErrInvalid},
		{`{"normalizer":` + strings.Repeat(`{"type":"Sequence","normalizers":[`, 40) + strings.Repeat(`]}`, 40) + `,"model":{` + bpe + `}}`, ErrInvalid},
	} {
		_, err := FromJSON([]byte(c.file), nil)
		if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "tokenizer: ") || len(err.Error()) > 600 {
			t.Errorf("%.120s: %v", c.file, err)
		}
	}
	if _, err := FromJSON([]byte(good), []byte("{")); !errors.Is(err, ErrInvalid) {
		t.Errorf("broken configuration: %v", err)
	}
}

// TestCyclicMerges has merges that make tokens out of each other; every merge shortens the word, so encoding ends.
func TestCyclicMerges(t *testing.T) {
	m := goodMeta()
	m[ggml+"tokens"] = []string{"a", "aa", "aaa", "aaaa"}
	m[ggml+"token_type"] = []int64{1, 1, 1, 1}
	m[ggml+"merges"] = []string{"aa a", "a aa", "a a", "aa aa", "a a", "aaa a", "a aaa"}
	tok, err := FromGGUF(m)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, id := range tok.Encode(strings.Repeat("a", 50_001), Options{}) {
		n += len(tok.Text(id))
	}
	if n != 50_001 {
		t.Errorf("ids spell %d characters", n)
	}
}
