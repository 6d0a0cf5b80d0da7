package server

import (
	"fmt"
	"net/http"

	"github.com/inferflow/inferflow/tokenizer"
)

func (v *Server) health(w http.ResponseWriter, r *http.Request) error {
	if v.drain.Load() {
		return &apiError{Status: http.StatusServiceUnavailable, Message: "the server is shutting down"}
	}
	writeJSON(w, http.StatusOK, map[string]any{"status": "ok"})
	return nil
}

func (v *Server) alive(w http.ResponseWriter, r *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]any{"status": "ok"})
	return nil
}

func (v *Server) about(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprintf(w, "Inferflow %s serves %s.\nOpenAI's API is at /v1, gauges are at /metrics.\n", v.o.Version, v.o.Name)
	return err
}

// tokenizeRequest and detokenizeRequest are the bodies of POST /tokenize and
// /detokenize, as llama.cpp has them.
type tokenizeRequest struct {
	Content    *string `json:"content"`
	AddSpecial bool    `json:"add_special"`
	Parse      *bool   `json:"parse_special"`
}

type detokenizeRequest struct {
	Tokens []int32 `json:"tokens"`
}

func (v *Server) tokenize(w http.ResponseWriter, r *http.Request) error {
	var q tokenizeRequest
	if err := v.readJSON(w, r, &q); err != nil {
		return err
	}
	if q.Content == nil {
		return badRequest("content", "content: a text is required")
	}
	ids, err := v.tok.TryEncode(*q.Content, tokenizer.Options{AddSpecial: q.AddSpecial, ParseSpecial: q.Parse == nil || *q.Parse})
	if err != nil {
		return about("content", err)
	}
	if ids == nil {
		ids = []int32{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"tokens": ids})
	return nil
}

func (v *Server) detokenize(w http.ResponseWriter, r *http.Request) error {
	var q detokenizeRequest
	if err := v.readJSON(w, r, &q); err != nil {
		return err
	}
	for i, id := range q.Tokens {
		if id < 0 || int(id) >= v.tok.Size() {
			return badRequest("tokens", "tokens: id %d at %d is not a token; ids go from 0 to %d", id, i, v.tok.Size()-1)
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"content": v.tok.Decode(q.Tokens, false)})
	return nil
}
