package spec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
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
			f, err := r.filling(item[0], item[1])
			if err != nil {
				return nil, r.wrong(d, "fill", "%s: %w", shortValue(item[0]), err)
			}
			list = append(list, f)
		}
	}
	return list, nil
}

var errFill = errors.New("want {tensor: the tensor that it repeats}, {bias: 0}, {bias: (the tensor whose rows it is for, 0)} or {tensor: (a tensor of its layers, numbers)}")

// filling reads an entry of gguf(fill=…).
func (r *rebinder) filling(key, value starlark.Value) (f filling, err error) {
	name, ok := starlark.AsString(key)
	if !ok {
		return f, errFill
	}
	if _, holes := generalise(name); r.filledName(filling{name: name}, fill(name, holes, zeros(len(holes)))) == "" {
		return f, errors.New("GGUF has no name for it")
	}
	f.name = name
	if of, is := starlark.AsString(value); is {
		f.of, f.copies = of, true
		return f, nil
	}
	if isZero(value) && strings.HasSuffix(name, ".bias") {
		f.of = baseName(name) + ".weight"
		return f, nil
	}
	pair, is := value.(starlark.Tuple)
	if !is || len(pair) != 2 {
		return f, errFill
	}
	if f.of, ok = starlark.AsString(pair[0]); !ok || f.of == "" {
		return f, errFill
	}
	if !isZero(pair[1]) {
		f.numbers, err = r.fillNumbers(f, pair[1])
	}
	return f, err
}

func isZero(v starlark.Value) bool {
	n, is := v.(starlark.Int)
	return is && n.Sign() == 0
}

// zeros are numbers of layers.
func zeros(n int) []string { return slices.Repeat([]string{"0"}, n) }

// fillNumbers are the numbers that gguf(fill=…) gives, or a function of c: at
// most as many as the tensor has that they are for, and for a bias one a row.
func (r *rebinder) fillNumbers(f filling, v starlark.Value) (list []float64, err error) {
	sources := r.sources(f.of)
	if len(sources) == 0 { // not in this model
		return []float64{}, nil
	}
	if g, is := v.(starlark.Callable); is {
		if v, err = starlark.Call(r.from.thread, g, starlark.Tuple{r.from.config.root()}, nil); err != nil {
			return nil, r.from.fail(err)
		}
	}
	it, ok := v.(starlark.Sequence)
	if !ok {
		return nil, errFill
	}
	shape := sources[0].w.Shape
	n, most := it.Len(), graph.Product(shape)
	switch rows := shape[0]; {
	case strings.HasSuffix(f.name, ".bias") && baseName(f.name) == baseName(f.of) && n != rows:
		return nil, fmt.Errorf("%d numbers for the %d rows of %s", n, rows, cut(f.of))
	case n == 0 || n > most:
		return nil, fmt.Errorf("%d numbers, from 1 to the %d of %s are taken", n, most, cut(f.of))
	}
	for x := range starlark.Elements(it) {
		v, ok := starlark.AsFloat(x)
		if !ok || math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
			return nil, fmt.Errorf("number %d: %w: %s", len(list), errUnwritable, shortValue(x))
		}
		list = append(list, v)
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
