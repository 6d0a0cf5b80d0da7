package spec

import (
	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docName = `name(x, text)
x itself, under a name that "spec trace" compares with a reference's activations: name(x, "model.layers.0.mlp"). Embeddings, linears and norms bear the name of their
weight anyway, and layers that of what their names have in common.
- x: a value.
- text: the name of the module whose output the value is, or any other that the file of activations has.
`

func doName(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var text string
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "text", &text); err != nil {
		return nil, err
	}
	if x.node != nil {
		t.b.G.Named = append(t.b.G.Named, graph.Output{Name: text, Node: x.node.ID})
	}
	return x, nil
}
