package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

const docTernary = `ternary(w)
Weights of −1, 0 and 1 from bytes [n, k] that hold four rows each: byte row r gives the rows r, r + n, r + 2n and r + 3n of [4n, k], two bits a weight, the lowest first,
each stored as the weight plus 1. Source: transformers, unpack_weights of its integrations.
- w: the name of a stored tensor of bytes, or a weight.
Errors: a tensor that is not of bytes.
`

// doTernary unpacks rows of two-bit weights.
func doTernary(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var given starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "w", &given); err != nil {
		return nil, err
	}
	w, err := t.named(given)
	if err != nil || w.w == nil {
		return w, err
	}
	if w.typ != quant.U8 || len(w.w.Shape) != 2 {
		return nil, fmt.Errorf("ternary: %v is %s %v, expected a matrix of bytes (U8)", w.w, w.typ, w.w.Shape)
	}
	parts := make([]*weightValue, 4)
	for i, f := range []string{"bits_0", "bits_2", "bits_4", "bits_6"} {
		if parts[i], err = w.derive(name, false, func(x *graph.Weight) (*graph.Weight, error) { return graph.MapWeight(x, f) }); err != nil {
			return nil, err
		}
		parts[i].typ = quant.F32
	}
	return t.concatWeights(parts, 0)
}
