package spec

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
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

// folderShape is the shape of a folder's tensor: that of PyTorch's
// convolutions, one dimension where gguf(shape=…) says that GGUF has more.
func (r *rebinder) folderShape(a askedTensor, shape []int, kernels map[string]bool) []int {
	names := a.w.Tensors(nil)
	if len(names) != 1 {
		return shape
	}
	if kernels[names[0]] && len(shape) == 2 {
		return []int{shape[0], 1, shape[1]}
	}
	base, _ := cutSuffix(names[0])
	base = base[strings.LastIndex(base, ".")+1:]
	for _, d := range r.from.asked.shapes {
		if _, found, err := d.Get(starlark.String(base)); err == nil && found && !kernels[names[0]] {
			return []int{graph.Product(shape)}
		}
	}
	return shape
}
