package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// OwnFilledKey is the metadata key under which a GGUF file of our own making
// lists, as JSON, the tensors that only other readers want.
const OwnFilledKey = "inferflow.filled"

// filling is an entry of gguf(fill=…): a tensor, and the one that it repeats, or
// whose rows a bias of zeros is for.
type filling struct {
	name, of string
	copies   bool
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
			if !f.copies {
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
			zeros := !copies && strings.HasSuffix(name, ".bias") && item[1].String() == "0"
			if zeros {
				of = baseName(name) + ".weight"
			} else if pair, is := item[1].(starlark.Tuple); is && len(pair) == 2 && pair[1].String() == "0" {
				of, zeros = starlark.AsString(pair[0])
			}
			if !ok || !copies && !zeros {
				return nil, fmt.Errorf("spec: gguf: fill is {tensor: the tensor that it repeats}, {bias: 0} or {bias: (the tensor whose rows it is for, 0)}, got %s: %s", item[0], item[1])
			}
			list = append(list, filling{name, of, copies})
		}
	}
	return list, nil
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
	text, ok := files.Config()[OwnFilledKey].(string)
	var names []string
	if !ok || len(text) > MaxConfig || json.Unmarshal([]byte(text), &names) != nil {
		return nil
	}
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
