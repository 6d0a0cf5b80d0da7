package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// mirror stands for the files of the other binding before they are written.
type mirror struct {
	binding, arch string
	config        map[string]any
	views         map[string]tensor.View
	order         []string
}

func (m *mirror) Binding() string                        { return m.binding }
func (m *mirror) Config() map[string]any                 { return m.config }
func (m *mirror) Architecture() string                   { return m.arch }
func (m *mirror) TensorNames() []string                  { return m.order }
func (m *mirror) Tensor(name string) (tensor.View, bool) { v, ok := m.views[name]; return v, ok }

func (m *mirror) add(name string, shape []int) {
	if _, ok := m.views[name]; !ok {
		m.views[name] = tensor.View{Name: name, Type: quant.F32, Shape: slices.Clone(shape)}
		m.order = append(m.order, name)
	}
}

// mirror lists the tensors of the other binding with their likely shapes.
func (r *rebinder) mirror() error {
	r.to = &mirror{binding: r.result.Binding, arch: r.result.Architecture, views: map[string]tensor.View{}}
	r.unnamed = nil
	turned, kernels := turnedTensors(r.from.b.G), kernelTensors(r.from.b.G)
	aside, err := r.declaredAside()
	if err != nil {
		return err
	}
	for _, a := range r.from.asked.tensors {
		shape := a.shape
		if a.w.Op == graph.WTensor && turned[a.w.Name] && len(shape) == 2 {
			shape = []int{shape[1], shape[0]}
		}
		names := r.targetNames(a)
		if len(names) == 0 {
			if a.experts == 0 && r.result.Binding == GGUF {
				r.unnamed = append(r.unnamed, a)
			}
			continue
		}
		if len(names) > 1 {
			shape = shape[1:]
		} else if standsAside(aside, a.name) {
			r.aside[names[0]] = true
		}
		if r.result.Binding == GGUF {
			if shape, err = r.ggufShape(names[0], shape); err != nil {
				return err
			}
		} else {
			if shape, err = r.folderShape(a, shape, kernels); err != nil {
				return err
			}
		}
		for _, n := range names {
			r.to.add(n, shape)
		}
	}
	if r.result.Binding == GGUF {
		r.ropeFactors()
	}
	return nil
}

// declaredAside are the patterns of gguf(aside=…) for this model.
func (r *rebinder) declaredAside() (list []matcher, err error) {
	if r.result.Binding != GGUF {
		return nil, nil
	}
	for _, f := range r.from.asked.aside {
		v, err := starlark.Call(r.from.thread, f, starlark.Tuple{r.from.config.root()}, nil)
		if err != nil {
			return nil, r.from.fail(err)
		}
		if v == starlark.None {
			continue
		}
		if n := starlark.Len(v); n > maxAsidePatterns {
			return nil, r.wrong(f, "aside", "%d patterns, at most %d are taken", n, maxAsidePatterns)
		}
		names, err := stringList(v)
		if err != nil {
			return nil, r.wrong(f, "aside", "%w", err)
		}
		for _, n := range names {
			m, err := newMatcher(n)
			if err != nil {
				return nil, r.wrong(f, "aside", "%s: %w", cut(n), err)
			}
			list = append(list, m)
		}
	}
	return list, nil
}

// standsAside says that patterns of gguf(aside=…) name a tensor.
func standsAside(list []matcher, name string) bool {
	key, _ := generalise(name)
	return slices.ContainsFunc(list, func(m matcher) bool { return m.fits(name, key) })
}

// traceMirror traces the specification over the mirror. A matrix that the two
// bindings store transposed shows as a mismatch of shapes: it is turned, once,
// and so are its like of other layers.
func (r *rebinder) traceMirror() (*tracer, error) {
	turned := map[string]bool{}
	for turn := 0; ; turn++ {
		o := Options{AllowUnused: true}
		if r.result.Binding == GGUF { // config.json says it itself
			o.Set = r.s.opts.Set
		}
		t := newTracer(r.to, o)
		t.asked = newAsked()
		r.last = t.asked
		t.asked.supply, t.asked.lacking = r.supply, r.lacking
		_, err := t.run(r.s.fileName(), r.s.Source)
		if err == nil {
			return t, nil
		}
		if turn > maxTurns || !r.turn(err.Error(), turned) {
			return t, fmt.Errorf("spec: %w: %w", ErrRebind, err)
		}
	}
}

// maxTurns bounds the traces that turning takes: one for each kind of matrix.
const maxTurns = 16

// turn transposes the matrices that problems name, with .weight or without;
// false where there is none that was not turned yet.
func (r *rebinder) turn(problems string, turned map[string]bool) bool {
	fresh := map[string]bool{}
	for _, name := range r.to.order {
		v := r.to.views[name]
		key, _ := generalise(name)
		if len(v.Shape) == 2 && v.Shape[0] != v.Shape[1] && !turned[key] && mentionsName(problems, name) {
			fresh[key] = true
		}
	}
	for _, name := range r.to.order {
		if key, _ := generalise(name); fresh[key] && len(r.to.views[name].Shape) == 2 {
			v := r.to.views[name]
			v.Shape = []int{v.Shape[1], v.Shape[0]}
			r.to.views[name] = v
		}
	}
	maps.Copy(turned, fresh)
	return len(fresh) > 0
}

