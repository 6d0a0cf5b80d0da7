package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/spec"
)

// TestAnswerBytes: what the bounds say of parts of an answer is no less than
// they take.
func TestAnswerBytes(t *testing.T) {
	row := make([]float32, 100)
	for i := range row {
		row[i] = -1.17549435e-38
	}
	size := func(x any) int {
		b, err := encode(x)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	for format, x := range map[string]any{"": row, "float": row, "base64": inBase64(row)} {
		if got, most := size(embeddingData{"embedding", maxInputs, x}), vectorBytes(1, len(row), format); got > most || most > 2*got {
			t.Errorf("%q: %d bytes, the bound is %d", format, got, most)
		}
	}
	for _, text := range []string{"", "word", strings.Repeat("\x00", 50), "äöü\u2028<"} {
		filled := [][]embed.Word{{{ID: 1 << 30, Text: text, Score: 1.2345678901234567e-300}}}
		if got, most := size(words(filled)), filledBytes(filled); got > most {
			t.Errorf("%q: %d bytes, the bound is %d", text, got, most)
		}
		if got, most := size(classScore{text, 1.2345678901234567e-300}), quotedBytes(text)+objectBytes; got > most {
			t.Errorf("%q: %d bytes, the bound is %d", text, got, most)
		}
	}
	if withinAnswer(maxAnswer, "", "") != nil {
		t.Error("the bound itself is refused")
	}
	err := withinAnswer(vectorBytes(maxInputs, 1<<14, ""), manyVectors(maxInputs, 1<<14), "send fewer texts")
	if err == nil || err.Error() != "input: 2048 vectors of 16384 numbers may take 512 MiB, more than the 160 MiB of one answer; send fewer texts" {
		t.Error(err)
	}
	if withinAnswer(vectorBytes(maxInputs, 4096, "float"), "", "") != nil {
		t.Error("as many texts as are taken at once, of a large model, are refused")
	}
}

// TestProducts: every output that is served has a place in the table, and each
// address of texts stands in it.
func TestProducts(t *testing.T) {
	all := ""
	for _, p := range products {
		all += p.doors + " "
		if p.gives == "" || p.task == "" {
			t.Errorf("%+v", p)
		}
	}
	for _, path := range []string{"/v1/embeddings", "/v1/rerank", "/v1/classify", "/v1/fill-mask"} {
		if !strings.Contains(all, path) {
			t.Errorf("%s answers for nothing", path)
		}
	}
	for output, gives := range map[string][2]string{spec.OutputEmbedding: {"vectors", "vectors"}, embed.OutputScores: {"the relevance of texts", "classes"}, embed.OutputLogits: {"words for masks", "words for masks"}} {
		if productOf(output, 1).gives != gives[0] || productOf(output, 3).gives != gives[1] {
			t.Errorf("%s: %v, %v", output, productOf(output, 1), productOf(output, 3))
		}
	}
}

// TestLongLabels: an answer whose labels take too much is refused before it is computed.
func TestLongLabels(t *testing.T) {
	h := serveTexts(t, writeEncoder(t, "good", strings.Repeat("x", 1<<16)), embed.OutputScores)
	code, got := ask(t, h.URL+"/v1/classify", `{"model": "tiny", "input": ["a", "cat"]}`)
	if code != 200 {
		t.Fatalf("%d %.200s", code, got)
	}
	many, _ := json.Marshal(map[string]any{"model": "tiny", "input": strings.Split(strings.Repeat("a,", 1000)+"a", ",")})
	if code, got = ask(t, h.URL+"/v1/classify", string(many)); code != 400 || !strings.Contains(got, "of one answer") || !strings.Contains(got, "smaller top_n") {
		t.Errorf("%d %.300s", code, got)
	}
}
