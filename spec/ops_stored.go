package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/tensor"
)

const docStoredNumbers = `stored_numbers(name)
The numbers of a small stored tensor as a list, for gguf(write=…) where GGUF has them among its metadata; it does not count as read.
- name: the tensor's reference name, without a change of weights(…). An error where it is missing, or has more than 65,536 numbers.
`

func doStoredNumbers(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var n string
	if err := starlark.UnpackArgs(name, args, kwargs, "name", &n); err != nil {
		return nil, err
	}
	for _, full := range []string{n, n + ".weight"} {
		for _, c := range t.names.candidates(full) {
			if v, ok := t.files.Tensor(c); ok {
				values, ok := smallTensor(v)
				if !ok {
					return nil, fmt.Errorf("stored_numbers: %s %s %v: its numbers are not at hand; at most %d of a type that decodes are", n, v.Type, v.Shape, maxSmall)
				}
				out := make(starlark.Tuple, len(values))
				for i, x := range values {
					out[i] = starlark.Float(x)
				}
				return out, nil
			}
		}
	}
	return nil, fmt.Errorf("stored_numbers: no tensor %s is stored", n)
}

// maxSmall bounds the numbers of a tensor that a trace looks into.
const maxSmall = 1 << 16

// smallTensor are the numbers of a small tensor; ok is false where it is larger,
// or its bytes are not at hand.
func smallTensor(v tensor.View) (list []float64, ok bool) {
	n := v.Shape.Elements()
	if v.Shape == nil || v.Data == nil || n < 1 || n > maxSmall || v.Type.CanDecode() != nil {
		return nil, false
	}
	values := make([]float32, n)
	if v.Type.Decode(values, v.Data) != nil {
		return nil, false
	}
	for _, x := range values {
		list = append(list, float64(x))
	}
	return list, true
}
