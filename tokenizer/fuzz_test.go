package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzFromJSON(f *testing.F) {
	const config = `{"bos_token":"<s>","add_bos_token":true,"added_tokens_decoder":{"5":{"content":"x"}}}`
	for _, part := range []string{
		`"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"<unk>":3},"merges":["a b"],"unk_token":"<unk>","fuse_unk":true}`,
		`"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"H":0,"e":1,"Ġ":2,"He":3},"merges":[["H","e"]],"ignore_merges":true}`,
		`"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"Regex":" +"},"content":"▁"}]},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁H",-1],["e",-2.5],["<0x0A>",-3]],"byte_fallback":true}`,
		`"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece"},"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"he":1,"##llo":2}},"post_processor":{"type":"BertProcessing","sep":["x",1],"cls":["y",0]}`,
		`"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s+(?!\\S)|\\p{L}+?"},"behavior":"MergedWithNext"},{"type":"Metaspace","prepend_scheme":"first"},{"type":"Digits","individual_digits":true}]},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":1}]},"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0}}`,
		`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[1]}}},"model":{"vocab":{"a":0},"merges":[]}`,
	} {
		data := []byte(`{"added_tokens":[{"id":1,"content":"<s>","special":true,"lstrip":true},{"id":4,"content":"ö","normalized":true}],` + part + `}`)
		if _, err := FromJSON(data, []byte(config)); err != nil {
			f.Fatal(err)
		}
		f.Add(data, []byte(config))
	}
	f.Fuzz(func(t *testing.T, data, config []byte) {
		if len(data) > 4096 {
			return
		}
		tok, err := FromJSON(data, config)
		if err != nil {
			return
		}
		ids := tok.Encode("<s> Hello, wörld 123</s>\n", Options{AddSpecial: true, ParseSpecial: true})
		for _, id := range ids {
			if !tok.valid(id) {
				t.Fatalf("id %d of %d", id, tok.Size())
			}
			tok.TokenBytes(id)
		}
		if stream(tok, ids, true) != tok.Decode(ids, true) {
			t.Fatal("streams differently")
		}
	})
}

// FuzzEncode encodes any text with every small tokenizer: ids are valid, streaming equals decoding, pieces are never parsed, bytes come back.
func FuzzEncode(f *testing.F) {
	for _, row := range readGolden(f, "testdata/small/bpe-gpt2.golden.jsonl.gz") {
		f.Add(row.Text)
	}
	f.Add("\xff\xfe\x80 a\xe2\x82 </s>")
	toks := map[string]*Tokenizer{}
	for _, name := range smallNames(f) {
		toks[name] = small(f, name)
	}
	exact := []string{"bpe-gpt2", "bpe-llama3", "bpe-digits", "bpe-falcon"}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		for name, tok := range toks {
			ids := tok.Encode(text, Options{})
			for _, id := range ids {
				if !tok.valid(id) {
					t.Fatalf("%s: id %d of %d", name, id, tok.Size())
				}
				if tok.IsControl(id) && !strings.Contains(strings.ToLower(tok.Text(id)), "unk") {
					t.Fatalf("%s: unparsed %q holds control token %q", name, text, tok.Text(id))
				}
			}
			whole := tok.Decode(ids, false)
			if got := stream(tok, ids, false); got != whole {
				t.Fatalf("%s: %q streams as %q, decodes to %q", name, text, got, whole)
			}
			if utf8.ValidString(text) && slices.Contains(exact, name) && whole != text {
				t.Fatalf("%s: %q comes back as %q", name, text, whole)
			}
		}
	})
}

// FuzzMerges holds the heap against the obvious way of merging.
func FuzzMerges(f *testing.F) {
	f.Add("the quick brown fox jumps over the lazy dog")
	f.Add(strings.Repeat("she sells sea shells", 10))
	tok := small(f, "bpe-gpt2")
	m := tok.model.(*bpe)
	f.Fuzz(func(t *testing.T, word string) {
		sc := &scratch{}
		direct := slices.Clone(m.mergeDirect(slices.Clone(m.start(word, sc)), &scratch{}))
		if len(m.start(word, sc)) == 0 {
			return
		}
		if heap := m.mergeHeap(m.start(word, sc), sc, nil); !slices.Equal(heap, direct) {
			t.Fatalf("%q: heap %v, direct %v", word, heap, direct)
		}
	})
}
