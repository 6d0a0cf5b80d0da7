package spec

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// OwnFilledKey is the metadata key under which a GGUF file of our own making
// lists, as JSON, the tensors that only other readers want.
const OwnFilledKey = "inferflow.filled"

// filling is an entry of gguf(fill=…): a tensor, and the one that it repeats, or
// whose rows a bias of zeros is for.
type filling struct {
	name, of string
	copies   bool
	numbers  []float64 // neither a copy nor zeros
}

// fill adds what gguf(fill=…) names and the model does not have.
func (r *rebinder) fill() error {
	if r.result.Binding != GGUF {
		return nil
	}
	values, filled := map[string]*graph.Weight{}, []string{}
	for _, t := range slices.Concat(r.result.Tensors, r.result.Aside) {
		values[t.Name] = t.Value
	}
	list, err := r.fillings()
	if err != nil {
		return err
	}
	for _, f := range list {
		for _, a := range r.sources(f.of) {
			there, from := r.filledName(f, a.name), r.targetNames(a)
			if there == "" || len(from) == 0 || values[there] != nil || values[from[0]] == nil {
				continue
			}
			v := values[from[0]]
			if f.numbers != nil {
				v = &graph.Weight{Op: graph.WConst, Shape: []int{len(f.numbers)}, Data: f.numbers}
				r.to.views[there], r.to.order = numberedView(there, f.numbers), append(r.to.order, there)
			} else if !f.copies {
				v = &graph.Weight{Op: graph.WConst, Shape: v.Shape[:1:1], Data: make([]float64, v.Shape[0])}
			}
			values[there], filled = v, append(filled, there)
			r.result.Tensors = append(r.result.Tensors, ReboundTensor{there, v})
		}
	}
	if len(filled) == 0 {
		return nil
	}
	raw, err := json.Marshal(filled)
	r.result.Metadata[OwnFilledKey] = string(raw)
	return err
}

// fillings are the entries of all gguf(fill=…).
func (r *rebinder) fillings() (list []filling, err error) {
	for _, d := range r.from.asked.fill {
		for _, item := range d.Items() {
			name, ok := starlark.AsString(item[0])
			of, copies := starlark.AsString(item[1])
			var numbers []float64
			zeros := !copies && strings.HasSuffix(name, ".bias") && item[1].String() == "0"
			if zeros {
				of = baseName(name) + ".weight"
			} else if pair, is := item[1].(starlark.Tuple); is && len(pair) == 2 && pair[1].String() == "0" {
				of, zeros = starlark.AsString(pair[0])
			} else if is && len(pair) == 2 {
				if numbers, err = r.fillNumbers(pair[1]); err != nil {
					return nil, err
				}
				of, _ = starlark.AsString(pair[0])
			}
			if !ok || of == "" || !copies && !zeros && numbers == nil {
				return nil, fmt.Errorf("spec: gguf: fill is {tensor: the tensor that it repeats}, {bias: 0}, {bias: (the tensor whose rows it is for, 0)} or {tensor: (a tensor of its layers, numbers)}, got %s: %s", item[0], item[1])
			}
			list = append(list, filling{name, of, copies, numbers})
		}
	}
	return list, nil
}

// fillNumbers are the numbers that gguf(fill=…) gives, or a function of c.
func (r *rebinder) fillNumbers(v starlark.Value) (list []float64, err error) {
	if f, is := v.(starlark.Callable); is {
		if v, err = starlark.Call(r.from.thread, f, starlark.Tuple{r.from.config.root()}, nil); err != nil {
			return nil, r.from.fail(err)
		}
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, nil
	}
	for x := range starlark.Elements(it) {
		f, ok := starlark.AsFloat(x)
		if !ok {
			return nil, fmt.Errorf("spec: gguf: fill: expected numbers, got %s", x.Type())
		}
		list = append(list, f)
	}
	return list, nil
}

// numberedView is a tensor of numbers as a file holds it.
func numberedView(name string, numbers []float64) tensor.View {
	var data []byte
	for _, x := range numbers {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
	}
	return tensor.View{Name: name, Type: quant.F32, Shape: tensor.Shape{len(numbers)}, Data: data}
}

// sources are the tensors of the model that a name of gguf(fill=…) stands for.
func (r *rebinder) sources(name string) (list []askedTensor) {
	pattern, _ := generalise(name)
	for _, a := range r.from.asked.tensors {
		if key, _ := generalise(a.name); a.experts == 0 && (key == pattern || key == pattern+".weight") {
			list = append(list, a)
		}
	}
	return list
}

// filledName is what GGUF calls a tensor to be filled, of the layer of its
// source; "" where it has no name.
func (r *rebinder) filledName(f filling, source string) string {
	_, holes := generalise(f.name)
	_, layer := generalise(source)
	if names := r.targetNames(askedTensor{name: fill(f.name, holes, layer)}); len(names) > 0 {
		return names[0]
	}
	return ""
}

// filled are the tensors of a file of our own making that only other readers want.
func filled(files Files) map[string]bool {
	if files.Binding() != GGUF {
		return nil
	}
	names, err := decodeFilled(files.Config())
	if err != nil || names == nil {
		return nil // such files are not opened
	}
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
