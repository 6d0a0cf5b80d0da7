package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/inferflow/inferflow/internal/embed"
)

// fillRequest is the body of POST /v1/fill-mask: texts with masks.
type fillRequest struct {
	Model string          `json:"model"`
	Input json.RawMessage `json:"input"`
	Top   *int            `json:"top_n"`
}

type filledWord struct {
	Token string  `json:"token"`
	ID    int32   `json:"id"`
	Score float64 `json:"score"`
}

type filledText struct {
	Object string         `json:"object"`
	Index  int            `json:"index"`
	Masks  [][]filledWord `json:"masks"` // in the order of the text
}

// Words for a mask, where a request names no number; and of one answer, for all
// masks of all texts.
const (
	fillWords = 5
	mostWords = 1 << 17
)

// fillMask answers with the likeliest words for each mask of each text.
func (v *Server) fillMask(w http.ResponseWriter, r *http.Request) error {
	var q fillRequest
	e, err := v.begin(w, r, &q, &q.Model, embed.OutputLogits)
	if err != nil {
		return err
	}
	top := fillWords
	if q.Top != nil {
		top = *q.Top
	}
	if top < 1 || top > embed.MaxWords {
		return badRequest("top_n", "top_n: %d is outside 1 to %d", top, embed.MaxWords)
	}
	texts, ok := oneOrMany(q.Input)
	if !ok {
		return badRequest("input", "input: a string or a list of 1 to %d strings is expected", maxInputs)
	}
	total := 0
	for _, t := range texts {
		total += len(t)
	}
	if err := within("input", total); err != nil {
		return err
	}
	encoded, err := encodeMasked(e, texts, top)
	if err != nil {
		return err
	}
	data, used, size := make([]filledText, len(texts)), inputUsage{}, 0
	for i, enc := range encoded {
		filled, err := e.Fill(r.Context(), enc, top)
		if err != nil {
			return fillError(err)
		}
		used.Prompt += len(enc.IDs)
		data[i] = filledText{Object: "fill_mask", Index: i, Masks: words(filled)}
		size += filledBytes(filled)
		if err := withinAnswer(size, fmt.Sprintf("the words of the first %d texts", i+1), "send fewer texts or a smaller top_n"); err != nil {
			return err
		}
	}
	used.Total = used.Prompt
	writeJSON(w, http.StatusOK, map[string]any{"id": v.newID("fill-"), "object": "list", "model": q.Model, "data": data, "usage": used})
	return nil
}

// encodeMasked makes the tokens of all texts before the first is computed, and
// refuses more masks than one answer tells the words for.
func encodeMasked(e *embed.Service, texts []string, top int) ([]embed.Text, error) {
	out, words := make([]embed.Text, len(texts)), 0
	each := min(top, e.Width())
	for i, text := range texts {
		var err error
		if out[i], err = e.EncodeMasked(text); err != nil {
			return nil, fillError(err)
		}
		if words += len(out[i].Out) * each; words > mostWords {
			return nil, badRequest("input", "input: the masks of the first %d texts with %d words for each are more than the %d words of one answer; send fewer texts or a smaller top_n", i+1, each, mostWords)
		}
	}
	return out, nil
}

// fillError is textError without the advice to cut texts, which might cut a mask.
func fillError(err error) error {
	err = textError(err, "input")
	if e, ok := err.(*apiError); ok {
		e.Message = strings.TrimSuffix(e.Message, truncateHint)
	}
	return err
}

// filledBytes bounds what the words of a text take in an answer.
func filledBytes(filled [][]embed.Word) (n int) {
	for _, list := range filled {
		for _, w := range list {
			n += quotedBytes(w.Text) + objectBytes
		}
	}
	return n
}

func words(filled [][]embed.Word) [][]filledWord {
	out := make([][]filledWord, len(filled))
	for i, list := range filled {
		for _, w := range list {
			out[i] = append(out[i], filledWord{w.Text, w.ID, w.Score})
		}
	}
	return out
}
