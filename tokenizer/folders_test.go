package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// diskFiles are the files of a folder.
type diskFiles string

func (d diskFiles) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(d), name))
}

// heldFiles are files held in memory.
type heldFiles map[string]string

func (h heldFiles) ReadFile(name string) ([]byte, error) {
	if data, ok := h[name]; ok {
		return []byte(data), nil
	}
	return nil, fs.ErrNotExist
}

type folderRow struct {
	Text    string  `json:"text"`
	Parse   bool    `json:"parse"`
	IDs     []int32 `json:"ids"`
	Special []int32 `json:"special"`
	Decoded *string `json:"decoded"`
}

// TestFolders holds folders without tokenizer.json against the libraries that their files belong to (testdata/folders.py).
func TestFolders(t *testing.T) {
	folders, _ := filepath.Glob("testdata/folders/*")
	if len(folders) < 15 {
		t.Fatalf("%d folders", len(folders))
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			tok, err := Open(diskFiles(folder))
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(filepath.Join(folder, "golden.jsonl.gz"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			in, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			s := bufio.NewScanner(in)
			s.Buffer(nil, 1<<24)
			for s.Scan() {
				var row folderRow
				if err := json.Unmarshal(s.Bytes(), &row); err != nil {
					t.Fatal(err)
				}
				checkFolderRow(t, tok, row)
			}
		})
	}
}

func checkFolderRow(t *testing.T, tok *Tokenizer, row folderRow) {
	got := tok.Encode(row.Text, Options{ParseSpecial: row.Parse})
	if !slices.Equal(got, row.IDs) {
		t.Errorf("%.80q:\n got %v\nwant %v\n%s", row.Text, got, row.IDs, pieces(tok, got, row.IDs))
		return
	}
	if around := tok.Encode(row.Text, Options{ParseSpecial: row.Parse, AddSpecial: true}); row.Special != nil && !slices.Equal(around, row.Special) {
		t.Errorf("%.80q: with special tokens %v, want %v", row.Text, around, row.Special)
	}
	whole := tok.Decode(row.IDs, false)
	if row.Decoded != nil && whole != *row.Decoded {
		t.Errorf("%v decode to %q, want %q", row.IDs, whole, *row.Decoded)
	}
	if got := stream(tok, row.IDs, false); got != whole {
		t.Errorf("%v stream as %q, decode to %q", row.IDs, got, whole)
	}
}

// TestUserPieces: user-defined pieces count wherever a text is encoded, but not where a prompt's pieces keep what a user wrote apart.
func TestUserPieces(t *testing.T) {
	for _, name := range []string{"spm-unigram-user", "spm-bpe-user", "spm-char"} {
		tok, err := Open(diskFiles("testdata/folders/" + name))
		if err != nil {
			t.Fatal(err)
		}
		id, ok := tok.ID("<sep>")
		if !ok {
			t.Fatal(name, "has no <sep>")
		}
		count := func(ids []int32) (n int) {
			for _, x := range ids {
				if x == id {
					n++
				}
			}
			return n
		}
		if n := count(tok.Encode("a<sep>b", Options{})); n != 1 {
			t.Errorf("%s: %d of 1 in a text", name, n)
		}
		if n := count(tok.EncodePieces([]Piece{{"a<sep>", true}, {"b<sep>", false}, {"c<sep>", true}}, false)); n != 2 {
			t.Errorf("%s: %d of 2 in pieces", name, n)
		}
		if n := count(tok.EncodePieces([]Piece{{"b<sep>", false}}, false)); n != 0 {
			t.Errorf("%s: %d of 0 in a user's text", name, n)
		}
	}
}

