package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type goldenRow struct {
	Text    string  `json:"text"`
	IDs     []int32 `json:"ids"`
	Special []int32 `json:"special"`
	Decoded string  `json:"decoded"`
	Skipped string  `json:"skipped"`
}

func readGolden(t testing.TB, name string) (rows []goldenRow) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var row goldenRow
		if err := json.Unmarshal(s.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func checkGolden(t *testing.T, tok *Tokenizer, rows []goldenRow) {
	t.Helper()
	bad := 0
	for _, row := range rows {
		if bad > 8 {
			t.Fatal("and more")
		}
		if got := tok.Encode(row.Text, Options{ParseSpecial: true}); !slices.Equal(got, row.IDs) {
			t.Errorf("%q:\n got %v\nwant %v\n%s", row.Text, got, row.IDs, pieces(tok, got, row.IDs))
			bad++
		}
		if got := tok.Encode(row.Text, Options{ParseSpecial: true, AddSpecial: true}); !slices.Equal(got, row.Special) {
			t.Errorf("%q with special tokens:\n got %v\nwant %v", row.Text, got, row.Special)
			bad++
		}
		for skip, want := range map[bool]string{false: row.Decoded, true: row.Skipped} {
			if got := tok.Decode(row.IDs, skip); got != want && !hasNormalized(tok, row.IDs) {
				t.Errorf("%v (skip %t) decodes to\n     %q\nwant %q", row.IDs, skip, got, want)
				bad++
			}
			if got := stream(tok, row.IDs, skip); got != tok.Decode(row.IDs, skip) {
				t.Errorf("%v (skip %t) streams as\n     %q\nwant %q", row.IDs, skip, got, want)
				bad++
			}
		}
	}
}

// sameSum compares ids of a model whose scores the test's file has to six digits: ways whose sums agree that far are equal.
func sameSum(tok *Tokenizer, got, want []int32) bool {
	m, ok := tok.model.(*unigram)
	if !ok || len(got) != len(want) {
		return slices.Equal(got, want)
	}
	sum := 0.0
	for i := range got {
		sum += m.scores[got[i]] - m.scores[want[i]]
	}
	return math.Abs(sum) < 1e-3 && tok.Decode(got, false) == tok.Decode(want, false)
}

// hasNormalized reports whether an added token that was looked for in normalized text is among ids. The library decodes such a token as its normalized
// form since version 0.23 and as written before; this package decodes it as written.
func hasNormalized(tok *Tokenizer, ids []int32) bool {
	return tok.norm != nil && slices.ContainsFunc(tok.added.list, func(a addedToken) bool { return a.normalized && slices.Contains(ids, a.id) })
}

func stream(tok *Tokenizer, ids []int32, skip bool) string {
	var b strings.Builder
	d := tok.NewDecoder(skip)
	for _, id := range ids {
		b.WriteString(d.Next(id))
	}
	b.WriteString(d.Flush())
	return b.String()
}

// TestReferenceJSON compares with what Hugging Face's library says of real files.
func TestReferenceJSON(t *testing.T) {
	dir := testdata(t, "tok")
	files, _ := filepath.Glob(filepath.Join(dir, "*", "package", "models", "tokenizer.json"))
	if len(files) == 0 {
		t.Skip("no tokenizer.json in " + dir)
	}
	for _, file := range files {
		t.Run(strings.Split(strings.TrimPrefix(file, dir), string(filepath.Separator))[1], func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tok, err := FromJSON(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, tok, readGolden(t, filepath.Join(filepath.Dir(file), "golden.jsonl")))
		})
	}
}

// TestSmallJSON compares small tokenizers of every kind, which testdata/small.py trains, with Hugging Face's library.
func TestSmallJSON(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("testdata", "small", "*.golden.jsonl.gz"))
	for _, golden := range files {
		name := strings.TrimSuffix(golden, ".golden.jsonl.gz")
		if strings.HasPrefix(filepath.Base(name), "spm-") {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			tok, err := FromJSON(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, tok, readGolden(t, golden))
		})
	}
}

// TestSmallSentencePiece compares the GGUF form of small SentencePiece models with that library.
func TestSmallSentencePiece(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("testdata", "small", "spm-*.meta.json"))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			tok, err := FromGGUF(metaFromJSON(t, file))
			if err != nil {
				t.Fatal(err)
			}
			bad := 0
			for _, row := range readGolden(t, strings.TrimSuffix(file, ".meta.json")+".golden.jsonl.gz") {
				got := tok.Encode(row.Text, Options{})
				if !sameSum(tok, got, row.IDs) {
					t.Errorf("%q:\n got %v\nwant %v\n%s", row.Text, got, row.IDs, pieces(tok, got, row.IDs))
					if bad++; bad > 8 {
						t.Fatal("and more")
					}
				}
			}
		})
	}
}

// metaFromJSON reads metadata as testdata/small.py writes it.
func metaFromJSON(t testing.TB, file string) fakeMeta {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	meta := fakeMeta{}
	for key, value := range values {
		switch v := value.(type) {
		case float64:
			meta[key] = uint64(int64(v))
		case []any:
			meta[key] = typedArray(v, strings.HasSuffix(key, "scores"))
		default:
			meta[key] = v
		}
	}
	return meta
}

func typedArray(list []any, floats bool) any {
	var texts []string
	var ints []int64
	var numbers []float64
	for _, x := range list {
		switch x := x.(type) {
		case string:
			texts = append(texts, x)
		case float64:
			ints = append(ints, int64(x))
			numbers = append(numbers, x)
		}
	}
	switch {
	case floats:
		return numbers
	case texts != nil:
		return texts
	}
	return ints
}
