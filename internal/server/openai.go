package server

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/sample"
)

// common are the fields that chat and completions share.
type common struct {
	Model             string              `json:"model"`
	MaxTokens         *int                `json:"max_tokens"`
	N                 *int                `json:"n"`
	Stop              stopList            `json:"stop"`
	Stream            bool                `json:"stream"`
	StreamOptions     *streamOptions      `json:"stream_options"`
	Temperature       *float64            `json:"temperature"`
	TopP              *float64            `json:"top_p"`
	TopK              *int                `json:"top_k"`
	MinP              *float64            `json:"min_p"`
	TypicalP          *float64            `json:"typical_p"`
	RepetitionPenalty *float64            `json:"repetition_penalty"`
	PresencePenalty   *float64            `json:"presence_penalty"`
	FrequencyPenalty  *float64            `json:"frequency_penalty"`
	LogitBias         map[string]*float64 `json:"logit_bias"`
	Seed              *int64              `json:"seed"`
	IgnoreEOS         bool                `json:"ignore_eos"`
	StopTokenIDs      []int32             `json:"stop_token_ids"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// stopList is a string or a list of strings.
type stopList []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *stopList) UnmarshalJSON(b []byte) error {
	var one string
	if string(b) == "null" {
		return nil
	}
	if json.Unmarshal(b, &one) == nil {
		*s = stopList{one}
		return nil
	}
	var many []string
	if json.Unmarshal(b, &many) != nil {
		return badRequest("stop", "stop: a string or a list of strings is expected")
	}
	*s = many
	return nil
}

// maxChoices bounds n of one request.
const maxChoices = 128

// params merges the request over the model's defaults and checks it.
func (v *Server) params(c *common, maxTokens *int) (p complete.Params, err error) {
	if err := v.known(c.Model); err != nil {
		return p, err
	}
	s := v.s.Defaults()
	for _, f := range []struct {
		dst, src *float64
	}{{&s.Temperature, c.Temperature}, {&s.TopP, c.TopP}, {&s.MinP, c.MinP}, {&s.TypicalP, c.TypicalP},
		{&s.RepetitionPenalty, c.RepetitionPenalty}, {&s.PresencePenalty, c.PresencePenalty}, {&s.FrequencyPenalty, c.FrequencyPenalty}} {
		if f.src != nil {
			*f.dst = *f.src
		}
	}
	if c.TopK != nil {
		s.TopK = *c.TopK
	}
	s.Seed = sample.RandomSeed()
	if c.Seed != nil {
		s.Seed = uint64(*c.Seed)
	}
	if s.LogitBias, err = biasOf(c.LogitBias, v.s.Model.Vocab()); err != nil {
		return p, err
	}
	p = complete.Params{Sample: s, Stop: c.Stop, N: 1, IgnoreEnd: c.IgnoreEOS, StopTokens: c.StopTokenIDs}
	if c.N != nil {
		if p.N = *c.N; p.N < 1 || p.N > maxChoices {
			return p, badRequest("n", "n: %d is outside 1 to %d", p.N, maxChoices)
		}
	}
	if maxTokens != nil {
		if p.Max = *maxTokens; p.Max < 1 {
			return p, badRequest("max_tokens", "max_tokens: %d is less than 1", p.Max)
		}
	}
	if err := s.Validate(); err != nil {
		return p, err
	}
	if c.StreamOptions != nil && !c.Stream {
		return p, badRequest("stream_options", "stream_options is only possible with stream")
	}
	return p, nil
}

func biasOf(in map[string]*float64, vocab int) (map[int32]float32, error) {
	var out map[int32]float32
	for k, x := range in {
		id, err := strconv.ParseInt(k, 10, 32)
		if err != nil || id < 0 || int(id) >= vocab {
			return nil, badRequest("logit_bias", "logit_bias: %q is not a token id from 0 to %d", k, vocab-1)
		}
		if x == nil || math.Abs(*x) > 100 {
			return nil, badRequest("logit_bias", "logit_bias: the value for %s is not a number from -100 to 100", k)
		}
		if out == nil {
			out = map[int32]float32{}
		}
		out[int32(id)] = float32(*x)
	}
	return out, nil
}

// known refuses a model that is not served here.
func (v *Server) known(name string) error {
	if name == "" {
		return badRequest("model", "model: the name of a model is required; this server has %q", v.o.Name)
	}
	if name == v.o.Name {
		return nil
	}
	for _, a := range v.o.Aliases {
		if a == name {
			return nil
		}
	}
	return &apiError{Status: http.StatusNotFound, Message: "the model " + strconv.Quote(name) + " is not served here; this server has " + strconv.Quote(v.o.Name),
		Param: "model", Code: "model_not_found"}
}

// fits refuses a prompt that leaves no room for an answer.
func (v *Server) fits(ids []int32) error {
	if limit := v.s.Model.Limits.Tokens; len(ids) >= limit {
		return &apiError{Status: http.StatusBadRequest, Code: "context_length_exceeded", Param: "messages",
			Message: "the prompt has " + strconv.Itoa(len(ids)) + " tokens; the context holds " + strconv.Itoa(limit) + " with the answer"}
	}
	if len(ids) == 0 {
		return badRequest("prompt", "the prompt is empty, and this model begins no text by itself")
	}
	return nil
}

// usage counts tokens.
type usage struct {
	Prompt     int         `json:"prompt_tokens"`
	Completion int         `json:"completion_tokens"`
	Total      int         `json:"total_tokens"`
	Details    promptUsage `json:"prompt_tokens_details"`
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
	return modelInfo{id, "model", v.s.Created.Unix(), "inferflow", v.s.Model.Limits.Tokens}
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
	if err := v.known(id); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, v.info(id))
	return nil
}

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
