package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/tensor"
)

// convertingKey stands among the metadata of a GGUF file that is about to be
// made: a specification may then undo in the weights what it otherwise
// computes with, as the order of columns, which blocks cannot change.
const convertingKey = "converting"

// supplied is a tensor that only the files to be made have; nil where no
// conversion is under way, or nothing says its shape.
func (t *tracer) supplied(name string, shape []int) (*weightValue, error) {
	if t.asked == nil || t.asked.lacking == nil {
		return nil, nil
	}
	stored := t.asked.lacking(t, name, shape)
	if stored == "" {
		return nil, nil
	}
	w, err := t.open(name, stored)
	if w != nil {
		t.weights[name] = w
	}
	return w, err
}

// lacking adds to the mirror a tensor that the files at hand hold in another
// form, as one of several that they join. Its shape is the given one, else that
// of the weight which the step about to be made has in the other trace.
func (r *rebinder) lacking(t *tracer, name string, shape []int) string {
	names := r.targetNames(askedTensor{name: name})
	if len(names) == 0 {
		return ""
	}
	if at := len(t.b.G.Nodes); shape == nil && at < len(r.from.b.G.Nodes) {
		if a, ok := r.from.b.G.Nodes[at].Attr.(*graph.LinearAttr); ok && a.W != nil {
			shape = a.W.Shape
		}
	}
	if shape == nil {
		return ""
	}
	if _, ok := r.to.views[names[0]]; !ok {
		r.to.add(names[0], slices.Clone(shape))
	}
	if list, err := r.declaredAside(); err == nil && standsAside(list, name) {
		r.aside[names[0]] = true
	}
	return names[0]
}

// kernelTensors are those that convolutions read.
func kernelTensors(g *graph.Graph) map[string]bool {
	kernels := map[string]bool{}
	for _, n := range g.Nodes {
		if a, ok := n.Attr.(*graph.ConvAttr); ok && a.W != nil {
			for _, name := range a.W.Tensors(nil) {
				kernels[name] = true
			}
		}
	}
	return kernels
}

// folderShape is the shape of a folder's tensor: what gguf(shape=…) says under
// its name there, that of PyTorch's convolutions, one dimension where
// gguf(shape=…) says that GGUF has more.
func (r *rebinder) folderShape(a askedTensor, shape []int, kernels map[string]bool) ([]int, error) {
	names := a.w.Tensors(nil)
	if out, err := r.declaredShape(a.name, shape); out != nil || err != nil || len(names) != 1 {
		if out == nil {
			out = shape
		}
		return out, err
	}
	if n := len(shape); kernels[names[0]] && n > 1 { // GGUF has sizes of one before and between, or none
		return []int{graph.Product(shape[:n-1]), 1, shape[n-1]}, nil
	}
	base, _ := cutSuffix(names[0])
	base = base[strings.LastIndex(base, ".")+1:]
	for _, d := range r.from.asked.shapes {
		if _, found, err := d.Get(starlark.String(base)); err == nil && found && !kernels[names[0]] {
			return []int{graph.Product(shape)}, nil
		}
	}
	return shape, nil
}

// OwnFolderKey is the metadata key under which a GGUF file of our own making
// lists the tensors of the folder that it was made of: {name: shape}.
const OwnFolderKey = "inferflow.folder"

// layout prepares the mirror of the folder that a GGUF file was made of; false
// where it does not say, or says what cannot be.
func (r *rebinder) layout() bool {
	if r.result.Binding != HF || !r.from.config.owns() {
		return false
	}
	shapes, err := decodeLayout(r.files.Config())
	if err != nil || shapes == nil {
		return false
	}
	r.to = &mirror{binding: HF, views: make(map[string]tensor.View, len(shapes))}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		r.to.add(name, shapes[name])
	}
	return true
}

// writeLayout adds what layout reads. Folders of several parts and quantised
// ones come back as those of the text model in plain numbers.
func (r *rebinder) writeLayout(meta map[string]any) error {
	if r.s.part || r.dequantised() {
		return nil
	}
	shapes := map[string][]int{}
	for _, name := range r.files.TensorNames() {
		if v, ok := r.files.Tensor(name); ok && v.Shape != nil && v.Shape.Elements() > 0 {
			shapes[name] = v.Shape
		}
	}
	raw, err := json.Marshal(shapes)
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	meta[OwnFolderKey] = string(raw)
	return nil
}

// dequantised says that the folder holds factors beside its weights, which the
// conversion multiplies.
func (r *rebinder) dequantised() bool {
	q := quantizationOf(r.files.Config())
	return q.method != "" && !slices.Contains(r.from.methods, q.method)
}

// ownConfig is the config.json that the file to be made carries.
func (r *rebinder) ownConfig() (string, error) {
	config := r.files.Config()
	if r.dequantised() {
		config = maps.Clone(config)
		delete(config, "quantization_config")
		delete(config, "compression_config")
	}
	own, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("spec: config.json: %w", err)
	}
	return string(own), nil
}
