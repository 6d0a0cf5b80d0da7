package spec

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// loopFiles hold what the guide's examples of recur read.
func loopFiles() *shapeFiles {
	f := stateFiles()
	for name, shape := range map[string]tensor.Shape{"lstm.weight_ih.weight": {16, 24}, "lstm.weight_hh.weight": {16, 4}, "ttt.W": {2, 4, 4}} {
		f.tensors[name] = tensor.View{Name: name, Type: quant.F32, Shape: shape}
	}
	return f
}

// TestGuideLoops traces the guide's examples of recur, and the graph as JSON and back.
func TestGuideLoops(t *testing.T) {
	guide, err := os.ReadFile("../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n### Any other recurrence\n.*?```python\n(.*?)```").FindSubmatch([]byte(strings.ReplaceAll(string(guide), "\r\n", "\n")))
	if m == nil {
		t.Fatal("the guide has no examples of recur")
	}
	names := "x, d, n = e, 4, 2\nq, k, v, rate = grid, grid, grid, slice(grid, 0, 1)\n"
	for _, part := range strings.Split(strings.TrimSpace(string(m[1])), "\n\n") {
		tr, err := traceText(loopFiles(), stateSpec(names+part+"\nreturn merge(y)"))
		if err != nil {
			t.Errorf("%v in\n%s", err, part)
			continue
		}
		raw, err := graph.Encode(tr.Graph)
		if err != nil {
			t.Fatal(err)
		}
		back, err := graph.Decode(raw)
		if err != nil || graph.Text(back, graph.PrintOptions{}) != graph.Text(tr.Graph, graph.PrintOptions{}) {
			t.Errorf("the graph changes as JSON: %v", err)
		}
	}
}

// TestLoopErrors names what a step may not hold or return.
func TestLoopErrors(t *testing.T) {
	for step, says := range map[string]string{
		"return attention(grid, grid, grid)":                               "recur: attention cannot stand in a step",
		"return [s[0]], conv1d(s[0], \"conv\")":                            "cannot stand in a step",
		"return [s[0]], recur(lambda r: (r, r[0]), s)":                     "a step cannot hold a recurrence",
		"return [s[0]], embed(\"embed\")":                                  "recur: embed cannot stand in a step",
		"return s[0]":                                                      "recur: step returns the list of new states and the result",
		"return [s[0], s[0]], s[0]":                                        "recur: step returns a list of 1 new states first",
		"return [grid], s[0]":                                              "recur: state 0 is [8] and becomes [2 4]",
		"return [s[0] + slice(row, 0, 3)], s[0]":                           "[8] and [3] do not fit",
		"return [linear(s[0], \"nothing\")], s[0]":                         "missing tensor nothing.weight",
		"return [s[0]], linear_scan(s[0], -1)":                             "recur: linear_scan cannot stand in a step",
		"return [s[0]], gated_delta(grid, grid, grid)":                     "cannot stand in a step",
		"return [s[0]], 3":                                                 "recur: ",
		"return [s[0]], pool(row)":                                         "recur: pool cannot stand in a step",
		"return [s[0]], doubly_stochastic(reshape(s[0], [2, 2, 2]), 3, 0)": "recur: doubly_stochastic cannot stand in a step",
		"return [s[0]], reverse(row)":                                      "recur: reverse cannot stand in a step",
		"return [s[0]], shift(s[0])":                                       "recur: shift cannot stand in a step",
		"return [s[0]], attention(grid, cache = first)":                    "cache",
		"return [s[0]], rope(grid, rope_table(c, dim = 4))":                "recur: rope cannot stand in a step",
		"keep.append(s[0])\n        return [s[0]], s[0]":                   "is used outside of it",
	} {
		lines := "keep = []\nfirst = attention(grid, grid, grid)\ndef step(s):\n        " + step + "\ny = recur(step, [const([0] * 8)])\nreturn merge(y) + (keep[0] if keep else 0)"
		_, err := traceText(loopFiles(), strings.ReplaceAll(stateSpec(lines), "\n            ", "\n        "))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, expected …%s…", step, err, says)
		}
	}
	for start, says := range map[string]string{"row": "recur: ", "[row]": "recur: state 0 begins with a value of the token", "[]": "recur: 0 states", "[1]": "recur: start: "} {
		_, err := traceText(loopFiles(), stateSpec("y = recur(lambda s: (s, row), "+start+")\nreturn merge(y)"))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("start %s: got %v, expected …%s…", start, err, says)
		}
	}
}
