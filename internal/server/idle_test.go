package server

import (
	"net/http"
	"strings"
	"testing"
)

// TestIdleFields: a field that does nothing for want of another is refused with
// its name; values that clients send by default pass.
func TestIdleFields(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny"})
	for fields, want := range map[string]string{
		`"mirostat_tau": 3`:   "mirostat_tau has no effect without mirostat",
		`"mirostat_eta": 0.2`: "mirostat_eta has no effect without mirostat",
		`"mirostat_tau": 5, "mirostat_eta": 0.1, "tfs_z": 1`:    "",
		`"mirostat": 0, "mirostat_tau": 3`:                      "",
		`"mirostat": 2, "mirostat_tau": 3, "mirostat_eta": 0.2`: "",
		`"fsd_k": 4`:                 "fsd_k has no effect without fsd_alpha",
		`"fsd_n": 4`:                 "fsd_n has no effect without fsd_alpha",
		`"fsd_beta": 0.5`:            "fsd_beta has no effect without fsd_alpha",
		`"fsd_random": 1`:            "fsd_random has no effect without fsd_alpha",
		`"fsd_alpha": 0, "fsd_k": 4`: "",
		`"fsd_k": 6, "fsd_n": 3, "fsd_beta": 0.9, "fsd_random": 0`:  "",
		`"temperature": 0, "mirostat": 2`:                           "mirostat has no effect at temperature 0",
		`"temperature": 0, "fsd_alpha": 0.5`:                        "fsd_alpha has no effect at temperature 0",
		`"temperature": 0, "pool_size": 8`:                          "pool_size has no effect at temperature 0",
		`"temperature": 0, "tfs_z": 0.5`:                            "tfs_z has no effect at temperature 0",
		`"temperature": 0, "top_p": 0.5, "top_k": 4, "mirostat": 0`: "",
		`"repeat_penalty": 1.1, "repetition_penalty": 1.2`:          "repeat_penalty is another name",
		`"repeat_penalty": 1.1, "repetition_penalty": 1.1`:          "",
		`"best_of": 3`:                                                  "best_of: only the value of n",
		`"tool_choice": "required"`:                                     "tool_choice is only possible with tools",
		`"tool_choice": {"type": "function"}`:                           "tool_choice is only possible with tools",
		`"tool_choice": "auto"`:                                         "",
		`"tool_choice": null, "top_logprobs": 0`:                        "",
		`"top_logprobs": 2`:                                             "top_logprobs is only possible with logprobs",
		`"stream_options": {"include_usage": true}`:                     "stream_options is only possible with stream",
		`"length_penalty": 2`:                                           "ask for two beams or more",
		`"add_generation_prompt": true, "continue_final_message": true`: "contradict each other",
	} {
		var a struct{ Choices []struct{ Index int } }
		code, why := answer(t, h, "/v1/chat/completions", `{"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "seed": 1, `+fields+`}`, &a)
		if (want == "") != (code == http.StatusOK) || !strings.Contains(why, want) || want != "" && code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", fields, code, why)
		}
	}
}
