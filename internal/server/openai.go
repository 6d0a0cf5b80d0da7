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
	RepeatPenalty     *float64            `json:"repeat_penalty"` // another name of the same
	PresencePenalty   *float64            `json:"presence_penalty"`
	FrequencyPenalty  *float64            `json:"frequency_penalty"`
	LogitBias         map[string]*float64 `json:"logit_bias"`
	Seed              *int64              `json:"seed"`
	IgnoreEOS         bool                `json:"ignore_eos"`
	StopTokenIDs      []int32             `json:"stop_token_ids"`
	IncludeStop       bool                `json:"include_stop_str_in_output"`
	SkipSpecial       *bool               `json:"skip_special_tokens"`
	Task              string              `json:"task"` // of an encoder-decoder: summarize, translate:en-fr, …
	ResponseFormat    *struct {
		Type string `json:"type"`
	} `json:"response_format"`
	strategies
	beams
	refused
}

// refused are fields that change what an answer is and are not served: a
// client that sends one must be told.
type refused struct {
	Grammar        json.RawMessage `json:"grammar"`
	JSONSchema     json.RawMessage `json:"json_schema"`
	GuidedJSON     json.RawMessage `json:"guided_json"`
	GuidedRegex    json.RawMessage `json:"guided_regex"`
	GuidedChoice   json.RawMessage `json:"guided_choice"`
	GuidedGrammar  json.RawMessage `json:"guided_grammar"`
	Structured     json.RawMessage `json:"structured_outputs"`
	Functions      json.RawMessage `json:"functions"`
	Audio          json.RawMessage `json:"audio"`
	WebSearch      json.RawMessage `json:"web_search_options"`
	PromptLogprobs json.RawMessage `json:"prompt_logprobs"`
	MinTokens      json.RawMessage `json:"min_tokens"`
	Template       json.RawMessage `json:"chat_template"`
}

func (f *refused) check() error {
	for _, x := range []struct {
		name string
		raw  json.RawMessage
	}{{"grammar", f.Grammar}, {"json_schema", f.JSONSchema}, {"guided_json", f.GuidedJSON}, {"guided_regex", f.GuidedRegex},
		{"guided_choice", f.GuidedChoice}, {"guided_grammar", f.GuidedGrammar}, {"structured_outputs", f.Structured}, {"functions", f.Functions},
		{"audio", f.Audio}, {"web_search_options", f.WebSearch}, {"prompt_logprobs", f.PromptLogprobs}, {"min_tokens", f.MinTokens}, {"chat_template", f.Template}} {
		switch string(x.raw) {
		case "", "null", "false", "0", `""`, "[]", "{}":
		default:
			return badRequest(x.name, "%s is not served; leave it out", x.name)
		}
	}
	return nil
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

func (c *common) wantsUsage() bool { return c.StreamOptions != nil && c.StreamOptions.IncludeUsage }

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
func (v *Server) params(c *common, maxTokens *int, maxName string) (p complete.Params, err error) {
	if err := v.known(c.Model); err != nil {
		return p, err
	}
	if err := c.refused.check(); err != nil {
		return p, err
	}
	if f := c.ResponseFormat; f != nil && f.Type != "text" && f.Type != "" {
		return p, badRequest("response_format", "response_format: %.40q is not served yet; only text is", f.Type)
	}
	s := v.s.Defaults()
	for _, f := range []struct {
		dst, src *float64
	}{{&s.Temperature, c.Temperature}, {&s.TopP, c.TopP}, {&s.MinP, c.MinP}, {&s.TypicalP, c.TypicalP},
		{&s.RepetitionPenalty, c.RepeatPenalty}, {&s.RepetitionPenalty, c.RepetitionPenalty},
		{&s.PresencePenalty, c.PresencePenalty}, {&s.FrequencyPenalty, c.FrequencyPenalty}} {
		if f.src != nil {
			*f.dst = *f.src
		}
	}
	if c.TopK != nil {
		s.TopK = *c.TopK
	}
	c.strategies.apply(&s)
	s.Seed = sample.RandomSeed()
	if c.Seed != nil {
		s.Seed = uint64(*c.Seed)
	}
	if s.LogitBias, err = biasOf(c.LogitBias, v.s.Model.Vocab()); err != nil {
		return p, err
	}
	for i, id := range c.StopTokenIDs {
		if id < 0 || int(id) >= v.s.Model.Vocab() {
			return p, badRequest("stop_token_ids", "stop_token_ids: id %d at %d is not a token; ids go from 0 to %d", id, i, v.s.Model.Vocab()-1)
		}
	}
	p = complete.Params{Sample: s, Stop: c.Stop, N: 1, IgnoreEnd: c.IgnoreEOS, StopTokens: c.StopTokenIDs, IncludeStop: c.IncludeStop,
		ShowSpecial: c.SkipSpecial != nil && !*c.SkipSpecial}
	if c.N != nil {
		if p.N = *c.N; p.N < 1 || p.N > maxChoices {
			return p, badRequest("n", "n: %d is outside 1 to %d", p.N, maxChoices)
		}
	}
	if err := c.search(&p); err != nil {
		return p, err
	}
	if err := c.idle(&p.Sample); err != nil {
		return p, err
	}
	if maxTokens != nil {
		if p.Max = *maxTokens; p.Max < 1 {
			return p, badRequest(maxName, "%s: %d is less than 1", maxName, p.Max)
		}
	}
	if err := p.Sample.Validate(); err != nil {
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
	return &apiError{Status: http.StatusNotFound, Message: "the model " + strconv.Quote(cutName(name)) + " is not served here; this server has " + strconv.Quote(v.o.Name),
		Param: "model", Code: "model_not_found"}
}

// fits refuses a prompt that leaves no room for an answer.
func (v *Server) fits(ids []int32, param string) error {
	if limit := v.s.Model.Room(); len(ids) >= limit {
		return &apiError{Status: http.StatusBadRequest, Code: "context_length_exceeded", Param: param,
			Message: "the prompt has " + strconv.Itoa(len(ids)) + " tokens; the context holds " + strconv.Itoa(limit) + " with the answer"}
	}
	if len(ids) == 0 {
		return badRequest(param, "the prompt is empty, and this model begins no text by itself")
	}
	return nil
}

// cutName keeps what a message repeats of a name short.
func cutName(name string) string {
	if n := []rune(name[:min(len(name), 400)]); len(name) > 100 {
		return string(n[:min(len(n), 100)]) + "…"
	}
	return name
}