func TestClassTable(t *testing.T) {
	table, err := classes()
	if err != nil {
		t.Fatal(err)
	}
	for name, kinds := range table.Models {
		if table.Classes[name] == nil || len(kinds) == 0 {
			t.Errorf("models: no class %s, or no models of it", name)
		}
	}
	for file, name := range table.Defaults {
		if table.Classes[name] == nil {
			t.Errorf("defaults: %s: no class %s", file, name)
		}
	}
	all, err := presets()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range table.Tiktoken {
		if all.Splits[kind.Split] == nil {
			t.Errorf("tiktoken: no split %s", kind.Split)
		}
	}
	for name, c := range table.Classes {
		for _, raw := range []json.RawMessage{c.Normalizer, c.PreTokenizer, c.Model, c.Decoder} {
			if _, err := settings(c.Set).step(raw); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestExpand(t *testing.T) {
	s := settings{"n": json.RawMessage("3"), "big": json.RawMessage("99999999"), "lang": json.RawMessage(`"de"`)}
	for _, c := range []struct{ in, want string }{
		{"<x_{0..2}>", "<x_0> <x_1> <x_2>"},
		{"<x_{${n}-1..0}>", "<x_2> <x_1> <x_0>"},
		{"__${lang}__", "__de__"},
		{"plain", "plain"},
	} {
		got, err := s.expand(c.in)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, %v; want %s", c.in, got, err, c.want)
		}
	}
	if _, err := s.expand("{0..${big}}"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a hundred million tokens: %v", err)
	}
}

// protoBytes writes a field of bytes.
func protoBytes(num int, data string) string {
	return string([]byte{byte(num<<3 | 2), byte(len(data))}) + data
}

func TestBadFolders(t *testing.T) {
	const conf = `{"tokenizer_class":"XLMRobertaTokenizer"}`
	piece := func(text string, kind int) string {
		return protoBytes(1, protoBytes(1, text)+"\x18"+string([]byte{byte(kind)}))
	}
	unk := piece("<unk>", pieceUnknown)
	for _, c := range []struct {
		name  string
		files heldFiles
		want  error
		says  string
	}{
		{"nothing", heldFiles{}, ErrNoTokenizer, "tokenizer.json"},
		{"empty pieces", heldFiles{"tokenizer.model": ""}, ErrInvalid, "no pieces"},
		{"broken pieces", heldFiles{"tokenizer.model": unk + "\x0a\xff\xff\xff\xff\x0f"}, ErrInvalid, "byte"},
		{"no unknown", heldFiles{"tokenizer.model": piece("a", 1)}, ErrInvalid, "unknown"},
		{"two unknown", heldFiles{"tokenizer.model": unk + unk}, ErrInvalid, "unknown"},
		{"twice", heldFiles{"tokenizer.model": unk + piece("a", 1) + piece("a", 1)}, ErrInvalid, "twice"},
		{"bad kind", heldFiles{"tokenizer.model": unk + piece("a", 9)}, ErrInvalid, "type 9"},
		{"no bytes", heldFiles{"tokenizer.model": unk + protoBytes(2, "\x98\x02\x01")}, ErrInvalid, "256"},
		{"bad charsmap", heldFiles{"tokenizer.model": unk + protoBytes(3, protoBytes(2, "\xff\xff\xff\xff!"))}, ErrInvalid, "charsmap"},
		{"a denormalizer", heldFiles{"tokenizer.model": unk + protoBytes(5, protoBytes(2, "x"))}, ErrUnsupported, "denormalizer"},
		{"a model of kind 7", heldFiles{"tokenizer.model": unk + protoBytes(2, "\x18\x07")}, ErrUnsupported, "type 7"},
		{"bad class file", heldFiles{"tokenizer.model": unk, "config.json": "["}, ErrInvalid, "config.json"},
		{"bad added id", heldFiles{"tokenizer.model": unk, "added_tokens.json": `{"x":4000000000}`}, ErrInvalid, "added_tokens.json"},
		{"far added id", heldFiles{"tokenizer.model": unk, "added_tokens.json": `{"x":4000000}`}, ErrInvalid, "4000000"},
		{"bad added key", heldFiles{"tokenizer.model": unk, "tokenizer_config.json": `{"added_tokens_decoder":{"x":{"content":"y"}}}`}, ErrInvalid, "added_tokens_decoder"},
		{"no numbers", heldFiles{"source.spm": unk, "tokenizer_config.json": `{"tokenizer_class":"MarianTokenizer"}`}, ErrNoTokenizer, "vocab.json"},
		{"far numbers", heldFiles{"source.spm": unk, "vocab.json": `{"a":4000000}`, "tokenizer_config.json": `{"tokenizer_class":"MarianTokenizer"}`}, ErrInvalid, "4000000"},
		{"many extra", heldFiles{"spiece.model": unk, "tokenizer_config.json": `{"tokenizer_class":"T5Tokenizer","extra_ids":1000000000}`}, ErrInvalid, "more than"},
		{"no base64", heldFiles{"cl100k_base.tiktoken": "!!! 1\n"}, ErrInvalid, "line 1"},
		{"no rank", heldFiles{"cl100k_base.tiktoken": "YQ==\n"}, ErrInvalid, "line 1"},
		{"far rank", heldFiles{"cl100k_base.tiktoken": "YQ== 2147483647\n"}, ErrInvalid, "rank"},
		{"sparse ranks", heldFiles{"cl100k_base.tiktoken": "YQ== 4000000\n"}, ErrInvalid, "4000000"},
		{"long token", heldFiles{"cl100k_base.tiktoken": strings.Repeat("YWFh", 1000) + " 1\n"}, ErrInvalid, "1024"},
		{"empty ranks", heldFiles{"cl100k_base.tiktoken": "\n"}, ErrInvalid, "empty"},
		{"bad tekken", heldFiles{"tekken.json": `{"config":{"default_vocab_size":5,"default_num_special_tokens":9}}`}, ErrInvalid, "default_vocab_size"},
		{"empty tekken", heldFiles{"tekken.json": `{"config":{"default_vocab_size":15,"default_num_special_tokens":9}}`}, ErrInvalid, "vocab"},
		{"tekken rank", heldFiles{"tekken.json": `{"config":{"default_vocab_size":15,"default_num_special_tokens":2},"vocab":[{"rank":0,"token_bytes":"YQ=="}],"special_tokens":[{"rank":7,"token_str":"x"}]}`}, ErrInvalid, "rank 7"},
		{"empty words", heldFiles{"vocab.txt": ""}, ErrInvalid, "empty"},
		{"no utf-8", heldFiles{"vocab.txt": "a\n\xff\n"}, ErrInvalid, "line 2"},
		{"bad vocab", heldFiles{"vocab.json": `{"a":-1}`}, ErrInvalid, "vocab.json"},
		{"bad merges", heldFiles{"vocab.json": `{"a":0,"b":1}`, "merges.txt": "a b c\n"}, ErrInvalid, "line 1"},
		{"lost merges", heldFiles{"vocab.json": `{"a":0,"b":1}`, "merges.txt": "a b\n"}, ErrInvalid, "whole is no token"},
		{"a class of pieces with words", heldFiles{"vocab.txt": "a\n", "tokenizer_config.json": conf}, ErrUnsupported, "XLMRobertaTokenizer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(c.files)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) || !strings.HasPrefix(fmt.Sprint(err), "tokenizer: ") {
				t.Errorf("%v; want %v that says %q", err, c.want, c.says)
			}
		})
	}
}

