package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/tensor"
)

// given converts a small model whose specification ends in a gguf(…).
func given(declared string) (*Rebound, error) {
	folder := &mirror{binding: HF, config: map[string]any{"model_type": "m"}, views: map[string]tensor.View{}}
	folder.add("model.embed_tokens.weight", []int{9, 4})
	folder.add("model.layers.0.self_attn.q_proj.weight", []int{4, 4})
	s := &Spec{Name: "other", Source: `serves(model_type = "m", gguf = "m")
def model(c):
    x = embed("model.embed_tokens")
    for i in layers(1):
        x = linear(x, "model.layers.0.self_attn.q_proj", bias = False)
    return linear(x, "lm_head", bias = False, tied = "model.embed_tokens")
ignore("*.attn_q.bias", "*_norm")
Q = "model.layers.{i}.self_attn.q_proj"
` + declared + "\n"}
	return s.Rebind(folder)
}

// TestGivenBad refuses what gguf(…) gives and cannot be, with the line, and
// before anything is made of it.
func TestGivenBad(t *testing.T) {
	fill := func(v string) string { return fmt.Sprintf("gguf(fill = {Q + %q: (Q, %s)})", ".bias", v) }
	norm := func(v string) string {
		return fmt.Sprintf("gguf(fill = {%q: (Q, %s)})", "model.layers.{i}.self_attn.q_norm", v)
	}
	for declared, say := range map[string]string{
		fill("[1, 2, 3]"):                                  "3 numbers for the 4 rows",
		fill("range(1000000000000)"):                       "1000000000000 numbers for the 4 rows",
		norm("range(1000000000000)"):                       "from 1 to the 16",
		norm("lambda c: range(1000000000000)"):             "from 1 to the 16",
		norm("[]"):                                         "0 numbers",
		norm(`[float("nan")] * 4`):                         "no form for it: nan",
		norm(`[1, float("inf")]`):                          "number 1",
		norm("[1e39]"):                                     "number 0",
		norm("[1 << 500]"):                                 "number 0",
		norm(`["a"]`):                                      "number 0",
		norm(`"abc"`):                                      "want {tensor",
		norm("None"):                                       "want {tensor",
		`gguf(fill = {Q + ".bias": 1})`:                    "want {tensor",
		`gguf(fill = {7: 0})`:                              "want {tensor",
		`gguf(fill = {"nosuch.bias": 0})`:                  "GGUF has no name for it",
		`gguf(aside = lambda c: ["x"] * 1001)`:             "1001 patterns",
		`gguf(aside = lambda c: 7)`:                        "expected a string",
		`gguf(differs = lambda c: 7)`:                      "got int",
		`gguf(differs = lambda c: True)`:                   "got bool",
		`gguf(write = {"a": 1 << 70})`:                     "no form for it",
		`gguf(write = {"a": float("nan")})`:                "no form for it",
		`gguf(write = {"a": {}})`:                          "a dict",
		`gguf(write = {"a": [[1]]})`:                       "value 0",
		`gguf(write = {"a": [1, "x"]})`:                    "no form for it: a list",
		`gguf(write = {"a": range(1000000000000)})`:        "at most",
		`gguf(write = {"a": lambda c: "x" * 2000000})`:     "at most",
		`gguf(write = {".inferflow.filled": "[]"})`:        "no key",
		`gguf(write = {".general.alignment": 0})`:          "no key",
		`gguf(write = {".general.architecture": "llama"})`: "no key",
		`gguf(write = {".": 1})`:                           "no key",
		`gguf(write = {"k" * 100000: 1})`:                  "no key",
		`gguf(write = {7: 1})`:                             "want {GGUF key",
	} {
		_, err := given(declared)
		if err == nil || !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), "other.star:9: gguf(") || len(err.Error()) > 600 {
			t.Errorf("%s: %.600v, want %q", declared, err, say)
		}
	}
	r, err := given(`gguf(differs = lambda c: "x" * 100000, write = {"a": None, "b": 2, "e": [1, float("-inf")], "c": (1, 2), "d": "s"})`)
	if err != nil || len(r.Notes) != 1 || len(r.Notes[0]) > 1000 || r.Metadata["m.b"] != uint32(2) || r.Metadata["m.d"] != "s" || r.Metadata["m.e"] == nil || len(r.Metadata["m.c"].([]int32)) != 2 {
		t.Errorf("%v, %v", r, err)
	}
}
