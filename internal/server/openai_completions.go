package server

import (
	"context"
	"encoding/json"
	"errors"
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

// taskOf encodes text as the source of a task, which changes p.
func (v *Server) taskOf(task, text string, p *complete.Params) ([]int32, error) {
	ids, err := v.s.Task(task, text, p)
	if errors.Is(err, complete.ErrTask) {
		err = badRequest("task", "task: %s", plain(err))
	}
	return ids, err
}

// promptOf encodes a text, as the source of a task if one is named.
func (v *Server) promptOf(text, task string, p *complete.Params) (prompt, error) {
	if task != "" {
		ids, err := v.taskOf(task, text, p)
		return prompt{ids: ids, text: text}, err
	}
	ids, err := v.s.Text(text, true)
	if err != nil {
		return prompt{}, err
	}
	x := prompt{ids: ids, text: text}
	if pre := v.s.Tok.Prefix(); len(pre) > 0 && len(pre) <= len(ids) && slices.Equal(pre, ids[:len(pre)]) && !strings.HasPrefix(text, v.s.Tok.Text(pre[0])) {
		x.lead = len(pre)
	}
	return x, nil
}

// readPrompts reads a string, a list of strings, ids or a list of ids.
func readPrompts(raw json.RawMessage) (texts []string, ids [][]int32, err error) {
	var text string
	var one []int32
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil, badRequest("prompt", "prompt: a text or token ids are required")
	case null(raw) != "":
		return nil, nil, badRequest("prompt", "prompt%s is null; a text or a token id is expected", null(raw))
	case json.Unmarshal(raw, &text) == nil:
		return []string{text}, nil, nil
	case json.Unmarshal(raw, &texts) == nil:
		return texts, nil, nil
	case json.Unmarshal(raw, &one) == nil:
		return nil, [][]int32{one}, nil
	case json.Unmarshal(raw, &ids) == nil:
		return nil, ids, nil
	}
	return nil, nil, badRequest("prompt", "prompt: a string, a list of strings, a list of ids or a list of lists of ids is expected, not %s", got(raw))
}

// prompts reads and encodes the request's. A task changes p, alike for all of them.
func (v *Server) prompts(ctx context.Context, q *completionRequest, p *complete.Params) ([]prompt, error) {
	texts, many, err := readPrompts(q.Prompt)
	if err != nil {
		return nil, err
	}
	n := len(texts) + len(many)
	if n == 0 || n > maxPrompts {
		return nil, badRequest("prompt", "prompt: %d prompts; 1 to %d are possible", n, maxPrompts)
	}
	if n*p.N > maxAnswers {
		return nil, badRequest("n", "n: %d prompts times %d answers are more than %d", n, p.N, maxAnswers)
	}
	if q.Task != "" && len(many) > 0 {
		return nil, badRequest("prompt", "prompt: a task takes texts; these are token ids")
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
		x, err := v.promptOf(t, q.Task, p)
		if err != nil {
			return nil, about("prompt", err)
		}
		out = append(out, x)
	}
	for _, ids := range many {
		for i, id := range ids {
			if id < 0 || int(id) >= v.s.Engine.PromptIDs() {
				return nil, badRequest("prompt", "prompt: id %d at %d is not a token; ids go from 0 to %d", id, i, v.s.Engine.PromptIDs()-1)
			}
		}
		out = append(out, prompt{ids: ids, text: v.s.Tok.Decode(ids, false)})
	}
	for _, x := range out {
		if err := v.fits(x.ids, "prompt"); err != nil {
			return nil, err
		}
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
		return a.stream(w)
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
	if q.Echo && v.s.Encodes() {
		return nil, badRequest("echo", "echo: the answer of an encoder-decoder does not go on with its prompt")
	}
	a := &completion{v: v, q: q, p: p, silent: silent, id: v.newID("cmpl-"), created: time.Now().Unix()}
	if a.prompts, err = v.prompts(ctx, q, &a.p); err != nil {
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
	case q.Logprobs != nil && (*q.Logprobs < 0 || *q.Logprobs > 20):
		return badRequest("logprobs", "logprobs: %d is outside 0 to 20", *q.Logprobs)
	}
	if q.Logprobs != nil {
		p.Sample.Logprobs, p.Sample.TopLogprobs = true, *q.Logprobs
		p.PromptLogprobs = q.Echo
	}
	return nil
}
