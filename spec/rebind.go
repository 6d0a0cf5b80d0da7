package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// ErrRebind says that a model cannot be written in the other binding.
var ErrRebind = errors.New("the specification cannot say the model in the other format")

// Rebound is a model in the other binding: as a GGUF file where the files at
// hand are a Hugging Face folder, and the other way round.
type Rebound struct {
	Binding      string
	Architecture string         // GGUF
	ModelType    string         // HF
	Classes      []string       // HF: architectures
	Metadata     map[string]any // GGUF: the model's keys with values of the format's types
	Config       map[string]any // HF: config.json
	Tensors      []ReboundTensor
	// Aside are tensors that the format's other readers have no room for; they
	// refuse a file with more tensors than they know.
	Aside []ReboundTensor
	// Notes say what the format's other readers will take otherwise.
	Notes []string
}

// ReboundTensor is a tensor of the other binding as an expression over those
// of the files at hand.
type ReboundTensor struct {
	Name  string
	Value *graph.Weight
}

// asked records what a trace asked for. A nil one records nothing.
type asked struct {
	tensors []askedTensor
	seen    map[string]bool
	paused  int
	groups  []askedKeys
	keys    map[string][]string // gguf(config=…): key of config.json → GGUF keys
	write   []*starlark.Dict    // gguf(write=…): GGUF key → value or function of c
	differs []starlark.Callable // gguf(differs=…): how llama.cpp answers otherwise
	folder  []*starlark.Dict    // gguf(folder=…): key of config.json → value or function of c
	shapes  []*starlark.Dict    // gguf(shape=…): tensor of a block → sizes or function of c
	aside   []starlark.Callable // gguf(aside=…): tensors that llama.cpp has no room for
	// supply adds a stack of experts that the other binding names otherwise.
	supply func(t *tracer, pattern string, n int)
	// lacking adds a tensor that only the other binding has.
	lacking func(t *tracer, name string, shape []int) (stored string)
}

// askedTensor is a reference name that was found; experts is above 0 for a
// pattern with {e}.
type askedTensor struct {
	name    string
	experts int
	shape   []int
	w       *graph.Weight
}

// askedKeys are the names under which a value was looked for.
type askedKeys struct {
	prefix  string
	keys    []string
	value   starlark.Value
	missing bool // value is the specification's default
}

func (a *asked) tensor(name string, experts int, w *weightValue) {
	if a == nil || a.paused > 0 || w == nil || w.w == nil || a.seen[name] {
		return
	}
	a.seen[name] = true
	a.tensors = append(a.tensors, askedTensor{name, experts, w.w.Shape, w.w})
}

func (a *asked) pause() {
	if a != nil {
		a.paused++
	}
}

func (a *asked) goOn() {
	if a != nil {
		a.paused--
	}
}

func (a *asked) config(prefix string, keys []string, v starlark.Value, missing bool) {
	if a != nil {
		a.groups = append(a.groups, askedKeys{prefix, keys, v, missing})
	}
}

func (a *asked) mapped(key string, alts []string) {
	if a != nil {
		a.keys[key] = alts
	}
}

func (a *asked) declared(write, shape, folder *starlark.Dict, differs, aside starlark.Callable) {
	if a == nil {
		return
	}
	if aside != nil {
		a.aside = append(a.aside, aside)
	}
	if folder != nil {
		a.folder = append(a.folder, folder)
	}
	if differs != nil {
		a.differs = append(a.differs, differs)
	}
	if write != nil {
		a.write = append(a.write, write)
	}
	if shape != nil {
		a.shapes = append(a.shapes, shape)
	}
}

func newAsked() *asked { return &asked{seen: map[string]bool{}, keys: map[string][]string{}} }

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

// rebinder holds both sides of a conversion.
type rebinder struct {
	s      *Spec
	files  Files
	from   *tracer // traced over the files at hand
	table  *tracer // knows the names and keys of the other binding
	to     *mirror
	rule   servesRule
	result *Rebound
	// factors are the tensors that hold the scaling of rotary tables.
	factors map[string]*graph.Weight
	// aside are the tensors of the mirror that GGUF's other readers have no room
	// for: those without a name there, and those of gguf(aside=…).
	aside map[string]bool
	// unnamed are the found tensors that GGUF has no name for.
	unnamed []askedTensor
	// defaults says to write what the specification took for missing.
	defaults bool
}

