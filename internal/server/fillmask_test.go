package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/embed"
)

type fillAnswer struct {
	Data []filledText `json:"data"`
}

// TestFillMask: the words of an answer are bounded before the first text is
// computed, and its other doors lead to that one.
func TestFillMask(t *testing.T) {
	h := serveTexts(t, writeEncoder(t, masked), embed.OutputLogits)
	var a fillAnswer
	if code, why := answer(t, h, "/v1/fill-mask", `{"model": "tiny", "input": ["a [MASK] [MASK]", "[MASK]"], "top_n": 1000}`, &a); code != 200 {
		t.Fatalf("%d %s", code, why)
	}
	if len(a.Data) != 2 || len(a.Data[0].Masks) != 2 || len(a.Data[1].Masks[0]) != len(encoderWords) {
		t.Errorf("the answer is %+v", a)
	}
	for _, list := range append(a.Data[0].Masks, a.Data[1].Masks...) {
		for i := 1; i < len(list); i++ {
			if list[i].Score > list[i-1].Score {
				t.Errorf("words in no order: %+v", list)
			}
		}
	}
	ask := func(texts int, text string, top int) (int, string) {
		body, err := json.Marshal(map[string]any{"model": "tiny", "input": strings.Split(strings.Repeat(text+"|", texts)+text, "|"), "top_n": top})
		if err != nil {
			t.Fatal(err)
		}
		return answer(t, h, "/v1/fill-mask", string(body), nil)
	}
	if code, why := ask(maxInputs-1, strings.Repeat("[MASK] ", 20), 1000); code != http.StatusBadRequest || !strings.Contains(why, "top_n") {
		t.Errorf("many words: %d %s", code, why)
	}
	if code, why := ask(0, strings.Repeat("[MASK] ", 200), 1); code != http.StatusBadRequest || strings.Contains(why, "truncate") {
		t.Errorf("a long text: %d %s", code, why)
	}
	for path, body := range map[string]string{
		"/v1/rerank":     `{"model": "tiny", "query": "a", "documents": ["b"]}`,
		"/v1/embeddings": `{"model": "tiny", "input": "a"}`,
	} {
		if code, why := answer(t, h, path, body, nil); code != 400 || !strings.Contains(why, "/v1/fill-mask") {
			t.Errorf("%s: %d %s", path, code, why)
		}
	}
}
