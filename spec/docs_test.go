package spec

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
)

// TestGuideExample traces the guide's first specification.
func TestGuideExample(t *testing.T) {
	guide, err := os.ReadFile("../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```python\n(# tiny.star.*?)```").FindSubmatch(guide)
	if m == nil {
		t.Fatal("the guide has no example")
	}
	tr, err := trace("tiny.star", string(m[1]), loadShapes(t, "llama.hf"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := resolveAndTrace(loadShapes(t, "llama.hf"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Graph.Nodes) != len(want.Graph.Nodes) {
		t.Errorf("the example has %d operations, the shipped one %d", len(tr.Graph.Nodes), len(want.Graph.Nodes))
	}
	// It serves a GGUF of its kind alike, the order of rows included.
	if tr, err = trace("tiny.star", string(m[1]), loadShapes(t, "llama.gguf"), Options{}); err != nil {
		t.Fatal(err)
	}
	if want, err = resolveAndTrace(loadShapes(t, "llama.gguf"), Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := linears(tr.Graph), linears(want.Graph); !slices.Equal(got, want) {
		t.Errorf("the example multiplies by %q, the shipped one by %q", got, want)
	}
}

// linears lists the weights of a graph's linears, sorted.
func linears(g *graph.Graph) []string {
	var list []string
	for _, n := range g.Nodes {
		if a, ok := n.Attr.(*graph.LinearAttr); ok {
			list = append(list, graph.WeightText(a.W))
		}
	}
	slices.Sort(list)
	return list
}
