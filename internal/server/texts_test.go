package server

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// encoderWords are the vocabulary of writeEncoder's models.
var encoderWords = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "sleeps", "on", "the", "sofa", "where", "paris"}

// masked in place of classes asks writeEncoder for a head for masked words.
const masked = "[MASK]"

// writeEncoder writes a folder of a tiny encoder with random weights; with
// classes it has a head for them, and labels.
func writeEncoder(t *testing.T, classes ...string) string {
	t.Helper()
	dir := t.TempDir()
	const dim, inner, places = 8, 16, 24
	config := map[string]any{"model_type": "bert", "architectures": []string{"BertModel"}, "hidden_size": dim, "num_hidden_layers": 1,
		"num_attention_heads": 2, "intermediate_size": inner, "max_position_embeddings": places, "vocab_size": len(encoderWords), "type_vocab_size": 2, "hidden_act": "gelu"}
	prefix, mask := "", slices.Contains(classes, masked)
	if mask {
		prefix, classes, config["architectures"] = "bert.", nil, []string{"BertForMaskedLM"}
	}
	if len(classes) > 0 {
		prefix = "bert."
		labels := map[string]string{}
		for i, c := range classes {
			labels[string(rune('0'+i))] = c
		}
		config["architectures"], config["id2label"] = []string{"BertForSequenceClassification"}, labels
	}
	vocab := map[string]int{}
	for i, w := range encoderWords {
		vocab[w] = i
	}
	special := func(id string, kind int) map[string]any {
		return map[string]any{"SpecialToken": map[string]any{"id": id, "type_id": kind}}
	}
	text := func(id string, kind int) map[string]any {
		return map[string]any{"Sequence": map[string]any{"id": id, "type_id": kind}}
	}
	added := []map[string]any{}
	for i, w := range encoderWords[:5] {
		added = append(added, map[string]any{"id": i, "content": w, "special": true})
	}
	single := []any{special("[CLS]", 0), text("A", 0), special("[SEP]", 0)}
	writeJSONFile(t, dir, "config.json", config)
	writeJSONFile(t, dir, "tokenizer.json", map[string]any{"version": "1.0", "added_tokens": added, "normalizer": map[string]any{"type": "BertNormalizer", "lowercase": true},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"}, "model": map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocab},
		"post_processor": map[string]any{"type": "TemplateProcessing", "single": single, "pair": append(slices.Clone(single), text("B", 1), special("[SEP]", 1)),
			"special_tokens": map[string]any{"[CLS]": map[string]any{"id": "[CLS]", "ids": []int{2}, "tokens": []string{"[CLS]"}},
				"[SEP]": map[string]any{"id": "[SEP]", "ids": []int{3}, "tokens": []string{"[SEP]"}}}}})
	e := &encoderWriter{t: t, rng: rand.New(rand.NewPCG(1, 2))}
	e.add(prefix+"embeddings.word_embeddings.weight", len(encoderWords), dim)
	e.add(prefix+"embeddings.position_embeddings.weight", places, dim)
	e.add(prefix+"embeddings.token_type_embeddings.weight", 2, dim)
	e.pair(prefix+"embeddings.LayerNorm", dim)
	layer := prefix + "encoder.layer.0."
	for _, n := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
		e.pair(layer+n, dim, dim)
	}
	e.pair(layer+"attention.output.LayerNorm", dim)
	e.pair(layer+"intermediate.dense", inner, dim)
	e.pair(layer+"output.dense", dim, inner)
	e.pair(layer+"output.LayerNorm", dim)
	e.pair(prefix+"pooler.dense", dim, dim)
	if len(classes) > 0 {
		e.pair("classifier", len(classes), dim)
	}
	if mask {
		e.pair("cls.predictions.transform.dense", dim, dim)
		e.pair("cls.predictions.transform.LayerNorm", dim)
		e.add("cls.predictions.bias", len(encoderWords))
	}
	if err := e.w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeJSONFile(t *testing.T, dir, name string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

type encoderWriter struct {
	t   *testing.T
	rng *rand.Rand
	w   safetensors.Writer
}

// pair adds a weight and its bias; norms are near one.
func (e *encoderWriter) pair(name string, shape ...int) {
	e.add(name+".weight", shape...)
	e.add(name+".bias", shape[0])
}

func (e *encoderWriter) add(name string, shape ...int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	var b []byte
	for range n {
		v := e.rng.NormFloat64() * 0.7
		if strings.HasSuffix(name, "LayerNorm.weight") {
			v = 1 + v/10
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	err := e.w.Add(name, quant.F32, tensor.Shape(shape), func(w io.Writer) error { _, err := w.Write(b); return err })
	if err != nil {
		e.t.Fatal(err)
	}
}

// serveTexts serves an output of a folder as the model "tiny".
func serveTexts(t *testing.T, dir, output string) *httptest.Server {
	t.Helper()
	m, err := model.Open(dir, model.Options{Threads: 1, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(); err != nil {
		m.Close()
		t.Fatal(err)
	}
	e, err := embed.New(m)
	if err != nil {
		m.Close()
		t.Fatal(err)
	}
	h := httptest.NewServer(NewTexts(e, Options{Name: "tiny"}))
	t.Cleanup(func() { h.Close(); e.Close() })
	return h
}

// answer posts a body and reads the answer into v; it returns the status and
// the message of an error.
func answer(t *testing.T, h *httptest.Server, path, body string, v any) (int, string) {
	t.Helper()
	resp, err := http.Post(h.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e struct{ Error struct{ Message string } }
	if resp.StatusCode != http.StatusOK {
		if json.Unmarshal(raw, &e) != nil || e.Error.Message == "" {
			t.Fatalf("%s: %s", path, raw)
		}
	} else if d := json.NewDecoder(bytes.NewReader(raw)); d.Decode(v) != nil {
		t.Fatalf("%s: %s", path, raw)
	}
	return resp.StatusCode, e.Error.Message
}

type embeddingsAnswer struct {
	Object, Model string
	Data          []struct {
		Object    string
		Index     int
		Embedding json.RawMessage
	}
	Usage inputUsage
}

func (a *embeddingsAnswer) vector(t *testing.T, i int) (v []float32) {
	t.Helper()
	if i >= len(a.Data) || json.Unmarshal(a.Data[i].Embedding, &v) != nil {
		t.Fatalf("no vector %d in %d", i, len(a.Data))
	}
	return v
}

// TestEmbeddings: vectors of texts, of their ids and in base64 are the same in
// bits, alone and in company.
func TestEmbeddings(t *testing.T) {
	h := serveTexts(t, writeEncoder(t), spec.OutputEmbedding)
	var list, one, ids, packed, short embeddingsAnswer
	for body, a := range map[string]*embeddingsAnswer{
		`{"model": "tiny", "input": ["a cat sleeps", "the dog"]}`:                        &list,
		`{"model": "tiny", "input": "a cat sleeps"}`:                                     &one,
		`{"model": "tiny", "input": [[2, 5, 6, 8, 3]]}`:                                  &ids,
		`{"model": "tiny", "input": "a cat sleeps", "encoding_format": "base64"}`:        &packed,
		`{"model": "tiny", "input": "a cat sleeps", "dimensions": 3, "normalize": true}`: &short,
	} {
		if code, why := answer(t, h, "/v1/embeddings", body, a); code != 200 {
			t.Fatalf("%s: %d %s", body, code, why)
		}
	}
	if list.Object != "list" || list.Model != "tiny" || len(list.Data) != 2 || list.Data[1].Index != 1 || list.Data[0].Object != "embedding" || list.Usage != (inputUsage{9, 9}) {
		t.Errorf("the list is %+v", list)
	}
	want := one.vector(t, 0)
	if len(want) != 8 || !slices.Equal(list.vector(t, 0), want) || !slices.Equal(ids.vector(t, 0), want) || slices.Equal(list.vector(t, 1), want) {
		t.Errorf("vectors differ: %v, %v, %v", want, list.vector(t, 0), ids.vector(t, 0))
	}
	var text string
	if err := json.Unmarshal(packed.Data[0].Embedding, &text); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != 4*len(want) {
		t.Fatalf("%d bytes of base64: %v", len(raw), err)
	}
	for i, x := range want {
		if got := binary.LittleEndian.Uint32(raw[4*i:]); got != math.Float32bits(x) {
			t.Errorf("value %d is %x in base64, want %x", i, got, math.Float32bits(x))
		}
	}
	sum := 0.0
	for _, x := range short.vector(t, 0) {
		sum += float64(x) * float64(x)
	}
	if len(short.vector(t, 0)) != 3 || math.Abs(sum-1) > 1e-5 {
		t.Errorf("three numbers of length 1: %v", short.vector(t, 0))
	}
	long := strings.Repeat("cat ", 40)
	if code, why := answer(t, h, "/v1/embeddings", `{"model": "tiny", "input": "`+long+`"}`, nil); code != 400 || !strings.Contains(why, `"truncate": true`) {
		t.Errorf("a long text: %d %s", code, why)
	}
	if code, _ := answer(t, h, "/v1/embeddings", `{"model": "tiny", "truncate": true, "input": "`+long+`"}`, &one); code != 200 || one.Usage.Total != 24 {
		t.Errorf("a cut text: %d, %+v", code, one.Usage)
	}
	if code, why := answer(t, h, "/v1/classify", `{"model": "sentiment", "input": "a cat"}`, nil); code != 404 || !strings.Contains(why, `"sentiment" is not served here`) {
		t.Errorf("classes of another model: %d %s", code, why)
	}
	if code, why := answer(t, h, "/v1/classify", `{"model": "tiny", "input": "a cat"}`, nil); code != 400 || !strings.Contains(why, "/v1/embeddings") {
		t.Errorf("classes of vectors: %d %s", code, why)
	}
	if code, why := answer(t, h, "/v1/chat/completions", `{"model": "tiny", "messages": []}`, nil); code != 400 || !strings.Contains(why, "/v1/embeddings and /v1/rerank") {
		t.Errorf("a conversation: %d %s", code, why)
	}
}

type rerankAnswer struct {
	Object, Model, ID string
	Results           []struct {
		Index    int
		Score    float64 `json:"relevance_score"`
		Document *struct{ Text string }
	}
	Usage inputUsage
}

// TestRerank: documents are ordered by score, with an encoder's vectors and
// with a cross-encoder; what is asked for is in the answer.
func TestRerank(t *testing.T) {
	docs := []string{"the dog", "a cat sleeps on the sofa", "paris"}
	body := `{"model": "tiny", "query": "where sleeps the cat", "documents": ["the dog", {"text": "a cat sleeps on the sofa"}, "paris"]`
	for _, x := range []struct {
		output string
		h      *httptest.Server
		tokens int
	}{{"vectors", serveTexts(t, writeEncoder(t), spec.OutputEmbedding), 6 + 4 + 8 + 3}, {"scores", serveTexts(t, writeEncoder(t, "relevance"), embed.OutputScores), 3*6 + 2 + 6 + 1 + 3}} {
		var all, top rerankAnswer
		if code, why := answer(t, x.h, "/v1/rerank", body+`, "return_documents": true}`, &all); code != 200 {
			t.Fatalf("%s: %d %s", x.output, code, why)
		}
		if len(all.Results) != 3 || all.Usage.Total != x.tokens || all.Model != "tiny" || all.ID == "" {
			t.Fatalf("%s: %+v", x.output, all)
		}
		for i, r := range all.Results {
			if i > 0 && r.Score > all.Results[i-1].Score || r.Document == nil || r.Document.Text != docs[r.Index] {
				t.Errorf("%s: result %d is %+v", x.output, i, r)
			}
		}
		if code, _ := answer(t, x.h, "/rerank", strings.Replace(body, `"model": "tiny", `, "", 1)+`, "top_n": 1}`, &top); code != 200 || len(top.Results) != 1 ||
			top.Results[0].Index != all.Results[0].Index || top.Results[0].Score != all.Results[0].Score || top.Results[0].Document != nil {
			t.Errorf("%s: the first alone: %d, %+v", x.output, code, top)
		}
	}
}

type classifyAnswer struct {
	Data []struct {
		Index   int
		Label   string
		Classes []classScore
	}
	Usage inputUsage
}

// TestClassify: a classifier's labels come with probabilities, the likeliest
// first, and its other doors lead to that one.
func TestClassify(t *testing.T) {
	h := serveTexts(t, writeEncoder(t, "bad", "so-so", "good"), embed.OutputScores)
	var one, list, pair classifyAnswer
	for body, a := range map[string]*classifyAnswer{
		`{"model": "tiny", "input": "a cat"}`:                               &one,
		`{"model": "tiny", "input": ["the dog", "a cat"], "top_n": 2}`:      &list,
		`{"model": "tiny", "input": ["a cat"], "pair": "sleeps on a sofa"}`: &pair,
	} {
		if code, why := answer(t, h, "/v1/classify", body, a); code != 200 {
			t.Fatalf("%s: %d %s", body, code, why)
		}
	}
	c := one.Data[0]
	if sum := c.Classes[0].Score + c.Classes[1].Score + c.Classes[2].Score; len(c.Classes) != 3 || math.Abs(sum-1) > 1e-9 || c.Label != c.Classes[0].Label ||
		c.Classes[0].Score < c.Classes[1].Score || c.Classes[1].Score < c.Classes[2].Score || !slices.Contains([]string{"bad", "so-so", "good"}, c.Label) {
		t.Errorf("classes %+v", c)
	}
	if len(list.Data) != 2 || len(list.Data[1].Classes) != 2 || list.Data[1].Index != 1 || list.Data[1].Classes[0] != c.Classes[0] || list.Usage.Total != 8 {
		t.Errorf("the list is %+v", list)
	}
	if len(pair.Data) != 1 || pair.Usage.Total != 9 || pair.Data[0].Classes[0] == c.Classes[0] {
		t.Errorf("the pair is %+v", pair)
	}
	for path, body := range map[string]string{
		"/v1/rerank":           `{"model": "tiny", "query": "a", "documents": ["b"]}`,
		"/v1/embeddings":       `{"model": "tiny", "input": "a"}`,
		"/v1/chat/completions": `{"model": "tiny", "messages": []}`,
	} {
		if code, why := answer(t, h, path, body, nil); code != 400 || !strings.Contains(why, "/v1/classify") {
			t.Errorf("%s: %d %s", path, code, why)
		}
	}
	for _, bad := range []string{`{"model": "tiny"}`, `{"model": "tiny", "input": []}`, `{"model": "tiny", "input": "a", "top_n": 0}`, `{"model": "other", "input": "a"}`,
		`{"model": "tiny", "input": null, "pair": "a"}`, `{"model": "tiny", "input": [[1]], "pair": "a"}`, `{"model": "tiny", "input": [[99]]}`} {
		if code, _ := answer(t, h, "/v1/classify", bad, nil); code != 400 && code != 404 {
			t.Errorf("%s: %d", bad, code)
		}
	}
}
