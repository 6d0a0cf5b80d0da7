package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestBeamRequests are answered, or refused with the field's name.
func TestBeamRequests(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny"})
	texts := map[string][]string{}
	for fields, want := range map[string]string{
		`"num_beams": 4, "n": 3`:                                                                   "",
		`"use_beam_search": true, "best_of": 4, "n": 3`:                                            "",
		`"num_beams": 4, "temperature": 0, "top_p": 0.5, "early_stopping": true, "n": 3`:           "",
		`"use_beam_search": true, "n": 3, "length_penalty": 2, "logprobs": 0`:                      "",
		`"use_beam_search": true`:                                                                  "",
		`"temperature": 0`:                                                                         "",
		`"use_beam_search": false, "length_penalty": 1, "early_stopping": false, "temperature": 0`: "",
		`"beams": 4, "n": 3`:                                                                       "",
		`"beams": 4, "num_beams": 2`:                                                               "beams: 4 and 2 num_beams contradict each other",
		`"beams": 65`:                                                                              "outside 1 to 64",
		`"num_beams": 65`:                                                                          "num_beams: 65 is outside 1 to 64",
		`"num_beams": 0`:                                                                           "num_beams: 0 is outside 1 to 64",
		`"num_beams": 2, "n": 3`:                                                                   "3 answers were asked for",
		`"num_beams": 4, "use_beam_search": false`:                                                 "contradict each other",
		`"num_beams": 4, "temperature": 0.7`:                                                       "temperature: a search with beams draws no tokens",
		`"num_beams": 4, "top_k": 5`:                                                               "top_k: a search",
		`"num_beams": 4, "tfs_z": 0.5`:                                                             "tfs_z: a search",
		`"num_beams": 4, "fsd_alpha": 0.5`:                                                         "beams draw no tokens",
		`"num_beams": 4, "logprobs": 2`:                                                            "top_logprobs does not go with num_beams",
		`"num_beams": 4, "early_stopping": "soon"`:                                                 "early_stopping: true, false or",
		`"num_beams": 4, "length_penalty": 1e9`:                                                    "length_penalty is 1e+09",
		`"length_penalty": 2`:                                                                      "ask for two beams or more",
		`"use_beam_search": true, "n": 3, "best_of": 2`:                                            "best_of: 2 beams; 3 to 64",
		`"use_beam_search": true, "n": 100`:                                                        "n: 100 beams; 100 to 64 are possible",
		`"best_of": 4`:                                                                             "best_of: only the value of n",
	} {
		var a struct {
			Choices []struct {
				Text     string
				Logprobs *struct {
					Values []float64 `json:"token_logprobs"`
				}
			}
		}
		code, why := answer(t, h, "/v1/completions", `{"model": "tiny", "prompt": "a", "max_tokens": 5, "seed": 1, `+fields+`}`, &a)
		if (want == "") != (code == http.StatusOK) || !strings.Contains(why, want) {
			t.Errorf("%s: %d %s", fields, code, why)
		}
		for _, c := range a.Choices {
			texts[fields] = append(texts[fields], c.Text)
			if strings.Contains(fields, "logprobs") && (c.Logprobs == nil || len(c.Logprobs.Values) == 0 || c.Logprobs.Values[0] >= 0) {
				t.Errorf("%s: %+v", fields, c)
			}
		}
	}
	four := texts[`"num_beams": 4, "n": 3`]
	if len(four) != 3 || four[0] == four[1] || four[1] == four[2] || !slices.Equal(four, texts[`"use_beam_search": true, "best_of": 4, "n": 3`]) || !slices.Equal(four, texts[`"beams": 4, "n": 3`]) {
		t.Errorf("four beams: %q", texts)
	}
	if greedy := texts[`"temperature": 0`]; !slices.Equal(greedy, texts[`"use_beam_search": true`]) {
		t.Errorf("one beam: %q", texts)
	}
}

// TestBeamsStream: the answers of a search come at its end, whole.
func TestBeamsStream(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny"})
	body := func(stream bool) string {
		return fmt.Sprintf(`{"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 6, "num_beams": 3, "n": 2, "logprobs": true, "stream": %t}`, stream)
	}
	var whole struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	if code, why := answer(t, h, "/v1/chat/completions", body(false), &whole); code != http.StatusOK {
		t.Fatal(why)
	}
	got := make([]string, 2)
	resp, err := http.Post(h.URL+"/v1/chat/completions", "application/json", strings.NewReader(body(true)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var x struct {
			Choices []struct {
				Index int
				Delta struct{ Content string }
			}
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: {"); ok {
			if err := json.Unmarshal([]byte("{"+data), &x); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range x.Choices {
			got[c.Index] += c.Delta.Content
		}
	}
	for i, c := range whole.Choices {
		if got[i] != c.Message.Content || got[i] == "" {
			t.Errorf("answer %d streams %q, whole it is %q", i, got[i], c.Message.Content)
		}
	}
}
