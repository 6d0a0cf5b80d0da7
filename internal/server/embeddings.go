package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/spec"
)

// NewTexts makes the handler for a model that makes vectors or scores of texts
// and writes none: /v1/embeddings, /v1/rerank, /v1/classify and what every server has.
func NewTexts(e *embed.Service, o Options) *Server {
	v := &Server{e: e, tok: e.Tok, created: e.Created, tokens: e.MaxTokens()}
	v.start(o, e.Model.Name)
	return v
}

// writes is a handler of a model that writes texts.
func (v *Server) writes(h func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if v.s != nil {
			return h(w, r)
		}
		raw, err := v.body(w, r)
		if err != nil {
			return err
		}
		var q struct {
			Model string `json:"model"`
		}
		if decode(raw, &q) == nil && q.Model != "" { // before what this model does not give: another was asked for
			if err := v.known(q.Model); err != nil {
				return err
			}
		}
		return v.unsupported("%s writes no texts, it reads them; use %s", v.o.Name, v.doors())
	}
}

func (v *Server) unsupported(format string, a ...any) error {
	return &apiError{Status: http.StatusBadRequest, Code: "unsupported_model", Param: "model", Message: fmt.Sprintf(format, a...)}
}

// embeddingsRequest is the body of POST /v1/embeddings. Input is a string, a
// list of them, token ids or a list of such lists.
type embeddingsRequest struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	Format     string          `json:"encoding_format"`
	Dimensions *int            `json:"dimensions"`
	// Not of the protocol:
	Truncate  bool   `json:"truncate"`
	Prompt    string `json:"prompt_name"`
	Normalize *bool  `json:"normalize"`
}

// maxInputs bounds the texts of one request, as OpenAI's API does.
const maxInputs = 2048

// maxTextBytes bounds the bytes of all texts of one request, whose tokens are
// found before the first is computed.
const maxTextBytes = 16 << 20

func within(param string, total int) error {
	if total > maxTextBytes {
		return badRequest(param, "%s: the texts have %d bytes together, at most %d are taken at once", param, total, maxTextBytes)
	}
	return nil
}

// oneOrMany reads a string, or a list of 1 to maxInputs strings without a null.
func oneOrMany(raw json.RawMessage) (texts []string, ok bool) {
	if string(raw) == "null" || null(raw) != "" { // JSON's null fits a string
		return nil, false
	}
	if one := ""; json.Unmarshal(raw, &one) == nil {
		return []string{one}, true
	}
	return texts, json.Unmarshal(raw, &texts) == nil && len(texts) > 0 && len(texts) <= maxInputs
}

type embeddingData struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

type inputUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

func (v *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	var q embeddingsRequest
	e, err := v.begin(w, r, &q, &q.Model, spec.OutputEmbedding)
	if err != nil {
		return err
	}
	if q.Format != "" && q.Format != "float" && q.Format != "base64" {
		return badRequest("encoding_format", "encoding_format: %.40q is neither \"float\" nor \"base64\"", q.Format)
	}
	o := embed.Options{Prompt: q.Prompt, Truncate: q.Truncate}
	if q.Normalize != nil {
		o.Normalize, o.Unscaled = *q.Normalize, !*q.Normalize
	}
	width := e.Width()
	if q.Dimensions != nil {
		if o.Dimensions = *q.Dimensions; o.Dimensions < 1 || o.Dimensions > width {
			return badRequest("dimensions", "dimensions: %d is outside 1 to %d", o.Dimensions, width)
		}
		width = o.Dimensions
	}
	texts, err := v.inputs(e, q.Input, o)
	if err != nil {
		return textError(err, "input")
	}
	if err := withinAnswer(vectorBytes(len(texts), width, q.Format), manyVectors(len(texts), width), "send fewer texts, ask for fewer dimensions or for base64"); err != nil {
		return err
	}
	vectors, err := e.Vectors(r.Context(), texts, o)
	if err != nil {
		return textError(err, "input")
	}
	data, used := make([]embeddingData, len(vectors)), inputUsage{}
	for i, x := range vectors {
		data[i] = embeddingData{"embedding", i, any(x)}
		if q.Format == "base64" {
			data[i].Embedding = inBase64(x)
		}
		used.Prompt += len(texts[i].IDs)
	}
	used.Total = used.Prompt
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "model": q.Model, "data": data, "usage": used})
	return nil
}