// Rebind says how to write the model of the files in the other binding. The
// specification is traced in both: where the two traces compute the same, what
// they read must be equal, and that gives every tensor of the other binding.
// Errors wrap ErrRebind, or are those of a trace.
func (s *Spec) Rebind(files Files) (*Rebound, error) {
	if s.Foreign {
		return nil, fmt.Errorf("spec: %w: %s is not one of the shipped specifications", ErrRebind, s.Name)
	}
	if err := checkQuantization(files, nil); err != nil {
		return nil, err
	}
	if s.part {
		files = innerText(files)
	}
	r := &rebinder{s: s, files: files, result: &Rebound{Binding: GGUF}, aside: map[string]bool{}}
	if files.Binding() == GGUF {
		r.result.Binding = HF
	}
	if err := r.traceFiles(); err != nil {
		return nil, err
	}
	if err := r.declarations(); err != nil {
		return nil, err
	}
	if r.layout() && r.attempt() == nil { // the folder that the file was made of
		return r.result, nil
	}
	if err := r.mirror(); err != nil {
		return nil, err
	}
	err := r.attempt()
	if err != nil && r.result.Binding == HF { // a default may follow from what only GGUF says
		r.defaults = true
		if r.attempt() == nil {
			err = nil
		}
	}
	if err != nil && len(r.unnamed) > 0 { // those may be more than the format has room for
		r.layAside()
		if r.attempt() == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return r.result, r.compareOthers()
}

// traceFiles traces the files at hand. Of a GGUF file a specification undoes
// orders of columns in the weights, as where such a file is made; not where
// they are blocks.
func (r *rebinder) traceFiles() (err error) {
	tries := []Files{r.files}
	if r.files.Binding() == GGUF {
		config := maps.Clone(r.files.Config())
		config[convertingKey] = true
		tries = []Files{&convertingFiles{r.files, config}, r.files}
	}
	for _, files := range tries {
		r.from = newTracer(files, r.s.opts)
		r.from.asked = newAsked()
		if _, err = r.from.run(r.s.fileName(), r.s.Source); err == nil {
			break
		}
	}
	return err
}

// convertingFiles are files with convertingKey in their metadata.
type convertingFiles struct {
	Files
	config map[string]any
}

func (f *convertingFiles) Config() map[string]any { return f.config }

// layAside adds the tensors without a name there to the mirror, under the
// reference's names.
func (r *rebinder) layAside() {
	for _, a := range r.unnamed {
		r.to.add(a.name, a.shape)
		r.aside[a.name] = true
	}
}

// attempt traces the mirror and solves for its tensors.
func (r *rebinder) attempt() error {
	if err := r.describe(); err != nil {
		return err
	}
	to, err := r.traceMirror()
	if err != nil {
		return err
	}
	return r.solve(to)
}

// declarations runs the top of the specification for the other binding.
func (r *rebinder) declarations() error {
	r.table = newTracer(&mirror{binding: r.result.Binding}, Options{})
	r.table.asked = newAsked()
	if err := r.table.loadNames(); err != nil {
		return err
	}
	if _, err := starlark.ExecFileOptions(fileOptions, r.table.thread, r.s.fileName(), r.s.Source, predeclared); err != nil {
		return r.table.fail(err)
	}
	rule, index, ok, err := r.matched()
	if err != nil {
		return err
	}
	if !ok && len(r.from.serves) > 0 {
		rule = r.from.serves[0] // chosen by name
	}
	r.rule = rule
	from, to := rule.modelTypes, rule.gguf
	if r.result.Binding == HF {
		from, to = to, from
	}
	for _, other := range r.from.serves {
		if len(to) > 0 {
			break
		}
		if to = other.gguf; r.result.Binding == HF {
			to = other.modelTypes
		}
	}
	if len(to) == 0 {
		return fmt.Errorf("spec: %s: %w: it declares no %s for this family", r.s.fileName(), ErrRebind, map[string]string{GGUF: "GGUF architecture", HF: "model_type"}[r.result.Binding])
	}
	pick := to[0]
	if len(from) == len(to) {
		pick = to[max(index, 0)]
	}
	if r.result.Binding == GGUF {
		r.result.Architecture = pick
	} else {
		r.result.ModelType, r.result.Classes = pick, rule.architectures
	}
	return nil
}

// matched finds the serves(…) that fits the files, and which of its names does.
func (r *rebinder) matched() (rule servesRule, index int, ok bool, err error) {
	own := modelType(r.files)
	if r.files.Binding() == GGUF {
		own = r.files.Architecture()
	}
	for _, rule := range r.from.serves {
		strong, weak := rule.fits(r.files)
		if !strong && !weak {
			continue
		}
		if rule.when != nil {
			v, err := starlark.Call(r.from.thread, rule.when, starlark.Tuple{r.from.config.root()}, nil)
			if err != nil {
				return rule, 0, false, r.from.fail(err)
			}
			if !bool(v.Truth()) {
				continue
			}
		}
		names := rule.modelTypes
		if r.files.Binding() == GGUF {
			names = rule.gguf
		}
		return rule, slices.Index(names, own), true, nil
	}
	return rule, 0, false, nil
}

// bare are GGUF tensors whose names end in neither .weight nor .bias.
var bare = []string{".ssm_a", ".ssm_d", ".ssm_dt"}

// bareHF are tensors of folders whose names end so, though GGUF adds .weight.
var bareHF = []string{".sinks", ".experts.gate_up_proj", ".experts.down_proj"}

// targetNames are the names of a found tensor in the other binding.
func (r *rebinder) targetNames(a askedTensor) []string {
	base, suffix := cutSuffix(a.name)
	if suffix == "" && (a.experts > 0 || r.result.Binding == GGUF) {
		suffix = ".weight"
	}
	names := r.candidates(base + suffix)
	if full := r.candidates(a.name); len(full) > 0 && a.name == base &&
		(strings.HasSuffix(full[0], ".bias") || slices.ContainsFunc(bare, func(s string) bool { return strings.HasSuffix(full[0], s) })) {
		names = full
	}
	switch {
	case r.result.Binding == HF && a.experts == 0 && slices.ContainsFunc(bareHF, func(s string) bool { return strings.HasSuffix(base, s) }):
		names = []string{base}
	case r.result.Binding == HF && a.experts == 0:
		names = []string{a.name}
	case len(names) == 0:
		return nil
	}
	if a.experts == 0 || !strings.Contains(names[0], "{e}") {
		return names[:1]
	}
	out := make([]string, a.experts)
	for e := range out {
		out[e] = strings.ReplaceAll(names[0], "{e}", fmt.Sprint(e))
	}
	return out
}

// candidates are the names that the other binding has for a reference name.
func (r *rebinder) candidates(name string) []string {
	t := r.table.names
	if r.result.Binding == HF {
		return t.candidates(name)
	}
	var list []string
	for _, ref := range t.references(name) {
		if names, ok := t.entries.lookup(ref); ok {
			list = append(list, names...)
		}
	}
	return list
}

// mirror lists the tensors of the other binding with their likely shapes.
func (r *rebinder) mirror() error {
	r.to = &mirror{binding: r.result.Binding, arch: r.result.Architecture, views: map[string]tensor.View{}}
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
		} else if slices.ContainsFunc(aside, func(m matcher) bool { key, _ := generalise(a.name); return m.fits(a.name, key) }) {
			r.aside[names[0]] = true
		}
		if r.result.Binding == GGUF {
			if shape, err = r.ggufShape(names[0], shape); err != nil {
				return err
			}
		} else {
			shape = r.folderShape(a, shape, kernels)
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
		names, err := stringList(v)
		if err != nil {
			return nil, fmt.Errorf("spec: gguf: aside: %w", err)
		}
		for _, n := range names {
			m, err := newMatcher(n)
			if err != nil {
				return nil, fmt.Errorf("spec: gguf: aside: %s: %w", n, err)
			}
			list = append(list, m)
		}
	}
	return list, nil
}

