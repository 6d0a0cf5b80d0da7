package sample

import "math"

// history counts the tokens of prompt and answer that the penalties look at.
// Tokens are held sparsely: a request touches few of a large vocabulary.
type history struct {
	entries []seen
	index   map[int32]int32 // token id → place in entries
	ring    []past          // the last window tokens; unused without a window
	head    int             // where the next token goes once the ring is full
	window  int
}

type seen struct {
	id     int32
	prompt int32 // times in the prompt
	answer int32 // times in the answer
}

type past struct {
	id     int32
	answer bool
}

func newHistory(window int, prompt []int32, vocab int) *history {
	h := &history{window: window, index: make(map[int32]int32, 64)}
	h.refill(prompt, len(prompt), vocab)
	return h
}

// refill counts a text anew, of which the first tokens are the prompt.
func (h *history) refill(said []int32, prompt, vocab int) {
	clear(h.index)
	h.entries, h.ring, h.head = h.entries[:0], h.ring[:0], 0
	first := 0
	if h.window > 0 {
		first = max(0, len(said)-h.window)
	}
	for i := first; i < len(said); i++ {
		// Placeholders of images and the like may lie outside the logits. They
		// cannot be chosen, so they need no penalty, but take a place.
		h.add(said[i], i >= prompt, vocab)
	}
}

func (h *history) clone() *history {
	c := *h
	c.entries = append([]seen(nil), h.entries...)
	c.ring = append([]past(nil), h.ring...)
	c.index = make(map[int32]int32, len(h.index))
	for id, i := range h.index {
		c.index[id] = i
	}
	return &c
}

// add counts a token and, with a window, forgets the one that leaves it.
func (h *history) add(id int32, answer bool, vocab int) {
	if h.window > 0 {
		if len(h.ring) < h.window {
			h.ring = append(h.ring, past{id, answer})
		} else {
			h.forget(h.ring[h.head])
			h.ring[h.head] = past{id, answer}
			h.head = (h.head + 1) % h.window
		}
	}
	if id < 0 || int(id) >= vocab {
		return
	}
	i, ok := h.index[id]
	if !ok {
		i = int32(len(h.entries))
		h.index[id] = i
		h.entries = append(h.entries, seen{id: id})
	}
	if answer {
		h.entries[i].answer++
	} else {
		h.entries[i].prompt++
	}
}

func (h *history) forget(p past) {
	i, ok := h.index[p.id]
	if !ok {
		return // a placeholder outside the vocabulary
	}
	e := &h.entries[i]
	if p.answer {
		e.answer--
	} else {
		e.prompt--
	}
	if e.answer > 0 || e.prompt > 0 {
		return
	}
	last := len(h.entries) - 1
	h.entries[i] = h.entries[last]
	h.index[h.entries[i].id] = i
	h.entries = h.entries[:last]
	delete(h.index, p.id)
}

// penalise changes the logits of the tokens seen, as transformers does for the
// repetition penalty (prompt and answer) and OpenAI for the two others (answer
// only). The order of entries does not matter: each changes its own logit.
func (h *history) penalise(logits []float32, p *Params) {
	for _, e := range h.entries {
		l := float64(logits[e.id])
		if l > 0 {
			l /= p.RepetitionPenalty
		} else {
			l *= p.RepetitionPenalty
		}
		if e.answer > 0 {
			l -= p.PresencePenalty + p.FrequencyPenalty*float64(e.answer)
		}
		logits[e.id] = clamp(l)
	}
}

// clamp keeps a changed logit from becoming +Inf by overflow, or from becoming
// a mask (-Inf) unless it was one.
func clamp(l float64) float32 {
	if math.IsInf(l, -1) {
		return float32(l)
	}
	return float32(max(-math.MaxFloat32, min(math.MaxFloat32, l)))
}