// inBase64 is the little-endian float32 of a vector.
func inBase64(x []float32) string {
	b := make([]byte, 0, 4*len(x))
	for _, f := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// inputs reads the input of a request.
func (v *Server) inputs(e *embed.Service, raw json.RawMessage, o embed.Options) ([]embed.Text, error) {
	var one string
	var many []string
	var ids []int32
	var lists [][]int32
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, badRequest("input", "input: a string, a list of strings or of token ids is required")
	case null(raw) != "":
		return nil, badRequest("input", "input%s is null; a text or a token id is expected", null(raw))
	case json.Unmarshal(raw, &one) == nil:
		return e.Encode([]string{one}, o)
	case json.Unmarshal(raw, &many) == nil && len(many) > 0:
		if len(many) > maxInputs {
			return nil, badRequest("input", "input: %d texts, at most %d are taken at once", len(many), maxInputs)
		}
		total := 0
		for _, t := range many {
			total += len(t)
		}
		if err := within("input", total); err != nil {
			return nil, err
		}
		return e.Encode(many, o)
	case json.Unmarshal(raw, &ids) == nil && len(ids) > 0:
		lists = [][]int32{ids}
	case json.Unmarshal(raw, &lists) == nil && len(lists) > 0:
		if len(lists) > maxInputs {
			return nil, badRequest("input", "input: %d texts, at most %d are taken at once", len(lists), maxInputs)
		}
	default:
		return nil, badRequest("input", "input: a string, a list of strings or of token ids is expected, not %s", got(raw))
	}
	texts := make([]embed.Text, len(lists))
	for i, l := range lists {
		texts[i].IDs = l
		if n := e.MaxTokens(); o.Truncate && len(l) > n {
			texts[i].IDs, texts[i].Cut = l[:n], len(l)-n
		}
	}
	return texts, nil
}

const truncateHint = `; "truncate": true cuts texts`

// textError finds status and words for an error of package embed.
func textError(err error, param string) error {
	var e *apiError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, embed.ErrTooLong):
		return &apiError{Status: http.StatusBadRequest, Code: "context_length_exceeded", Param: param,
			Message: after(plain(err), embed.ErrTooLong) + truncateHint}
	case errors.Is(err, embed.ErrRequest):
		return badRequest(param, "%s", after(plain(err), embed.ErrRequest))
	case errors.Is(err, embed.ErrOutput):
		return &apiError{Status: http.StatusBadRequest, Code: "unsupported_model", Param: "model", Message: after(plain(err), embed.ErrOutput)}
	case errors.Is(err, embed.ErrClosed):
		return &apiError{Status: http.StatusServiceUnavailable, Message: "the server is shutting down"}
	}
	return err
}

// rerankRequest is the body of POST /v1/rerank, as hosted rerankers have it.
type rerankRequest struct {
	Model     string            `json:"model"`
	Query     *string           `json:"query"`
	Documents []json.RawMessage `json:"documents"`
	Top       *int              `json:"top_n"`
	Return    *bool             `json:"return_documents"`
	Truncate  *bool             `json:"truncate"`
}

type rerankResult struct {
	Index    int            `json:"index"`
	Score    float64        `json:"relevance_score"`
	Document map[string]any `json:"document,omitempty"`
}

func (v *Server) rerank(w http.ResponseWriter, r *http.Request) error {
	var q rerankRequest
	e, err := v.begin(w, r, &q, &q.Model, relevance)
	if err != nil {
		return err
	}
	docs, err := q.texts()
	if err != nil {
		return err
	}
	ranked, tokens, err := e.Rank(r.Context(), *q.Query, docs, embed.Options{Truncate: q.Truncate != nil && *q.Truncate})
	if err != nil {
		return textError(err, "documents")
	}
	if q.Top != nil {
		ranked = ranked[:min(*q.Top, len(ranked))]
	}
	results := make([]rerankResult, len(ranked))
	for i, x := range ranked {
		results[i] = rerankResult{Index: x.Index, Score: x.Score}
		if q.Return != nil && *q.Return {
			results[i].Document = map[string]any{"text": docs[x.Index]}
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": v.newID("rerank-"), "object": "list", "model": v.o.Name, "results": results,
		"usage": inputUsage{tokens, tokens}})
	return nil
}

// texts checks the request; a document is a text or an object with one.
func (q *rerankRequest) texts() ([]string, error) {
	switch {
	case q.Query == nil:
		return nil, badRequest("query", "query: a text is required")
	case len(q.Documents) == 0:
		return nil, badRequest("documents", "documents: a list of texts is required, not empty")
	case len(q.Documents) > maxInputs:
		return nil, badRequest("documents", "documents: %d texts, at most %d are taken at once", len(q.Documents), maxInputs)
	case q.Top != nil && *q.Top < 1:
		return nil, badRequest("top_n", "top_n: %d is less than 1", *q.Top)
	}
	docs, total := make([]string, len(q.Documents)), len(*q.Query)*len(q.Documents) // a cross-encoder reads the query with each
	for i, raw := range q.Documents {
		var o struct {
			Text *string `json:"text"`
		}
		if string(raw) == "null" || json.Unmarshal(raw, &docs[i]) != nil {
			if json.Unmarshal(raw, &o) != nil || o.Text == nil {
				return nil, badRequest("documents", "documents[%d] is neither a text nor an object with a text", i)
			}
			docs[i] = *o.Text
		}
		total += len(docs[i])
	}
	return docs, within("documents", total)
}

// textMetrics writes the gauges of a service of texts.
func (v *Server) textMetrics(one func(name, kind, help string, x any)) {
	st := v.e.Stats()
	one("requests_waiting", "gauge", "Texts that wait for a batch.", st.Waiting)
	one("texts_total", "counter", "Texts that were computed.", st.Texts)
	one("prompt_tokens_total", "counter", "Tokens of texts that were computed.", st.Tokens)
	one("steps_total", "counter", "Batches computed.", st.Batches)
	one("step_seconds_total", "counter", "Time spent in computing batches.", st.Seconds)
}
