package server

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/spec"
)

// textServer serves the embeddings of a tiny model, one with an infinity in each
// row of its last matrix where it is spoiled.
func textServer(t *testing.T, spoiled bool) *httptest.Server {
	o := modeltest.Options{Story: tale, Context: 64, Edit: func(name string, values []float32) {
		if spoiled && name == "blk.1.ffn_down.weight" {
			for i := 7; i < len(values); i += 8 {
				values[i] = float32(math.Inf(1))
			}
		}
	}}
	m, err := model.Open(modeltest.Write(t, t.TempDir(), o), model.Options{Threads: 1, Output: spec.OutputEmbedding})
	if err == nil {
		err = m.Load()
	}
	if err != nil {
		t.Fatal(err)
	}
	e, err := embed.New(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	h := httptest.NewServer(NewTexts(e, Options{Name: "tiny"}))
	t.Cleanup(h.Close)
	return h
}

func ask(t *testing.T, url, body string) (int, string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(raw)
}

// TestTextsNotFinite: vectors and scores that are no numbers are the server's
// error, with the place where they begin, in every form of the answer.
func TestTextsNotFinite(t *testing.T) {
	h := textServer(t, true)
	for path, bodies := range map[string][]string{
		"/v1/embeddings": {`{"model": "tiny", "input": "a"}`, `{"model": "tiny", "input": ["a", "b"], "encoding_format": "base64"}`, `{"model": "tiny", "input": "a", "normalize": true}`},
		"/v1/rerank":     {`{"model": "tiny", "query": "a", "documents": ["a", "b"]}`},
	} {
		for _, body := range bodies {
			code, got := ask(t, h.URL+path, body)
			if code != 500 || !strings.Contains(got, "not finite") || !strings.Contains(got, "first in layer 1") || !strings.Contains(got, `"server_error"`) || strings.Contains(got, "embed: ") {
				t.Errorf("%s %s gives %d %s", path, body, code, got)
			}
		}
	}
}

// TestTextsRefused: null is no text and no id, and what cannot be tokens enough
// is refused by its bytes.
func TestTextsRefused(t *testing.T) {
	h := textServer(t, false)
	long := strings.Repeat("x", 9000)
	some := strings.Repeat(`"`+strings.Repeat("y", 9000)+`",`, 1900) + `"z"`
	for _, x := range []struct{ path, body, want string }{
		{"embeddings", `"input": ["a", null]`, "input[1] is null"},
		{"embeddings", `"input": [null]`, "input[0] is null"},
		{"embeddings", `"input": [[null]]`, "input[0][0] is null"},
		{"embeddings", `"input": [1, null, 3]`, "input[1] is null"},
		{"embeddings", `"input": [[1], [2, 3, null]]`, "input[1][2] is null"},
		{"embeddings", `"input": [{"a": null}]`, "is expected"},
		{"embeddings", `"input": "` + long + `"`, "9000 bytes"},
		{"embeddings", `"input": ["a", "` + long + `"]`, "text 2 has 9000 bytes"},
		{"embeddings", `"input": [` + some + `]`, "bytes together"},
		{"rerank", `"query": "a", "documents": [null, "b"]`, "documents[0] is neither"},
		{"rerank", `"query": "a", "documents": [{"text": null}]`, "documents[0] is neither"},
		{"rerank", `"query": "` + long + `", "documents": ["a"]`, "9000 bytes"},
		{"rerank", `"query": "a", "documents": [` + some + `]`, "bytes together"},
	} {
		code, got := ask(t, h.URL+"/v1/"+x.path, `{"model": "tiny", `+x.body+`}`)
		if code != 400 || !strings.Contains(got, x.want) {
			t.Errorf("%s %.60s gives %d %.300s, want %s", x.path, x.body, code, got, x.want)
		}
	}
	for _, body := range []string{`"input": ["null", "a\"n", "\\"]`, `"input": "` + long + `", "truncate": true`} {
		if code, got := ask(t, h.URL+"/v1/embeddings", `{"model": "tiny", `+body+`}`); code != 200 || !strings.Contains(got, `"embedding"`) {
			t.Errorf("%.60s gives %d %.300s", body, code, got)
		}
	}
	if code, got := ask(t, h.URL+"/v1/embeddings", fmt.Sprintf(`{"model": %q, "input": "a"}`, strings.Repeat("é", 5000))); code != 404 || len(got) > 500 {
		t.Errorf("a long name gives %d and %d bytes", code, len(got))
	}
}

func TestNull(t *testing.T) {
	for raw, want := range map[string]string{`null`: "", `"n"`: "", `[]`: "", `["n","\\","\"n",null]`: "[3]", `[[1,2],[3,null]]`: "[1][1]", `[{"a":null}]`: "", `[[[[[[[[[null]]]]]]]]]`: "", `[true,null]`: "[1]"} {
		if got := null([]byte(raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// TestPromptNull: a prompt that holds null is refused with its place.
func TestPromptNull(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny"})
	for prompt, want := range map[string]string{`[1, null]`: "prompt[1]", `["a", null]`: "prompt[1]", `[[1], [null]]`: "prompt[1][0]"} {
		if code, got := ask(t, h.URL+"/v1/completions", `{"model": "tiny", "prompt": `+prompt+`}`); code != 400 || !strings.Contains(got, want+" is null") {
			t.Errorf("%s gives %d %s", prompt, code, got)
		}
	}
}

// TestClassifyNull: the same of texts with a pair, and without.
func TestClassifyNull(t *testing.T) {
	h := serveTexts(t, writeEncoder(t, "bad", "good"), embed.OutputScores)
	for _, pair := range []string{"", `, "pair": "dog"`} {
		if code, got := ask(t, h.URL+"/v1/classify", `{"model": "tiny", "input": ["cat", null]`+pair+`}`); code != 400 || !strings.Contains(got, "input[1] is null") {
			t.Errorf("pair %q gives %d %s", pair, code, got)
		}
	}
}

// TestTextsOtherModel: who asks a server of vectors for an answer of another model is
// told of the model first.
func TestTextsOtherModel(t *testing.T) {
	h := textServer(t, false)
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		for body, want := range map[string]string{`{"model": "other", "messages": []}`: "model_not_found", `{"model": "tiny", "messages": []}`: "writes no texts", `{}`: "writes no texts", `[`: "writes no texts"} {
			if _, got := ask(t, h.URL+path, body); !strings.Contains(got, want) {
				t.Errorf("%s %s: %s, want %s", path, body, got, want)
			}
		}
	}
}
