package sample

import (
	"math"
	"slices"
)

// Rules restrict the form of an answer, as the generation settings of
// encoder-decoders do; each is what the processor of that name in
// transformers' generation/logits_process.py does, in the order in which
// generate() applies them. Lengths and repetitions count the prompt's tokens
// too. A Rules may be shared by samplers; it is not changed.
type Rules struct {
	Bias           []SequenceBias // sequence_bias, before the penalties; no sequence twice
	Lifted         []int32        // tokens, none twice, that are likelier
	Lift           float64        // by this factor: encoder_repetition_penalty, before the penalties; 0 or 1: no
	NoRepeat       int            // no run of so many tokens a second time; 0: any
	Source         []int32        // another text, and
	NoRepeatSource int            // no run of so many tokens of Source; 0: any
	Bad            [][]int32      // sequences that may not be said, none of them empty
	End            []int32        // the tokens that end an answer
	MinLength      int            // no end token before so many tokens of prompt and answer; 0: none
	MaxLength      int            // the length at which the answer ends, for Last; 0: none
	Last           []int32        // the only tokens that may be the last one before MaxLength; none: any
	DecayFrom      int            // exponential_decay_length_penalty: from this length on an end gets likelier
	Decay          float64        // by this factor with each token; 0 or 1: no
	Suppress       []int32        // tokens that may not be said
	SuppressFirst  []int32        // tokens that may not be said
	FirstAt        int            // at this length
	Renormalise    bool           // renormalize_logits: scores of a search are made log-probabilities again
}

// SequenceBias is added to the logit of the last of IDs where the others have
// just been said.
type SequenceBias struct {
	IDs  []int32 // at least one
	Bias float32
}

// Empty says that no rule restricts anything.
func (r *Rules) Empty() bool {
	return len(r.Bias) == 0 && !lifts(r.Lift) && r.NoRepeat == 0 && r.NoRepeatSource == 0 && len(r.Bad) == 0 && r.MinLength == 0 &&
		(len(r.Last) == 0 || r.MaxLength == 0) && !lifts(r.Decay) && len(r.Suppress) == 0 && len(r.SuppressFirst) == 0 && !r.Renormalise
}

func lifts(factor float64) bool { return factor != 0 && factor != 1 }

// before changes the logits as the rules do that stand before the penalties.
func (r *Rules) before(logits []float32, said []int32) {
	for _, b := range r.Bias {
		n := len(b.IDs) - 1
		if id := b.IDs[n]; ends(said, b.IDs[:n]) && id >= 0 && int(id) < len(logits) {
			logits[id] += b.Bias
		}
	}
	if !lifts(r.Lift) {
		return
	}
	by := float32(1 / r.Lift)
	for _, id := range r.Lifted {
		if id < 0 || int(id) >= len(logits) {
			continue
		}
		if logits[id] < 0 {
			logits[id] *= by
		} else {
			logits[id] /= by
		}
	}
}

// ends says whether said ends with run.
func ends(said, run []int32) bool {
	return len(run) <= len(said) && slices.Equal(said[len(said)-len(run):], run)
}

// apply changes the logits of what may follow said, to −Inf for most.
func (r *Rules) apply(logits []float32, said []int32) {
	forbid := func(id int32) {
		if id >= 0 && int(id) < len(logits) {
			logits[id] = float32(math.Inf(-1))
		}
	}
	follow(said, said, r.NoRepeat, forbid)
	follow(r.Source, said, r.NoRepeatSource, forbid)
	for _, bad := range r.Bad {
		n := len(bad) - 1
		if ends(said, bad[:n]) && (n > 0 || !slices.Contains(r.End, bad[0])) {
			forbid(bad[n])
		}
	}
	if len(said) < r.MinLength {
		for _, id := range r.End {
			forbid(id)
		}
	}
	if len(r.Last) > 0 && r.MaxLength > 0 && len(said) == r.MaxLength-1 {
		r.only(logits)
	}
	if over := len(said) - r.DecayFrom; lifts(r.Decay) && over > 0 {
		r.decay(logits, over)
	}
	for _, id := range r.Suppress {
		forbid(id)
	}
	if len(said) == r.FirstAt {
		for _, id := range r.SuppressFirst {
			forbid(id)
		}
	}
}

// only leaves the tokens that may be the last, alike.
func (r *Rules) only(logits []float32) {
	known := func(id int32) bool { return id >= 0 && int(id) < len(logits) }
	if !slices.ContainsFunc(r.Last, known) {
		return // an answer that may not end so ends as it comes
	}
	for id := range logits {
		logits[id] = float32(math.Inf(-1))
	}
	for _, id := range r.Last {
		if known(id) {
			logits[id] = 0
		}
	}
}

// decay raises the logits of the ends, over tokens past the beginning.
func (r *Rules) decay(logits []float32, over int) {
	by := float32(math.Pow(r.Decay, float64(over)) - 1)
	for i, id := range r.End {
		if id < 0 || int(id) >= len(logits) || slices.Contains(r.End[:i], id) {
			continue
		}
		if l := float64(logits[id]); !math.IsInf(l, 0) {
			logits[id] = clamp(l + math.Abs(l)*float64(by))
		}
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
