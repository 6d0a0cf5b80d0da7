package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docName = `name(x, text)
x itself, under a name that "spec trace" compares with a reference's activations: name(x, "model.layers.0.mlp"). Embeddings, linears and norms bear the name of their
weight anyway, and layers that of what their names have in common. name(x, None) takes that name away, where the module of the name gives something else. The
second use of a weight is compared with the second call of its module, NAME#2 in the file.
- x: a value.
- text: the name of the module whose output the value is, or any other that the file of activations has; None: none.
`

func doName(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var text starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "text", &text); err != nil {
		return nil, err
	}
	s, isText := starlark.AsString(text)
	switch {
	case !isText && text != starlark.None:
		return nil, fmt.Errorf("name: a name is a string or None, got %s", text.Type())
	case x.node == nil:
	case isText:
		t.b.G.Named = append(t.b.G.Named, graph.Output{Name: s, Node: x.node.ID})
	default:
		x.node.Name = ""
	}
	return x, nil
}
