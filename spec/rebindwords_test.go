package spec

import (
	"math"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestNotices: what another reader takes otherwise is told in words, with values
// as --set takes them, and of several problems the first.
func TestNotices(t *testing.T) {
	for _, c := range []struct{ body, say, not string }{
		{`x = unary_of(c, x)`, "(the activation; act: \"gelu\", there not set)", "quiet"},
		{`x = rms_norm(x, "n", c.get("eps", 1e-6)) if not c.get("sandwich") else rms_norm(x, "n", c.get("eps", 1e-6)) + rms_norm(x, "m", 1e-6)`, "by different steps in the two formats; sandwich: true, there not set", "cannot say the model"},
		{`x = rms_norm(x, "n", c.get("norms")[0])`, "(the specification cannot read it without norms)", "NoneType"},
		{`x = rms_norm(x, "n" if c.get("sandwich") else "k", 1e-6)`, "missing tensor k.weight; the specification cannot read it without sandwich", "1 problem"},
	} {
		folder := &mirror{binding: HF, views: map[string]tensor.View{}, config: map[string]any{"model_type": "m", "act": "gelu", "quiet": false, "sandwich": true, "norms": []any{0.5}}}
		for _, name := range []string{"e.weight", "n.weight", "m.weight", "h.weight"} {
			shape := tensor.Shape{9, 4}
			if name == "n.weight" || name == "m.weight" {
				shape = tensor.Shape{4}
			}
			folder.views[name], folder.order = tensor.View{Name: name, Type: quant.F32, Shape: shape}, append(folder.order, name)
		}
		s := &Spec{Name: "other", Source: `serves(model_type = "m", gguf = "m")
def unary_of(c, x):
    quiet = c.get("quiet")
    return gelu(rms_norm(x, "n", 1e-6)) if c.get("act") == "gelu" else silu(rms_norm(x, "n", 1e-6))
def model(c):
    x = embed("e")
    ` + c.body + `
    return linear(x, "h", bias = False)
names(gguf = {"e": "token_embd", "n": "output_norm", "m": "output_norm2", "h": "output"})
ignore("m", "n")
`}
		r, err := s.Rebind(folder)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		if told := strings.Join(r.Notes, "\n"); !strings.Contains(told, c.say) || strings.Contains(told, c.not) {
			t.Errorf("%s: told %q, want %q without %q", c.body, told, c.say, c.not)
		}
	}
	for text, v := range map[string]any{
		"[0, 2.0, Infinity]": []any{int64(0), 2.0, math.Inf(1)}, `["a", "b"]`: []any{"a", "b"}, "not set": "", "null": starlark.None, `{"a": 0.5}`: map[string]any{"a": float32(0.5)},
	} {
		got := setText(v)
		if text == "null" {
			got = ValueText(v)
		}
		if got != text {
			t.Errorf("%v is told as %s, want %s", v, got, text)
		}
	}
	if got := inWords([]string{"unary.F", "route.Renorm", "route.RenormEps", "pool.How"}); got != "the activation, the renormalisation of the experts' weights, how of pool" {
		t.Error(got)
	}
}
