package spec

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// stateFiles hold a table of 24 numbers a token and what the guide's examples read.
func stateFiles() *shapeFiles {
	f := &shapeFiles{binding: HF, config: map[string]any{"model_type": "states"}, tensors: map[string]tensor.View{}}
	for name, shape := range map[string]tensor.Shape{
		"embed": {64, 24}, "M.A_log": {8, 3}, "M.D": {8}, "A.time_decay": {8}, "A.time_first": {8}, "A.time_faaaa": {2, 4}, "R.recurrent_param": {8}, "A.key": {5, 8},
		"heads": {1, 1, 4, 1}, "conv.weight": {8, 4, 3}, "conv.bias": {8}, "before.bias": {8},
	} {
		f.tensors[name] = tensor.View{Name: name, Type: quant.F32, Shape: shape}
	}
	return f
}

// stateSpec puts lines into a model whose embedding is e, with parts of it.
func stateSpec(lines string) string {
	return `
serves(model_type = "states")
load("@std/recurrent.star", "grouped_conv")
M, A, R, n, d = "M.", "A.", "R.", 2, 4
slope = lambda h: 0.5 * (h + 1)
def model(c):
    e = embed("embed")
    row = slice(e, 0, 8)
    grid = reshape(row, [2, 4])
` + "    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ") + "\n"
}

// before says what the names in each example of the guide are.
var before = map[string]string{
	"Mamba:":        "u, dt, B, C = row, row, slice(e, 0, 3), slice(e, 3, 6)",
	"Mamba-2:":      "x, B, C, dt = reshape(slice(e, 0, 24), [8, 3]), grid, grid, row",
	"RG-LRU":        "r, i, x = row, row, row",
	"Lightning":     "q, k, v = grid, grid, grid",
	"RWKV-4:":       "k, v = row, row",
	"RWKV-5":        "r, k, v, w = grid, grid, grid, grid",
	"RWKV-7:":       "r, k, v, w, kk, a = grid, grid, grid, grid, grid, grid",
	"DeltaProduct:": "q, k, v, g, beta = grid, reshape(slice(e, 0, 24), [3, 2, 4]), reshape(slice(e, 0, 24), [3, 2, 4]), -1, reshape(slice(e, 0, 6), [3, 2])",
	"Both":          "u, dt, B, C, A = row, row, slice(e, 0, 3), slice(e, 3, 6), -1",
	"mLSTM:":        "q, k, v, f, i = grid, grid, grid, slice(e, 0, 2), slice(e, 0, 2)",
	"Attention":     "q, k, v = grid, grid, grid",
	"RWKV's":        "h, mix = row, 0.5",
}

// TestGuideStates traces every example of the guide's chapter on states.
func TestGuideStates(t *testing.T) {
	guide, err := os.ReadFile("../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n## States\n.*?```python\n(.*?)```").FindSubmatch([]byte(strings.ReplaceAll(string(guide), "\r\n", "\n")))
	if m == nil {
		t.Fatal("the guide has no examples of states")
	}
	for _, part := range strings.Split(strings.TrimSpace(string(m[1])), "\n\n") {
		names, ok := before[strings.Fields(part)[1]]
		if !ok {
			t.Fatalf("nothing is said of the names in\n%s", part)
		}
		lines := strings.Split(part, "\n")
		last, _, _ := strings.Cut(lines[len(lines)-1], " = ")
		text := part
		if strings.Contains(part, "Mamba-2") { // whose A is a vector
			text = strings.ReplaceAll(part, `M + "A_log"`, `A + "time_decay"`)
		}
		tr, err := traceText(stateFiles(), stateSpec(names+"\n"+text+"\nreturn merge("+last+")"))
		if err != nil {
			t.Errorf("%v in\n%s", err, part)
		} else if len(tr.Graph.Caches) == 0 {
			t.Errorf("no state is kept by\n%s", part)
		}
	}
}

// TestStateOperands: a rate is a value, a weight of any shape of so many numbers, or a number.
func TestStateOperands(t *testing.T) {
	for lines, say := range map[string]string{
		"return linear_scan(row, -0.1)":                                                                        "",
		"return linear_scan(grid, row)":                                                                        "",
		"return linear_scan(row, tensor(\"A.time_decay\"))":                                                    "",
		"return linear_scan(row, slice(e, 0, 4))":                                                              "the decay is [8] as x, got [4]",
		"return linear_attention(grid, grid, grid)":                                                            "",
		"return linear_attention(None, None, grid)":                                                            "",
		"return linear_attention(None, grid, grid)":                                                            "both None or neither",
		"return linear_attention(grid, grid, grid, norm = 1)":                                                  "norm is \"sum\", \"max\" or None",
		"return linear_attention(grid, grid, grid, norm = \"mean\")":                                           "no norm \"mean\"",
		"return linear_attention(grid, grid, grid, i = slice(e, 0, 2))":                                        "needs a norm",
		"return linear_attention(grid, grid, grid, grid, i = slice(e, 0, 2), norm = \"max\")":                  "the decay g is [2], got [2 4]",
		"return ssd_scan(reshape(e, [4, 6]), grid, grid, slice(e, 0, 4), \"heads\")":                           "",
		"return ssd_scan(reshape(e, [4, 6]), grid, grid, slice(e, 0, 4), -1)":                                  "",
		"return ssd_scan(reshape(e, [4, 6]), grid, grid, slice(e, 0, 4), row)":                                 "A is [4] or [4, 4], got [8]",
		"return ssd_scan(reshape(e, [4, 6]), grid, grid, slice(e, 0, 4), None)":                                "expected a value, a weight or a number",
		"return gated_delta(grid, grid, grid)":                                                                 "",
		"return gated_delta(grid, grid, grid, g = -0.1, beta = slice(e, 0, 2))":                                "",
		"return general_delta(grid, grid, grid, -0.1, grid, row)":                                              "a and b are [2 4] as k, got [2 4] and [8]",
		"return shift(row, 0)":                                                                                 "",
		"return shift(row, 99999)":                                                                             "by 99999 tokens",
		"return grouped_conv(shift(row), \"conv\", 2, add = param(\"before.bias\"))":                           "",
		"return linear_attention(grid, grid, grid, -0.1, i = 0, u = tensor(\"A.time_first\"), norm = \"sum\")": "the bonus u is [2], got [8]",
	} {
		_, err := traceText(stateFiles(), stateSpec(lines))
		switch {
		case say == "" && err != nil:
			t.Errorf("%s: %v", lines, err)
		case say != "" && (err == nil || !strings.Contains(err.Error(), say)):
			t.Errorf("%s: got %v, expected %q", lines, err, say)
		}
	}
}
