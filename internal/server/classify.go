package server

import (
	"encoding/json"
	"net/http"
	"sort"

	"github.com/inferflow/inferflow/internal/embed"
)

// classifyRequest is the body of POST /v1/classify. Input is as that of
// embeddings; Pair is a second text that is read behind each.
type classifyRequest struct {
	Model    string          `json:"model"`
	Input    json.RawMessage `json:"input"`
	Pair     *string         `json:"pair"`
	Top      *int            `json:"top_n"`
	Truncate bool            `json:"truncate"`
}

// mostClasses bounds the classes of one answer, for all texts.
const mostClasses = 1 << 19

type classScore struct {
	Label string  `json:"label"`
	Score float64 `json:"score"`
}

type classData struct {
	Object  string       `json:"object"`
	Index   int          `json:"index"`
	Label   string       `json:"label"` // the likeliest
	Classes []classScore `json:"classes"`
}

// classify answers with the classes of each text, the likeliest first.
func (v *Server) classify(w http.ResponseWriter, r *http.Request) error {
	var q classifyRequest
	e, err := v.begin(w, r, &q, &q.Model, embed.OutputScores)
	if err != nil {
		return err
	}
	if q.Top != nil && *q.Top < 1 {
		return badRequest("top_n", "top_n: %d is less than 1", *q.Top)
	}
	texts, err := v.classified(e, &q)
	if err != nil {
		return textError(err, "input")
	}
	each := e.Width()
	if q.Top != nil {
		each = min(each, *q.Top)
	}
	if len(texts)*each > mostClasses {
		return badRequest("input", "input: %d texts with %d classes for each are more than the %d classes of one answer; send fewer texts or a smaller top_n", len(texts), each, mostClasses)
	}
	longest := 0
	for _, label := range e.Model.Labels() {
		longest = max(longest, quotedBytes(label))
	}
	if err := withinAnswer(len(texts)*each*(longest+objectBytes), "the labels", "send fewer texts or a smaller top_n"); err != nil {
		return err
	}
	all, err := e.Classes(r.Context(), texts)
	if err != nil {
		return textError(err, "input")
	}
	data, used := make([]classData, len(all)), inputUsage{}
	for i, classes := range all {
		data[i] = ordered(i, classes, q.Top)
		used.Prompt += len(texts[i].IDs)
	}
	used.Total = used.Prompt
	writeJSON(w, http.StatusOK, map[string]any{"id": v.newID("classify-"), "object": "list", "model": q.Model, "data": data, "usage": used})
	return nil
}

// classified are the tokens of a request's texts, or pairs of texts.
func (v *Server) classified(e *embed.Service, q *classifyRequest) ([]embed.Text, error) {
	o := embed.Options{Truncate: q.Truncate, NoPrompt: true}
	if q.Pair == nil {
		return v.inputs(e, q.Input, o)
	}
	if place := null(q.Input); place != "" {
		return nil, badRequest("input", "input%s is null; a text is expected", place)
	}
	many, ok := oneOrMany(q.Input)
	if !ok {
		return nil, badRequest("input", "input: with a pair, a string or a list of 1 to %d strings is expected", maxInputs)
	}
	pairs, total := make([][2]string, len(many)), 0
	for i, t := range many {
		pairs[i], total = [2]string{t, *q.Pair}, total+len(t)+len(*q.Pair)
	}
	if err := within("input", total); err != nil {
		return nil, err
	}
	return e.EncodePairs(pairs, o)
}

func ordered(i int, classes []embed.Class, top *int) classData {
	sort.SliceStable(classes, func(a, b int) bool { return classes[a].Score > classes[b].Score })
	d := classData{Object: "classification", Index: i, Label: classes[0].Label}
	if top != nil {
		classes = classes[:min(*top, len(classes))]
	}
	for _, c := range classes {
		d.Classes = append(d.Classes, classScore{c.Label, c.Score})
	}
	return d
}