// traceMirror traces the specification over the mirror. A matrix that the two
// bindings store transposed shows as a mismatch of shapes: it is turned, once,
// and so are its like of other layers.
func (r *rebinder) traceMirror() (*tracer, error) {
	turned := map[string]bool{}
	for turn := 0; ; turn++ {
		t := newTracer(r.to, Options{AllowUnused: true, Set: r.s.opts.Set})
		t.asked = newAsked()
		t.asked.supply, t.asked.lacking = r.supply, r.lacking
		_, err := t.run(r.s.fileName(), r.s.Source)
		if err == nil {
			return t, nil
		}
		if turn > maxTurns || !r.turn(t.problems, turned) {
			return nil, fmt.Errorf("spec: %w: %w", ErrRebind, err)
		}
	}
}

// maxTurns bounds the traces that turning takes: one for each kind of matrix.
const maxTurns = 16

// turn transposes the matrices that problems name; false where there is none
// that was not turned yet.
func (r *rebinder) turn(problems []Problem, turned map[string]bool) bool {
	fresh := map[string]bool{}
	for _, name := range r.to.order {
		v := r.to.views[name]
		key, _ := generalise(name)
		if len(v.Shape) == 2 && v.Shape[0] != v.Shape[1] && !turned[key] && slices.ContainsFunc(problems, func(p Problem) bool { return mentionsName(p.Text, name) }) {
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

// mentionsName says whether a message names a tensor, not a longer name that contains it.
func mentionsName(text, name string) bool {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,()[]:", r) }) {
		if w == name {
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
	out := slices.Clone(shape)
	for i := len(out) - 2; i > 0; i-- {
		if out[i] == 1 {
			out = slices.Delete(out, i, i+1)
		}
	}
	return out, nil
}
