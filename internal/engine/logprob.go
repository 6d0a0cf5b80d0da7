package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

// promptEvent tells the log-probability of the prompt token after pos. It is
// false where the logits are not finite, which ends the request.
func (e *Engine) promptEvent(t *sched.Task, c *choice, pos int, logits []float32) bool {
	id := t.Tokens[pos+1]
	if id < 0 || int(id) >= len(logits) {
		e.endAll(t, c, fmt.Errorf("engine: %w: prompt token %d at position %d has no logit; the model has %d", ErrRequest, id, pos+1, len(logits)))
		return false
	}
	norm := logSumExp(logits)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		e.endAll(t, c, fmt.Errorf("engine: %w at prompt position %d: first in %s", sample.ErrNonFinite, pos, e.diagnose()))
		return false
	}
	ev := Event{Prompt: true, ID: id, Logprob: float32(float64(logits[id]) - norm)}
	if k := c.stream.Request.Params.TopLogprobs; k > 0 {
		ev.Top = likeliest(logits, k, norm)
	}
	c.stream.push(ev)
	return true
}

// Logprob is the natural logarithm of the probability of id under the softmax
// of logits, summed in float64; NaN for an id that has no logit.
func Logprob(logits []float32, id int32) float64 {
	if id < 0 || int(id) >= len(logits) {
		return math.NaN()
	}
	return float64(logits[id]) - logSumExp(logits)
}

func logSumExp(logits []float32) float64 {
	top := float64(slices.Max(logits))
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

// likeliest lists the k tokens with the largest logits, the largest first, ties
// by lower id.
func likeliest(logits []float32, k int, norm float64) []sample.TokenLogprob {
	top := make([]sample.TokenLogprob, 0, k)
	for i, l := range logits {
		if len(top) == k {
			if l <= top[k-1].Logprob {
				continue
			}
			top = top[:k-1]
		}
		j := len(top)
		top = append(top, sample.TokenLogprob{})
		for ; j > 0 && top[j-1].Logprob < l; j-- {
			top[j] = top[j-1]
		}
		top[j] = sample.TokenLogprob{ID: int32(i), Logprob: l}
	}
	for i := range top {
		top[i].Logprob = float32(float64(top[i].Logprob) - norm)
	}
	return top
}
