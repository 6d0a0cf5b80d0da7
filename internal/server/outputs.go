package server

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/spec"
)

// product is what a service of texts gives, and where.
type product struct {
	output string // of the model
	one    bool   // only where a row of it is one number
	gives  string
	task   string // of inferflow serve --task
	doors  string // the addresses that answer
}

// products are all of them; of two for an output the first that fits counts.
var products = []product{
	{spec.OutputEmbedding, false, "vectors", "embed", "/v1/embeddings and /v1/rerank"},
	{embed.OutputScores, true, "the relevance of texts", "rerank", "/v1/rerank and /v1/classify"},
	{embed.OutputScores, false, "classes", "classify", "/v1/classify"},
	{embed.OutputLogits, false, "words for masks", "fill-mask", "/v1/fill-mask"},
}

// productOf is what an output is served as; the last where none is known.
func productOf(output string, width int) product {
	for _, p := range products {
		if p.output == output && (!p.one || width == 1) {
			return p
		}
	}
	return products[len(products)-1]
}

// served is what the service of texts gives.
func (v *Server) served() product { return productOf(v.e.Output, v.e.Width()) }

// doors are the addresses that answer for the model.
func (v *Server) doors() string {
	if v.e == nil {
		return "/v1/chat/completions and /v1/completions"
	}
	return v.served().doors
}

// relevance asks texts for any service that can order texts by a query.
const relevance = ""

// texts is the service that gives an output of texts, or why there is none.
func (v *Server) texts(output string) (*embed.Service, error) {
	want := productOf(output, 0)
	if output == relevance {
		want = products[0]
	}
	switch {
	case v.e == nil && (want.task != "embed" || v.s.Encodes()):
		return nil, v.unsupported("%s is served for writing texts and gives no %s; use %s", v.o.Name, want.gives, v.doors())
	case v.e == nil:
		return nil, v.unsupported("%s is served for writing texts; start inferflow serve with --task embed for its embeddings", v.o.Name)
	case output == relevance:
		return v.e, v.ranks()
	case v.e.Output == output:
		return v.e, nil
	case !v.could(output):
		return nil, v.unsupported("%s is served for %s, and the model has no head for %s; use %s", v.o.Name, v.served().gives, want.gives, v.doors())
	}
	return nil, v.unsupported("%s is served for %s and gives no %s; use %s, or start inferflow serve with --task %s", v.o.Name, v.served().gives, want.gives, v.doors(), want.task)
}

// ranks refuses a service that cannot order texts by a query.
func (v *Server) ranks() error {
	switch p := v.served(); {
	case p.output == embed.OutputLogits:
		return v.unsupported("%s is served for %s and gives no relevance; use %s, or start inferflow serve with --task rerank", v.o.Name, p.gives, p.doors)
	case p.output == embed.OutputScores && !p.one:
		return v.unsupported("%s sorts texts into %d classes; a reranker has one score: use %s, or start inferflow serve with --task embed", v.o.Name, v.e.Width(), p.doors)
	}
	return nil
}

// could says that the model has an output beside the one that is served.
func (v *Server) could(output string) bool {
	m := v.e.Model
	switch output {
	case spec.OutputEmbedding: // any rows have a mean
		return true
	case embed.OutputLogits:
		return m.Whole() && slices.Contains(m.Traced.Gives, output)
	}
	return slices.Contains(m.Traced.Gives, output)
}

// begin reads the body of a request about texts into q, whose model is name, and
// finds the service that answers it.
func (v *Server) begin(w http.ResponseWriter, r *http.Request, q any, name *string, output string) (*embed.Service, error) {
	if err := v.readJSON(w, r, q); err != nil {
		return nil, err
	}
	if *name != "" { // before what this model does not give: another was asked for
		if err := v.known(*name); err != nil {
			return nil, err
		}
	}
	e, err := v.texts(output)
	if err != nil {
		return nil, err
	}
	if output == relevance && *name == "" {
		return e, nil // older clients of /rerank name none
	}
	return e, v.known(*name)
}

// maxAnswer bounds the bytes of one answer about texts, which is made whole.
const maxAnswer = 160 << 20

// What parts of an answer take at most, in JSON.
const (
	numberBytes = 16  // a float32 and a comma; in base64 it takes 16/3
	objectBytes = 128 // names, an index and a score of an entry
)

// withinAnswer refuses an answer of too many bytes. what tells what it is made
// of, less what to ask for instead.
func withinAnswer(bytes int, what, less string) error {
	if bytes > maxAnswer {
		return badRequest("input", "input: %s may take %d MiB, more than the %d MiB of one answer; %s", what, bytes>>20, maxAnswer>>20, less)
	}
	return nil
}

// quotedBytes is what a text takes in JSON at most.
func quotedBytes(s string) int { return 6*len(s) + 2 }

// vectorBytes bounds what n vectors take in an answer.
func vectorBytes(n, width int, format string) int {
	if format == "base64" {
		return n * ((4*width+2)/3*4 + objectBytes)
	}
	return n * (numberBytes*width + objectBytes)
}

// manyVectors says what vectors an answer would have.
func manyVectors(n, width int) string { return fmt.Sprintf("%d vectors of %d numbers", n, width) }
