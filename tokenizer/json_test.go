package tokenizer

import (
	"bufio"
	"encoding/json"
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
	s := bufio.NewScanner(f)
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
			if got := tok.Decode(row.IDs, skip); got != want {
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
