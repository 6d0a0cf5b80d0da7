package spec

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// OutputEmbedding is the output that Trace makes for any model: the hidden
// value pooled, as the folder says, else the specification, else the mean.
const OutputEmbedding = "embedding"

// ErrOutput marks an output that a model does not have.
var ErrOutput = errors.New("the model has no such output")

const docTokenTypes = `token_types()
The token's type, as a number: which text of a pair it belongs to, 0 where the request has no pair. Shape [].
`

func doTokenTypes(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(name, args, kwargs); err != nil {
		return nil, err
	}
	return t.made(t.b.Add(graph.OpTypes, nil, nil))
}

const docPool = `pool(x, how="mean")
One row that stands for the sequence, in place of a row a token, of the same shape. What follows is computed once a sequence. A
model that pools is given each sequence as a whole. Beside rows of tokens the one row stands for every token: x + pool(h) adds it to each.
- x: the value, a row a token.
- how: "cls" (the first row), "last", "mean", "max" (of each component), "mean_sqrt" (Σx/√n), "weighted" (Σ t·xₜ / Σ t, t from 1), or a list of
  them, whose results are joined along the last axis.
`

// doPool is pool(x, how): one way or a list of them, whose results are joined.
func doPool(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	how := strs{"mean"}
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "how?", &how); err != nil {
		return nil, err
	}
	if x.node == nil {
		return x, nil
	}
	var parts []*graph.Node
	for _, h := range how {
		n, err := t.b.Add(graph.OpPool, &graph.PoolAttr{How: h}, nil, x.node)
		if err != nil {
			return t.made(nil, err)
		}
		parts = append(parts, n)
	}
	if len(parts) == 1 {
		return t.made(parts[0], nil)
	}
	return t.made(t.b.Concat(-1, parts...))
}

// choose keeps the named output alone; "" keeps all.
func (t *tracer) choose(output string) error {
	if output == "" || len(t.problems) > 0 {
		return nil
	}
	if output == OutputEmbedding {
		if err := t.embedding(); err != nil {
			return err
		}
	}
	g, ok := graph.Select(t.b.G, output)
	if !ok {
		var names []string
		for _, o := range t.b.G.Outputs {
			names = append(names, o.Name)
		}
		return fmt.Errorf("spec: %w: %q; it has %s", ErrOutput, output, strings.Join(names, ", "))
	}
	t.b.G = g
	return nil
}

// embedding adds the output of that name: by the folder's own modules, else
// the specification's, else by @std's default.
func (t *tracer) embedding() error {
	modules, err := t.config.root().first([]string{sentenceKey}, starlark.None, true)
	if err != nil {
		return err
	}
	if _, ok := graph.Select(t.b.G, OutputEmbedding); ok && modules == starlark.None {
		return nil
	}
	hidden := t.hidden()
	if hidden == nil {
		return fmt.Errorf("spec: %w: %q; the specification names no value \"hidden\" and its logits are no product", ErrOutput, OutputEmbedding)
	}
	std, err := loadStd(nil, stdPrefix+"encoder.star")
	if err != nil {
		return err
	}
	out, err := starlark.Call(t.thread, std["embedding"], starlark.Tuple{t.config.root(), &value{t: t, node: hidden}, modules}, nil)
	if err != nil {
		return t.fail(err)
	}
	v, err := asValue(out)
	if err != nil {
		return err
	}
	var rest []graph.Output
	for _, o := range t.b.G.Outputs {
		if o.Name != OutputEmbedding {
			rest = append(rest, o)
		}
	}
	t.b.G.Outputs = rest
	t.output(OutputEmbedding, v)
	return nil
}

// sentenceKey is the configuration key under which a model's files give what
// the folder's sentence-transformers files say: a list of modules.
const sentenceKey = "sentence_transformers"

// hidden is the output of that name, else what the product that makes the
// logits reads.
func (t *tracer) hidden() *graph.Node {
	g := t.b.G
	for _, o := range g.Outputs {
		if o.Name == "hidden" {
			return g.Nodes[o.Node]
		}
	}
	if len(g.Outputs) == 0 {
		return nil
	}
	n := g.Nodes[g.Outputs[0].Node]
	for n.Op == graph.OpUnary {
		n = g.Nodes[n.In[0]]
	}
	if n.Op != graph.OpLinear {
		return nil
	}
	return g.Nodes[n.In[0]]
}
