package server

import (
	"encoding/json"
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

// Words for a mask, where a request names no number, and at most; and of one
// answer, for all masks of all texts.
const (
	fillWords     = 5
	mostFillWords = 1000
	mostWords     = 1 << 17
)

// fillMask answers with the likeliest words for each mask of each text.
func (v *Server) fillMask(w http.ResponseWriter, r *http.Request) error {
	var q fillRequest
	if err := v.readJSON(w, r, &q); err != nil {
		return err
	}
	e, err := v.texts(embed.OutputLogits)
	if err != nil {
		return err
	}
	if err := v.known(q.Model); err != nil {
		return err
	}
	top := fillWords
	if q.Top != nil {
		top = *q.Top
	}
	if top < 1 || top > mostFillWords {
		return badRequest("top_n", "top_n: %d is outside 1 to %d", top, mostFillWords)
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
	data, used := make([]filledText, len(texts)), inputUsage{}
	for i, enc := range encoded {
		filled, err := e.Fill(r.Context(), enc, top)
		if err != nil {
			return fillError(err)
		}
		used.Prompt += len(enc.IDs)
		data[i] = filledText{Object: "fill_mask", Index: i, Masks: words(filled)}
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

func words(filled [][]embed.Word) [][]filledWord {
	out := make([][]filledWord, len(filled))
	for i, list := range filled {
		for _, w := range list {
			out[i] = append(out[i], filledWord{w.Text, w.ID, w.Score})
		}
	}
	return out
}
