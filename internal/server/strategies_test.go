package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/sample"
)

// TestStrategyFields: each field of a request reaches its parameter.
func TestStrategyFields(t *testing.T) {
	var r strategies
	body := `{"tfs_z": 0.9, "mirostat": 2, "mirostat_tau": 3, "mirostat_eta": 0.2, "fsd_alpha": 0.4, "fsd_k": 5, "fsd_n": 4, "fsd_beta": 0.8, "fsd_random": 7,
		"pool_size": 50, "eos_bypassing_max": 1}`
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	got, want := sample.Defaults(), sample.Defaults()
	r.apply(&got)
	want.TailFree, want.Pool, want.PutOff = 0.9, 50, 1
	want.Mirostat, want.FSD = sample.Mirostat{Version: 2, Tau: 3, Eta: 0.2}, sample.FSD{Alpha: 0.4, K: 5, N: 4, Beta: 0.8, Random: 7}
	if got.TailFree != want.TailFree || got.Pool != want.Pool || got.PutOff != want.PutOff || got.Mirostat != want.Mirostat || got.FSD != want.FSD {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestStrategyRequests are answered, or refused with the field's name.
func TestStrategyRequests(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny"})
	for fields, want := range map[string]string{
		`"tfs_z": 0.9`:                      "",
		`"mirostat": 1, "mirostat_tau": 2`:  "",
		`"mirostat": 2`:                     "",
		`"fsd_alpha": 0.5, "fsd_k": 4`:      "",
		`"pool_size": 5, "temperature": 2`:  "",
		`"mirostat": 3`:                     "mirostat is 3",
		`"tfs_z": 0`:                        "tfs_z is 0",
		`"fsd_alpha": 2`:                    "fsd_alpha is 2",
		`"fsd_alpha": 1, "fsd_n": 99`:       "fsd_n is 99",
		`"mirostat": 2, "fsd_alpha": 0.5`:   "both on",
		`"mirostat": 2, "mirostat_eta": -1`: "mirostat_eta is -1",
	} {
		var a struct{ Choices []struct{ Text string } }
		code, why := answer(t, h, "/v1/completions", `{"model": "tiny", "prompt": "a", "max_tokens": 3, "seed": 1, `+fields+`}`, &a)
		if (want == "") != (code == 200) || !strings.Contains(why, want) {
			t.Errorf("%s: %d %s", fields, code, why)
		}
	}
}

// TestStrategyTypes: a value of the wrong type is told under its own name.
func TestStrategyTypes(t *testing.T) {
	for field, value := range map[string]string{"tfs_z": `"x"`, "mirostat": "true", "fsd_k": "1.5", "pool_size": "[]"} {
		var q completionRequest
		err := decode([]byte(`{"`+field+`": `+value+`}`), &q)
		if e, ok := err.(*apiError); !ok || e.Param != field || !strings.HasPrefix(e.Message, field+":") {
			t.Errorf("%s: %#v", field, err)
		}
	}
}
