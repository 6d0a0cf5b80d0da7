package spec

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/inferflow/inferflow/internal/graph"
)

//go:embed classes.tsv
var classesTable string

// classes maps model_type, a tab and what the model gives to the class that
// config.json names in its architectures.
var classes = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(classesTable) {
		if i := strings.LastIndexByte(line, '\t'); i > 0 && line[0] != '#' {
			out[line[:i]] = strings.TrimSpace(line[i+1:])
		}
	}
	return out
})

// classOf is the class of a model_type whose traced graph is g; "" where none is known.
func classOf(modelType string, g *graph.Graph) string {
	for _, kind := range kinds(g) {
		if c := classes()[modelType+"\t"+kind]; c != "" {
			return c
		}
	}
	return ""
}

// kinds are what a graph gives, in the words of the table, the fitting first.
func kinds(g *graph.Graph) []string {
	has := map[string]bool{}
	for _, o := range g.Outputs {
		has[o.Name] = true
	}
	for _, head := range []string{"scores", "token_scores", "spans"} {
		if has[head] {
			return []string{head}
		}
	}
	for _, c := range g.Caches {
		if c.Memory && c.Kept {
			return []string{"seq2seq"}
		}
	}
	switch {
	case has["logits"] && graph.Whole(g):
		return []string{"masked"}
	case has["logits"]:
		return []string{"causal"}
	}
	return []string{"encoder", "base"}
}
