package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/inferflow/inferflow/internal/complete"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	common
	Prompt   json.RawMessage `json:"prompt"`
	Logprobs *int            `json:"logprobs"`
	Echo     bool            `json:"echo"`
	BestOf   *int            `json:"best_of"`
	Suffix   *string         `json:"suffix"`
}

// maxPrompts bounds the prompts of one request, and maxAnswers its answers.
const (
	maxPrompts = 256
	maxAnswers = 256
)

// prompt is one prompt as ids and as echo shows it.
type prompt struct {
	ids  []int32
	text string
	lead int // ids that the vocabulary puts before the text
}

func (v *Server) promptOf(text string) (prompt, error) {
	ids, err := v.s.Text(text, true)
	if err != nil {
		return prompt{}, about("prompt", err)
	}
	p := prompt{ids: ids, text: text}
	if pre := v.s.Tok.Prefix(); len(pre) > 0 && len(pre) <= len(p.ids) && slices.Equal(pre, p.ids[:len(pre)]) && !strings.HasPrefix(text, v.s.Tok.Text(pre[0])) {
		p.lead = len(pre)
	}
	return p, nil
}

// prompts reads a string, a list of strings, ids or a list of ids.
func (v *Server) prompts(ctx context.Context, raw json.RawMessage, each int) ([]prompt, error) {
	var text string
	var texts []string
	var ids []int32
	var many [][]int32
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, badRequest("prompt", "prompt: a text or token ids are required")
	case null(raw) != "":
		return nil, badRequest("prompt", "prompt%s is null; a text or a token id is expected", null(raw))
	case json.Unmarshal(raw, &text) == nil:
		texts = []string{text}
	case json.Unmarshal(raw, &texts) == nil:
	case json.Unmarshal(raw, &ids) == nil:
		texts, many = nil, [][]int32{ids}
	case json.Unmarshal(raw, &many) == nil:
		texts = nil
	default:
		return nil, badRequest("prompt", "prompt: a string, a list of strings, a list of ids or a list of lists of ids is expected")
	}
	n := len(texts) + len(many)
	if n == 0 || n > maxPrompts {
		return nil, badRequest("prompt", "prompt: %d prompts; 1 to %d are possible", n, maxPrompts)
	}
	if n*each > maxAnswers {
		return nil, badRequest("n", "n: %d prompts times %d answers are more than %d", n, each, maxAnswers)
	}
	var out []prompt
	for _, t := range texts {
		err := v.s.Fits(t)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, about("prompt", err)
		}
		p, err := v.promptOf(t)
		if err != nil {
			return nil, err
		}
		if err := v.fits(p.ids, "prompt"); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	for _, ids := range many {
		if err := v.fits(ids, "prompt"); err != nil {
			return nil, err
		}
		for i, id := range ids {
			if id < 0 || int(id) >= v.s.Engine.PromptIDs() {
				return nil, badRequest("prompt", "prompt: id %d at %d is not a token; ids go from 0 to %d", id, i, v.s.Engine.PromptIDs()-1)
			}
		}
		out = append(out, prompt{ids: ids, text: v.s.Tok.Decode(ids, false)})
	}
	return out, nil
}

func (v *Server) completions(w http.ResponseWriter, r *http.Request) error {
	var q completionRequest
	if err := v.readJSON(w, r, &q); err != nil {
		return err
	}
	a, err := v.prepareCompletion(r.Context(), &q)
	if err != nil {
		return err
	}
	for _, x := range a.prompts {
		run, err := v.s.Start(r.Context(), x.ids, a.p)
		if err != nil {
			return err
		}
		defer run.Cancel()
		a.runs = append(a.runs, run)
	}
	if q.Stream {
		a.stream(w)
		return nil
	}
	return a.whole(w)
}

// prepareCompletion checks a request and encodes its prompts.
func (v *Server) prepareCompletion(ctx context.Context, q *completionRequest) (*completion, error) {
	limit := 16 // the API's default
	if q.MaxTokens != nil {
		limit = *q.MaxTokens
	}
	// No new token and the prompt's log-probabilities: one is computed and not told.
	silent := limit == 0 && q.Echo
	if silent {
		limit = 1
	}
	p, err := v.params(&q.common, &limit, "max_tokens")
	if err != nil {
		return nil, err
	}
	if err := q.check(&p); err != nil {
		return nil, err
	}
	if q.Task != "" {
		return nil, badRequest("task", "task: only /v1/chat/completions takes it")
	}
	if q.Echo && v.s.Encodes() {
		return nil, badRequest("echo", "echo: the answer of an encoder-decoder does not go on with its prompt")
	}
	a := &completion{v: v, q: q, p: p, silent: silent, id: v.newID("cmpl-"), created: time.Now().Unix()}
	if a.prompts, err = v.prompts(ctx, q.Prompt, p.N); err != nil {
		return nil, err
	}
	for _, x := range a.prompts {
		a.n += len(x.ids)
	}
	return a, nil
}

func (q *completionRequest) check(p *complete.Params) error {
	switch {
	case q.Suffix != nil && *q.Suffix != "":
		return badRequest("suffix", "suffix: text after the answer is not served")
	case q.BestOf != nil && *q.BestOf != p.N:
		return badRequest("best_of", "best_of: only the value of n (%d) is served", p.N)
	case q.Logprobs != nil && (*q.Logprobs < 0 || *q.Logprobs > 20):
		return badRequest("logprobs", "logprobs: %d is outside 0 to 20", *q.Logprobs)
	}
	if q.Logprobs != nil {
		p.Sample.Logprobs, p.Sample.TopLogprobs = true, *q.Logprobs
		p.PromptLogprobs = q.Echo
	}
	return nil
}