// FuzzOpen reads any file under each name.
func FuzzOpen(f *testing.F) {
	names := []string{"tokenizer.model", "vocab.txt", "vocab.json", "merges.txt", "cl100k_base.tiktoken", "tekken.json", "added_tokens.json", "special_tokens_map.json",
		"tokenizer_config.json"}
	files, _ := filepath.Glob("testdata/folders/*/*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if n := slices.Index(names, filepath.Base(file)); n >= 0 && len(data) < 4096 {
			f.Add(uint8(n), string(data))
		}
	}
	f.Add(uint8(0), "\x0a\x07\x0a\x03unk\x18\x02\x0a\x08\x0a\x01a\x15\x00\x00\x80\x3f\x1a\x0a\x12\x08\x04\x00\x00\x00\x00\x00\x00\x00")
	f.Add(uint8(3), "#version: 0.2\na b\nab c\n")
	f.Add(uint8(4), "YQ== 0\nYg== 1\nYWI= 2\n")
	f.Add(uint8(7), `{"bos_token":{"content":"a","lstrip":true},"additional_special_tokens":["x","b"]}`)
	base := heldFiles{"vocab.json": `{"a":0,"b":1,"c":2,"ab":3,"abc":4,"<s>":5}`}
	f.Fuzz(func(t *testing.T, n uint8, data string) {
		if len(data) > 4096 {
			return
		}
		files := heldFiles{names[int(n)%len(names)]: data}
		if names[int(n)%len(names)] != "tokenizer.model" {
			for k, v := range base {
				if _, ok := files[k]; !ok {
					files[k] = v
				}
			}
		}
		tok, err := Open(files)
		if err != nil {
			return
		}
		ids := tok.Encode("<s> Hello, wörld abcabc 123</s>\n", Options{AddSpecial: true, ParseSpecial: true})
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

// FuzzCharsmap reads any charsmap and applies it both ways.
func FuzzCharsmap(f *testing.F) {
	data, err := os.ReadFile("testdata/folders/spm-unigram/tokenizer.model")
	if err != nil {
		f.Fatal(err)
	}
	err = protoFields(data, func(field protoField) error {
		if field.num != 3 {
			return nil
		}
		return protoFields(field.data, func(field protoField) error {
			if field.num == 2 {
				f.Add(field.data, "ｆｕｌｌ e\u0301 ﬁ\u200b\u00a0x")
			}
			return nil
		})
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{4, 0, 0, 0, 0, 0, 0, 0}, "x")
	f.Fuzz(func(t *testing.T, blob []byte, text string) {
		if len(text) > 1000 {
			return
		}
		m, err := parseCharsmap(blob)
		if err != nil || m == nil {
			return
		}
		within(charsmapNormalizer{m}, text, room(text))
		within(&pieceNormalizer{chars: m, prefix: true, merge: true}, text, room(text))
	})
}
