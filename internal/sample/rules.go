package sample

import (
	"math"
	"slices"
)

// Rules restrict the form of an answer, as the generation settings of
// encoder-decoders do. Lengths and repetitions count the prompt's tokens too.
// A Rules may be shared by samplers; it is not changed.
type Rules struct {
	End            []int32   // the tokens that end an answer
	MinLength      int       // no end token before so many tokens of prompt and answer; 0: none
	NoRepeat       int       // no run of so many tokens a second time; 0: any
	Source         []int32   // another text, and
	NoRepeatSource int       // no run of so many tokens of it; 0: any
	Bad            [][]int32 // sequences that may not be said, none of them empty
	MaxLength      int       // the length at which the answer ends, for Last; 0: none
	Last           []int32   // the only tokens that may be the last one before MaxLength; none: any
}

// apply sets the logits of tokens that may not follow said to −Inf.
func (r *Rules) apply(logits []float32, said []int32) {
	forbid := func(id int32) {
		if id >= 0 && int(id) < len(logits) {
			logits[id] = float32(math.Inf(-1))
		}
	}
	if len(r.Last) > 0 && r.MaxLength > 0 && len(said) == r.MaxLength-1 {
		r.only(logits)
		return
	}
	if len(said) < r.MinLength {
		for _, id := range r.End {
			forbid(id)
		}
	}
	follow(said, said, r.NoRepeat, forbid)
	follow(r.Source, said, r.NoRepeatSource, forbid)
	for _, bad := range r.Bad {
		n := len(bad) - 1
		if n <= len(said) && slices.Equal(said[len(said)-n:], bad[:n]) {
			forbid(bad[n])
		}
	}
}

// only leaves the logits of the tokens that may be the last.
func (r *Rules) only(logits []float32) {
	var kept []TokenLogprob
	for _, id := range r.Last {
		if id >= 0 && int(id) < len(logits) {
			kept = append(kept, TokenLogprob{id, logits[id]})
		}
	}
	if len(kept) == 0 {
		return // an answer that may not end so ends as it comes
	}
	for id := range logits {
		logits[id] = float32(math.Inf(-1))
	}
	for _, k := range kept {
		logits[k.ID] = k.Logprob
	}
}

// follow forbids what comes in text after a run of n−1 tokens that said ends with.
func follow(text, said []int32, n int, forbid func(int32)) {
	if n < 1 || len(said)+1 < n {
		return
	}
	end := said[len(said)-n+1:]
	for i := 0; i+n <= len(text); i++ {
		if slices.Equal(text[i:i+n-1], end) {
			forbid(text[i+n-1])
		}
	}
}
