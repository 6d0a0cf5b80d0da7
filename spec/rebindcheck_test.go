package spec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestReadBack refuses specifications that read the file to be made otherwise
// than the folder, though they say the same while it is being made.
func TestReadBack(t *testing.T) {
	folder := &mirror{binding: HF, config: map[string]any{"model_type": "m", "eps": 1e-5}, views: map[string]tensor.View{}}
	for name, shape := range map[string][]int{"e.weight": {9, 4}, "n.weight": {4}, "h.weight": {9, 4}} {
		folder.views[name], folder.order = tensor.View{Name: name, Type: quant.F32, Shape: shape}, append(folder.order, name)
	}
	for _, c := range []struct{ norm, say string }{
		{`rms_norm(x, "n", c.eps)`, ""},
		{`rms_norm(x, "n", c.eps if c.binding == "hf" or c.raw("converting", False) else 0.5)`, "read back, it has other norm.Eps"},
		{`rms_norm(x * 2 if c.binding == "hf" or c.raw("converting", False) else x, "n", c.eps)`, "other.star:4 computes by different steps"},
		{`rms_norm(x, tensor("n") if c.binding == "hf" or c.raw("converting", False) else tensor("n") + 1, c.eps)`, "read back, output_norm.weight is"},
	} {
		s := &Spec{Name: "other", Source: fmt.Sprintf(`serves(model_type = "m", gguf = "m")
def model(c):
    x = embed("e")
    return linear(%s, "h", bias = False)
names(gguf = {"e": "token_embd", "n": "output_norm", "h": "output"})
`, c.norm)}
		_, err := s.Rebind(folder)
		if c.say == "" && err != nil || c.say != "" && (!errors.Is(err, ErrRebind) || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v, want %q", c.norm, err, c.say)
		}
	}
}
