package server

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/inferflow/inferflow/internal/complete"
)

// usage counts tokens.
type usage struct {
	Prompt     int         `json:"prompt_tokens"`
	Completion int         `json:"completion_tokens"`
	Total      int         `json:"total_tokens"`
	Details    promptUsage `json:"prompt_tokens_details"`
	Answer     answerUsage `json:"completion_tokens_details"`
}

type answerUsage struct {
	Reasoning int `json:"reasoning_tokens"`
}

type promptUsage struct {
	Cached int `json:"cached_tokens"`
}

func usageOf(prompt, answer int) *usage {
	return &usage{Prompt: prompt, Completion: answer, Total: prompt + answer}
}

type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Context int    `json:"max_model_len"`
}

func (v *Server) info(id string) modelInfo {
	return modelInfo{id, "model", v.created.Unix(), "inferflow", v.tokens}
}

func (v *Server) models(w http.ResponseWriter, r *http.Request) error {
	list := []modelInfo{v.info(v.o.Name)}
	for _, a := range v.o.Aliases {
		list = append(list, v.info(a))
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
	return nil
}

func (v *Server) model(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if id == "" {
		return v.models(w, r)
	}
	if err := v.known(id); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, v.info(id))
	return nil
}

// noUsage stands in the chunks before the one that tells the usage.
var noUsage = json.RawMessage("null")

// newID makes the id of an answer.
func (v *Server) newID(prefix string) string {
	return prefix + strconv.FormatInt(v.born.UnixNano(), 36) + "-" + strconv.FormatUint(v.ids.Add(1), 36)
}

func (v *Server) fingerprint() string { return "inferflow-" + v.o.Version }

// logprob is one token with its log-probability, as chat gives it.
type logprob struct {
	Token   string    `json:"token"`
	Logprob float64   `json:"logprob"`
	Bytes   []int     `json:"bytes"`
	Top     []logprob `json:"top_logprobs,omitempty"`
}

func (v *Server) logprob(id int32, lp float32) logprob {
	raw := v.s.Tok.TokenBytes(id)
	b := make([]int, len(raw))
	for i, x := range raw {
		b[i] = int(x)
	}
	return logprob{Token: string(raw), Logprob: finite(lp), Bytes: b}
}

// finite keeps JSON valid: a probability of 0 has no finite logarithm.
func finite(x float32) float64 {
	if math.IsInf(float64(x), -1) || math.IsNaN(float64(x)) {
		return -9999
	}
	return float64(x)
}

func (v *Server) logprobOf(c complete.Chunk, top int) logprob {
	l := v.logprob(c.ID, c.Logprob)
	l.Top = []logprob{}
	for _, t := range c.Top[:min(top, len(c.Top))] {
		l.Top = append(l.Top, v.logprob(t.ID, t.Logprob))
	}
	return l
}
