package tokenizer

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const bytePieces = `"type":"BPE","vocab":{"a":0,"b":1,"x":2},"merges":[]`

func replaceStep(pattern, to string) string {
	return fmt.Sprintf(`{"type":"Replace","pattern":%s,"content":%q}`, pattern, to)
}

// repeat lists a step n times as a sequence under the name of its list.
func repeat(n int, list, step string) string {
	return fmt.Sprintf(`{"type":"Sequence",%q:[%s]}`, list, strings.TrimSuffix(strings.Repeat(step+",", n), ","))
}

// TestGrowth has files whose steps make much of little: they are refused when read.
func TestGrowth(t *testing.T) {
	hundred := strings.Repeat("a", 100)
	for name, part := range map[string]string{
		"literals":      `"normalizer":` + repeat(6, "normalizers", replaceStep(`{"String":"a"}`, hundred)),
		"patterns":      `"normalizer":` + repeat(9, "normalizers", replaceStep(`{"Regex":"."}`, hundred[:10])),
		"of nothing":    `"normalizer":` + repeat(3, "normalizers", replaceStep(`{"Regex":"b*"}`, hundred[:10])),
		"empty literal": `"normalizer":` + repeat(3, "normalizers", replaceStep(`{"String":""}`, hundred[:10])),
		"prepend":       `"normalizer":` + repeat(2, "normalizers", `{"type":"Prepend","prepend":"`+hundred+`"}`),
		"alphabet":      `"normalizer":` + repeat(12, "normalizers", `{"type":"ByteLevel"}`),
		"forms":         `"normalizer":` + repeat(300, "normalizers", `{"type":"Strip"}`),
		"marks":         `"pre_tokenizer":{"type":"Metaspace","replacement":"` + hundred + `"}`,
		"words":         `"pre_tokenizer":` + repeat(9, "pretokenizers", `{"type":"ByteLevel"}`),
		"decoders":      `"decoder":` + repeat(6, "decoders", replaceStep(`{"String":"a"}`, hundred)),
		"one decoder":   `"decoder":` + replaceStep(`{"Regex":"a"}`, hundred),
		"template": `"post_processor":{"type":"TemplateProcessing","single":[` + strings.Repeat(`{"SpecialToken":{"id":"x"}},`, 200) +
			`{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[` + strings.Repeat("1,", 200) + `1]}}}`,
	} {
		_, err := FromJSON([]byte(`{`+part+`,"model":{`+bytePieces+`}}`), nil)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "at most") && !strings.Contains(err.Error(), "one character") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRoom has a step that is allowed and a text for which it is too much.
func TestRoom(t *testing.T) {
	for _, step := range []string{replaceStep(`{"String":"a"}`, strings.Repeat("b", 900)), replaceStep(`{"Regex":"a"}`, strings.Repeat("b", 900))} {
		tok, err := FromJSON([]byte(`{"normalizer":`+step+`,"model":{`+bytePieces+`}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.TryEncode("ax", Options{})
		if err != nil || len(ids) != 901 {
			t.Errorf("%d ids, %v", len(ids), err)
		}
		long := strings.Repeat("a", 2_000)
		ids, err = tok.TryEncode(long, Options{})
		if !errors.Is(err, ErrTooLong) || len(ids) != len(long) || ids[0] != 0 {
			t.Errorf("%d ids, %v", len(ids), err)
		}
		if !slices.Equal(tok.Encode(long, Options{}), ids) {
			t.Error("Encode differs from TryEncode")
		}
		if _, err := tok.TryEncodePieces([]Piece{{Text: long}}, false); !errors.Is(err, ErrTooLong) {
			t.Error(err)
		}
	}
	added := `"added_tokens":[{"id":5,"content":"` + strings.Repeat("a", 2_000) + `","normalized":true}],`
	_, err := FromJSON([]byte(`{`+added+`"normalizer":`+replaceStep(`{"String":"a"}`, strings.Repeat("b", 900))+`,"model":{`+bytePieces+`}}`), nil)
	if !errors.Is(err, ErrInvalid) || !errors.Is(err, ErrTooLong) {
		t.Errorf("an added token grows: %v", err)
	}
}

// TestInvalidUTF8 holds invalid bytes against bytes.decode("utf-8", errors="replace") of Python.
func TestInvalidUTF8(t *testing.T) {
	for _, name := range smallNames(t) {
		tok := small(t, name)
		for from, to := range map[string]string{
			"a\xffb": "a\ufffdb", "\xe2\x82": "\ufffd", "\xe2\x82a": "\ufffda", "\xff\xfe": "\ufffd\ufffd", "\xf0\x9f\x98 x": "\ufffd x",
			"\xed\xa0\x80": "\ufffd\ufffd\ufffd", "\xc0\xaf": "\ufffd\ufffd",
		} {
			want := tok.Encode(to, Options{})
			if got := tok.Encode(from, Options{}); !slices.Equal(got, want) {
				t.Errorf("%s: %q gives %v, %q gives %v", name, from, got, to, want)
			}
			if got := tok.EncodePieces([]Piece{{Text: from}, {Text: ""}}, false); !slices.Equal(got, want) {
				t.Errorf("%s: the piece %q gives %v, want %v", name, from, got, want)
			}
		}
		if got, want := tok.EncodePieces([]Piece{{Text: "\xc3"}, {Text: "\xa9"}}, false), tok.Encode("é", Options{}); !slices.Equal(got, want) {
			t.Errorf("%s: a rune cut in two gives %v, want %v", name, got, want)
		}
	}
}

// TestBadIDs has ids of a role that are none.
func TestBadIDs(t *testing.T) {
	for _, key := range []string{"bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id", "eot_token_id", "seperator_token_id", "fim_pre_token_id"} {
		for _, v := range []any{uint64(6), uint64(1<<32 - 1), "x", int64(-1)} {
			m := maps.Clone(goodMeta())
			m[ggml+key] = v
			_, err := FromGGUF(m)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "0 to 5") {
				t.Errorf("%s = %v: %v", key, v, err)
			}
		}
	}
	file := []byte(`{"model":{` + bytePieces + `}}`)
	for config, says := range map[string]string{
		`{"bos_token":5}`:                            "bos_token: 5 is no token",
		`{"eos_token":["a"]}`:                        "eos_token",
		`{"pad_token":{}}`:                           "pad_token",
		`{"unk_token":true}`:                         "unk_token",
		`{"added_tokens_decoder":{"x":{}}}`:          `"x", want 0 to`,
		`{"added_tokens_decoder":{"-1":{}}}`:         `"-1", want 0 to`,
		`{"added_tokens_decoder":{"4294967295":{}}}`: `"4294967295", want 0 to`,
	} {
		if _, err := FromJSON(file, []byte(config)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", config, err)
		}
	}
	if _, err := FromJSON(file, []byte(`{"bos_token":null,"eos_token":false,"pad_token":"","unk_token":{"content":"a"}}`)); err != nil {
		t.Error(err)
	}
	for part, says := range map[string]string{
		`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{}}],"special_tokens":{"x":{"ids":[3]}}}`: "special_tokens.x has id 3, want 0 to 2",
		`{"type":"BertProcessing","sep":["x",3],"cls":["x",0]}`:                                                                   "0 to 2",
	} {
		if _, err := FromJSON([]byte(`{"post_processor":`+part+`,"model":{`+bytePieces+`}}`), nil); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", part, err)
		}
	}
}

// TestAroundBomb: a template whose few tokens stand for many ids each is refused
// before they are made, and one of pairs is not read.
func TestAroundBomb(t *testing.T) {
	const items, each = 4000, 2000
	ids := strings.TrimSuffix(strings.Repeat("0,", each), ",")
	many := strings.Repeat(`{"SpecialToken":{"id":"x","type_id":0}},`, items)
	a, b := `{"Sequence":{"id":"A","type_id":0}}`, `{"Sequence":{"id":"B","type_id":0}}`
	for name, c := range map[string]struct {
		single, pair string
		fails        bool
	}{
		"before": {many + a, "", true},
		"behind": {a + "," + strings.TrimSuffix(many, ","), "", true},
		"pairs":  {a, a + "," + many + b, false},
	} {
		file := []byte(`{"post_processor":{"type":"TemplateProcessing","single":[` + c.single + `],"pair":[` + c.pair + `],"special_tokens":{"x":{"id":"x","ids":[` + ids + `]}}},"model":{` + bytePieces + `}}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tok, err := FromJSON(file, nil)
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > items*each {
			t.Errorf("%s: %d bytes were made", name, made)
		}
		if c.fails != errors.Is(err, ErrInvalid) || !c.fails && err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil {
			if _, _, _, err := tok.EncodePair("a", "b", 0); !errors.Is(err, ErrNoPair) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	nested := strings.TrimSuffix(strings.Repeat(`{"type":"BertProcessing","sep":["x",0],"cls":["x",0]},`, 2000), ",")
	if _, err := FromJSON([]byte(`{"post_processor":{"type":"Sequence","processors":[`+nested+`]},"model":{`+bytePieces+`}}`), nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("many processors: %v", err)
	}
}

// TestAddedWork: normalizing all added tokens has one budget, whether much of
// it goes into patterns or into many steps over much text.
func TestAddedWork(t *testing.T) {
	added := make([]string, 1500)
	for i := range added {
		added[i] = fmt.Sprintf(`{"id":0,"content":%q,"normalized":true}`, strings.Repeat("x", i+1))
	}
	for pattern, fails := range map[string]bool{"x+y": true, "(?:x|x?)+?b(?=.*c)": true, "(x|x)*y": true, "x": false, "y+": false} {
		file := fmt.Sprintf(`{"added_tokens":[%s],"normalizer":{"type":"Replace","pattern":{"Regex":%q},"content":"w"},"model":{%s}}`, strings.Join(added, ","), pattern, bytePieces)
		if _, err := FromJSON([]byte(file), nil); fails != errors.Is(err, ErrTooCostly) || !fails && err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
