package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
)

// translator is a tiny encoder-decoder of the zoo with a vocabulary of words.
func translator(t *testing.T, family string, added ...string) *complete.Service {
	t.Helper()
	zoo := os.Getenv("INFERFLOW_ZOO")
	if zoo == "" {
		zoo = filepath.Join("..", "..", "..", "shared", "zoo")
	}
	dir := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		raw, err := os.ReadFile(filepath.Join(zoo, family, name))
		if os.IsNotExist(err) {
			t.Skipf("the zoo of tiny models is not at %s; set INFERFLOW_ZOO to its folder", zoo)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	vocab, list := map[string]int{}, []map[string]any{}
	for i, w := range append([]string{"<unk>", "<pad>", "</s>", "translate", "English", "French", "to", "French:", "summarize:", "the", "house"}, added...) {
		vocab[w] = i
	}
	for i := len(vocab); i < 400; i++ { // whatever the model says is a word
		vocab[fmt.Sprintf("w%d", i)] = i
	}
	for _, w := range added {
		list = append(list, map[string]any{"id": vocab[w], "content": w, "special": true})
	}
	single := []any{map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}, map[string]any{"SpecialToken": map[string]any{"id": "</s>", "type_id": 0}}}
	writeJSONFile(t, dir, "tokenizer.json", map[string]any{
		"added_tokens": list, "pre_tokenizer": map[string]any{"type": "WhitespaceSplit"},
		"post_processor": map[string]any{"type": "TemplateProcessing", "single": single, "pair": single,
			"special_tokens": map[string]any{"</s>": map[string]any{"id": "</s>", "ids": []int{2}, "tokens": []string{"</s>"}}}},
		"model": map[string]any{"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}})
	writeJSONFile(t, dir, "tokenizer_config.json", map[string]any{"eos_token": "</s>", "pad_token": "<pad>"})
	m, err := model.Open(dir, model.Options{Threads: 1, Context: 64})
	if err == nil {
		err = m.Load()
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := complete.New(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// taskReply is an answer of /v1/completions or /v1/chat/completions.
type taskReply struct {
	Choices []struct {
		Text    string `json:"text"`
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Answer int `json:"completion_tokens"`
	} `json:"usage"`
	Error struct {
		Param   string `json:"param"`
		Message string `json:"message"`
	} `json:"error"`
}

func (r taskReply) texts() (list []string) {
	for _, c := range r.Choices {
		list = append(list, c.Text+c.Message.Content)
	}
	return list
}

// askTask posts what is asked for with greedy answers of six tokens.
func askTask(t *testing.T, base, path string, body map[string]any) (int, taskReply) {
	t.Helper()
	body["model"], body["temperature"], body["max_tokens"], body["ignore_eos"], body["skip_special_tokens"] = "tiny", 0, 6, true, false
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(base+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var r taskReply
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, r
}

func said(text string) []map[string]any { return []map[string]any{{"role": "user", "content": text}} }

// TestTasksByHTTP: a task over either endpoint is the source spelled out.
func TestTasksByHTTP(t *testing.T) {
	for _, c := range []struct {
		family, task, text, spelled string
		added                       []string
	}{
		{"t5", "translate:en-fr", "the house", "translate English to French: the house", nil},
		{"t5", "summarize", "the house to the house", "summarize: the house to the house", nil},
		{"m2m_100", "translate:en-fr", "the house", "", []string{"__en__", "__fr__"}},
	} {
		s := translator(t, c.family, c.added...)
		_, h := serve(t, s, Options{Name: "tiny"})
		_, chat := askTask(t, h.URL, "/v1/chat/completions", map[string]any{"messages": said(c.text), "task": c.task})
		_, plain := askTask(t, h.URL, "/v1/completions", map[string]any{"prompt": c.text, "task": c.task})
		if len(chat.Choices) != 1 || chat.texts()[0] == "" || !slices.Equal(chat.texts(), plain.texts()) || chat.Usage != plain.Usage {
			t.Errorf("%s %s: a conversation gives %+v, a prompt %+v", c.family, c.task, chat, plain)
		}
		if c.spelled != "" {
			_, spelled := askTask(t, h.URL, "/v1/completions", map[string]any{"prompt": c.spelled})
			if !slices.Equal(spelled.texts(), plain.texts()) || spelled.Usage != plain.Usage {
				t.Errorf("%s: the task gives %+v, its text %+v", c.task, plain, spelled)
			}
		}
		_, other := askTask(t, h.URL, "/v1/completions", map[string]any{"prompt": "house the the", "task": c.task})
		_, both := askTask(t, h.URL, "/v1/completions", map[string]any{"prompt": []string{c.text, "house the the"}, "task": c.task, "n": 2})
		want := []string{plain.texts()[0], plain.texts()[0], other.texts()[0], other.texts()[0]}
		if !slices.Equal(both.texts(), want) || both.Usage.Prompt != plain.Usage.Prompt+other.Usage.Prompt {
			t.Errorf("%s: two prompts, two answers each: %+v, want %q", c.task, both, want)
		}
	}
}

// TestEncodesOnce: more answers take no more steps, so the source is encoded
// and the answer's beginning computed once for all of them.
func TestEncodesOnce(t *testing.T) {
	s := translator(t, "t5")
	_, h := serve(t, s, Options{Name: "tiny"})
	steps := func(path string, body map[string]any) int64 {
		before := s.Engine.Stats().Steps
		if status, r := askTask(t, h.URL, path, body); status != http.StatusOK || r.Usage.Answer%6 != 0 {
			t.Fatalf("%d: %+v", status, r)
		}
		return s.Engine.Stats().Steps - before
	}
	for path, body := range map[string]map[string]any{
		"/v1/chat/completions": {"messages": said("the house"), "task": "summarize"},
		"/v1/completions":      {"prompt": "the house", "task": "summarize"},
	} {
		one := steps(path, body)
		body["n"] = 4
		if four := steps(path, body); one != 7 || four != one { // the source, then six tokens
			t.Errorf("%s: %d steps for one answer, %d for four", path, one, four)
		}
		body["num_beams"] = 4
		if four := steps(path, body); four != one {
			t.Errorf("%s: %d steps for one answer, %d for four beams", path, one, four)
		}
	}
}

// TestBadTasksByHTTP wants errors that name the field and say what there is.
func TestBadTasksByHTTP(t *testing.T) {
	s := translator(t, "t5")
	_, h := serve(t, s, Options{Name: "tiny"})
	_, decoder := serve(t, service(t), Options{Name: "tiny"})
	for name, c := range map[string]struct {
		base  string
		body  map[string]any
		param string
	}{
		"unknown":          {h.URL, map[string]any{"prompt": "the", "task": "sing"}, "task"},
		"no languages":     {h.URL, map[string]any{"prompt": "the", "task": "translate"}, "task"},
		"needless ones":    {h.URL, map[string]any{"prompt": "the", "task": "summarize:en-fr"}, "task"},
		"ids":              {h.URL, map[string]any{"prompt": []int{3, 4}, "task": "summarize"}, "prompt"},
		"echo":             {h.URL, map[string]any{"prompt": "the", "task": "summarize", "echo": true}, "echo"},
		"a decoder":        {decoder.URL, map[string]any{"prompt": "Hi", "task": "summarize"}, "task"},
		"in a chat":        {h.URL, map[string]any{"messages": said("the"), "task": "sing"}, "task"},
		"a decoder's chat": {decoder.URL, map[string]any{"messages": said("Hi"), "task": "summarize"}, "task"},
		"said by a model":  {h.URL, map[string]any{"messages": []map[string]any{{"role": "assistant", "content": "x"}}, "task": "summarize"}, "messages"},
	} {
		path := "/v1/completions"
		if c.body["messages"] != nil {
			path = "/v1/chat/completions"
		}
		if status, r := askTask(t, c.base, path, c.body); status != http.StatusBadRequest || r.Error.Param != c.param || r.Error.Message == "" {
			t.Errorf("%s: %d %+v", name, status, r.Error)
		}
	}
}
