package server

import (
	"bytes"
	"log"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/spec"
)

// thinker is a service whose chat template reads a variable of the request.
func thinker(t *testing.T) *complete.Service {
	o := modeltest.Options{Story: tale, Context: 256, Template: template + `{% if enable_thinking is defined and not enable_thinking %} {% endif %}`}
	m, err := model.Open(modeltest.Write(t, t.TempDir(), o), model.Options{Threads: 1, Rows: 64, Seqs: 16})
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

// TestGot: what was sent in place of a text is named.
func TestGot(t *testing.T) {
	texts := serveTexts(t, writeEncoder(t), spec.OutputEmbedding)
	_, writes := serve(t, service(t), Options{Name: "tiny"})
	for input, want := range map[string]string{`{"txt": "a"}`: "not an object", `[]`: "not an empty list", `3`: "not a number", `["a", 3]`: "not a list with a string and a number",
		`[1.5]`: "not a list with a number that is not whole", `true`: "not true or false", `[{}]`: "not a list with an object"} {
		if code, why := answer(t, texts, "/v1/embeddings", `{"model": "tiny", "input": `+input+`}`, nil); code != 400 || !strings.Contains(why, "expected, "+want) {
			t.Errorf("input %s: %d %s", input, code, why)
		}
		if code, why := answer(t, writes, "/v1/completions", `{"model": "tiny", "prompt": `+input+`}`, nil); code != 400 || input != "[]" && !strings.Contains(why, "expected, "+want) {
			t.Errorf("prompt %s: %d %s", input, code, why)
		}
	}
}

// TestTemplateKeys: a misspelt variable is refused also where the template does
// not read the one that is meant, which itself passes, as clients send it to any model.
func TestTemplateKeys(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny"})
	for key, want := range map[string]int{"enable_thinking": 200, "enable_thnking": 400, "colour": 200} {
		code, why := answer(t, h, "/v1/chat/completions", `{"model": "tiny", "max_tokens": 2, "messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"`+key+`": false}}`, new(any))
		if code != want {
			t.Errorf("%s: %d %s", key, code, why)
		}
	}
}

// TestOtherServers: what other servers would change an answer by is refused with
// what to use here, unless it asks for nothing; what no server's answer depends on passes.
func TestOtherServers(t *testing.T) {
	var words bytes.Buffer
	_, h := serve(t, thinker(t), Options{Name: "tiny", Log: log.New(&words, "", 0)})
	for fields, want := range map[string]string{
		`"num_predict": 3`:                                              "num_predict is a field of other servers: use max_tokens",
		`"max_new_tokens": 3`:                                           "use max_tokens",
		`"options": {"num_ctx": 100}`:                                   "fields of the request here: max_tokens",
		`"num_ctx": 100`:                                                "--context",
		`"format": "json"`:                                              "an answer is any text here",
		`"json_schema": {"type": "object"}`:                             "json_schema is not served",
		`"temp": 0`:                                                     "use temperature",
		`"do_sample": false`:                                            "use temperature",
		`"stop_sequences": ["a"]`:                                       "use stop,",
		`"think": false`:                                                "chat_template_kwargs",
		`"no_repeat_ngram_size": 3`:                                     "it is not served",
		`"chat_template_kwargs": {"enable_thnking": false}`:             "chat_template_kwargs.enable_thnking is nothing that a template reads; did you mean enable_thinking?",
		`"chat_template_kwargs": {"enable_thinking": false}`:            "",
		`"chat_template_kwargs": {"thinking_style": "short"}`:           "",
		`"options": {}, "format": "", "do_sample": true, "num_ctx": 0`:  "",
		`"no_repeat_ngram_size": 0, "min_length": 0, "bad_words": []`:   "",
		`"num_predict": null, "keep_alive": "5m", "request_id": "here"`: "",
	} {
		code, why := answer(t, h, "/v1/chat/completions", `{"model": "tiny", "max_tokens": 2, "messages": [{"role": "user", "content": "a"}], `+fields+`}`, new(any))
		if (code == 200) != (want == "") || code != 200 && code != 400 || !strings.Contains(why, want) {
			t.Errorf("%s: %d %s, want %q", fields, code, why, want)
		}
	}
	if !strings.Contains(words.String(), `"chat_template_kwargs.thinking_style" of requests is not known`) {
		t.Errorf("the log: %s", words.String())
	}
}