// mentionsName says whether a text names a tensor, not a longer name that contains it.
func mentionsName(text, name string) bool {
	base, _ := cutSuffix(name)
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" ,()[]:\n", r) }) {
		if w == name || w == base {
			return true
		}
	}
	return false
}

// turnedTensors are those that every use transposes.
func turnedTensors(g *graph.Graph) map[string]bool {
	turned, plain := map[string]bool{}, map[string]bool{}
	seen := map[*graph.Weight]bool{}
	var walk func(w, parent *graph.Weight)
	walk = func(w, parent *graph.Weight) {
		if w == nil || seen[w] && w.Op != graph.WTensor {
			return
		}
		seen[w] = true
		if w.Op == graph.WTensor {
			if parent != nil && parent.Op == graph.WTranspose {
				turned[w.Name] = true
			} else {
				plain[w.Name] = true
			}
		}
		for _, a := range w.Parts() {
			walk(a, w)
		}
	}
	eachWeight(g, func(w *graph.Weight) { walk(w, nil) })
	for name := range plain {
		delete(turned, name)
	}
	return turned
}

// supply adds to the mirror the experts of a pattern that only the other
// binding names, because the files at hand store them fused. Their shape is
// that of the same part of the same mixture.
func (r *rebinder) supply(t *tracer, pattern string, n int) {
	target := askedTensor{name: pattern, experts: n}
	names := r.targetNames(target)
	if len(names) == 0 {
		return
	}
	if _, ok := r.to.views[names[0]]; ok {
		return
	}
	mixtures := 0
	for _, node := range t.b.G.Nodes {
		if node.Op == graph.OpExperts {
			mixtures++
		}
	}
	for _, node := range r.from.b.G.Nodes {
		a, ok := node.Attr.(*graph.ExpertsAttr)
		if !ok {
			continue
		}
		if mixtures--; mixtures >= 0 {
			continue
		}
		w := partOf(a, pattern)
		if w == nil || len(w.Shape) < 2 || n > 0 && w.Shape[0] != n {
			return
		}
		shape := w.Shape
		if len(names) > 1 {
			shape = shape[1:]
		}
		for _, name := range names {
			r.to.add(name, shape)
		}
		return
	}
}

// partOf is the weight of a mixture that a name means.
func partOf(a *graph.ExpertsAttr, pattern string) *graph.Weight {
	last := pattern[strings.LastIndex(pattern, ".")+1:]
	if !strings.Contains(pattern, "{e}.") { // one tensor for all: only biases are stored so
		return map[string]*graph.Weight{"gate_bias": a.GateBias, "up_bias": a.UpBias, "down_bias": a.DownBias}[last]
	}
	switch {
	case strings.Contains(last, "gate") || last == "w1":
		return a.Gate
	case strings.Contains(last, "up") || last == "w3" || last == "v1":
		return a.Up
	case strings.Contains(last, "down") || last == "w2":
		return a.Down
	}
	return nil
}

// ggufShape is the shape that GGUF's readers want: what gguf(shape=…) says of
// the tensor, else without sizes of one in the middle, as of convolutions.
func (r *rebinder) ggufShape(name string, shape []int) ([]int, error) {
	if out, err := r.declaredShape(name, shape); out != nil || err != nil {
		return out, err
	}
	out := slices.Clone(shape)
	for i := len(out) - 2; i > 0; i-- {
		if out[i] == 1 {
			out = slices.Delete(out, i, i+1)
		}
	}
	return out, nil
}

// declaredShape is what gguf(shape=…) says of a tensor, in the words of either
// format; nil where it says nothing.
func (r *rebinder) declaredShape(name string, shape []int) ([]int, error) {
	base, _ := cutSuffix(name)
	base = base[strings.LastIndex(base, ".")+1:]
	for _, d := range r.from.asked.shapes {
		v, found, err := d.Get(starlark.String(base))
		if err != nil || !found {
			continue
		}
		if f, is := v.(starlark.Callable); is {
			if v, err = starlark.Call(r.from.thread, f, starlark.Tuple{r.from.config.root()}, nil); err != nil {
				return nil, r.from.fail(err)
			}
		}
		var want intList
		if err := want.Unpack(v); err != nil {
			return nil, fmt.Errorf("spec: gguf: shape of %s: %w", base, err)
		}
		out, p := slices.Clone([]int(want)), 1
		for _, n := range out {
			p *= max(n, -n)
		}
		for i, n := range out {
			if n == -1 && p > 0 {
				out[i] = graph.Product(shape) / p
			}
		}
		if graph.Product(out) != graph.Product(shape) {
			return nil, fmt.Errorf("spec: gguf: shape of %s: %v does not fill %v", base, shape, want)
		}
		return out, nil
	}
	return nil, nil
}
